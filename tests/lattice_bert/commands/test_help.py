"""The commands of Lattice-BERT: their help, its examples, and packages that are not installed."""

from __future__ import annotations

import argparse
import re
import shlex
from importlib import import_module
from pkgutil import iter_modules

import pytest
from without_extras import without_extras

import cige.lattice_bert.commands as commands
from cige.cli import parser_of
from cige.extras import install_command
from cige.lattice_bert.commands import pretrain_run

MODULES = [import_module(f"{commands.__name__}.{found.name}") for found in iter_modules(commands.__path__)]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__.rpartition(".")[2])
def test_the_examples_of_the_help_can_be_parsed(module):
    examples = re.findall(r"^  (?:torchrun .* -m cige\.cli|cige) (.*)", module.__doc__.replace("\\\n", " "), re.M)
    assert examples
    for example in examples:
        verb, *rest = shlex.split(example, comments=True)
        parser_of(verb).parse_args(rest)


def test_settings_given_one_after_another_all_count():
    parser = argparse.ArgumentParser()
    pretrain_run.add_arguments(parser)
    given = ["recipe.yaml", "--data", "data", "--output", "run", "--set", "a=1", "b=2", "--set", "c=3"]
    assert parser.parse_args(given).set == ["a=1", "b=2", "c=3"]


def test_without_packages_of_the_extra_it_is_named(tmp_path):
    own = {
        "pretrain": ["run", "pretrain/small", "--data", "d", "--output", "run"],
        "finetune": ["tnews", "--model", "m", "--data", "d", "--output", "run"],
    }
    given = {name: ["lattice-bert", name, *rest] for name, rest in own.items()}
    for what in ("pretrain", "finetune"):
        told = without_extras({"lattice-bert": given[what][1:]}, tmp_path)
        code, error = told["lattice-bert"]
        assert code == 2 and error.startswith("cige: ") and install_command("train") in error, (code, error)
