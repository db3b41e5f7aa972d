"""The command line: its verbs and their help, and what a mistake costs."""

import argparse
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from tiny import TEXT

from cige.cli import VERBS, command_of, parser_of
from cige.commands import compare, train
from cige.extras import install_command

pytestmark = pytest.mark.usefixtures("english")


@pytest.mark.parametrize("command", [train, compare])
def test_settings_given_one_after_another_all_count(command):
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    given = ["recipe.yaml", "--data", "data", "--output", "run", "--set", "a=1", "b=2", "--set", "c=3"]
    assert parser.parse_known_args(given)[0].set == ["a=1", "b=2", "c=3"]
    assert parser.parse_known_args(given[:5])[0].set == []


def test_help_names_every_verb(run):
    code, out, _ = run()
    assert code == 0 and all(f"  {verb} " in out for verb in VERBS)
    assert run("--help")[0] == 0
    assert run("--version")[1].strip()


INTERRUPTED_IMPORT = """
import sys

class CtrlC:
    def find_spec(self, name, path=None, target=None):
        if name == "cige.cli":
            raise KeyboardInterrupt

sys.meta_path.insert(0, CtrlC())
from cige.__main__ import main
sys.exit(main())
"""


def test_ctrl_c_while_the_program_is_imported_is_no_traceback():
    done = subprocess.run([sys.executable, "-c", INTERRUPTED_IMPORT], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
    pyproject = Path(__file__).parents[1] / "pyproject.toml"
    assert '[project.scripts]\ncige = "cige.__main__:main"\n' in pyproject.read_text(encoding="utf-8")


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help(run, verb):
    code, out, _ = run(verb, "--help")
    assert code == 0
    assert f"usage: cige {verb}" in out and f"cige {verb} " in out.split("\n\n", 1)[1]


def test_an_unknown_verb_is_told_with_the_nearest(run):
    code, out, err = run("predcit")
    assert (code, out) == (2, "") and err.startswith("cige: unknown verb 'predcit'") and "did you mean predict?" in err


def test_errors_are_one_line_and_no_traceback(run, tmp_path):
    for argv, expected in [
        (["predict", TEXT, "--model", tmp_path], "no manifest.json in it"),
        (["predict", TEXT, "--model", "./none"], "no such folder"),
        (["evaluate", "--data", tmp_path / "none.bmes", "--model", tmp_path], "none.bmes"),
        (["train", tmp_path / "none.yaml", "--output", tmp_path / "run"], "none.yaml"),
        (["lexicon", "info", tmp_path / "none"], "none"),
        (["data", "fetch", "webo"], "did you mean weibo?"),
        (["explain", TEXT, "-m", tmp_path, "--n-words", "0"], "no manifest.json in it"),
    ]:
        code, out, err = run(*argv)
        assert (code, out) == (2, ""), argv
        assert err.startswith("cige: ") and err.count("\n") == 1 and expected in err, err


def test_python_m_cige_is_the_program():
    done = subprocess.run([sys.executable, "-m", "cige", "predit"], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "did you mean predict?" in done.stderr


def test_a_missing_extra_is_told_how_to_get(run, monkeypatch, tmp_path):
    def fail(name):
        raise ModuleNotFoundError("No module named 'gensim'", name="gensim")

    monkeypatch.setattr("cige.cli.import_module", fail)
    code, _, err = run("vectors", "train", tmp_path)
    assert code == 2 and "needs gensim" in err and install_command("train") in err


def test_the_former_verb_of_benchmarks_says_where_they_are(run):
    code, out, err = run("bench", "match", "--rounds", "2")
    assert (code, out) == (2, "") and "source tree" in err and "`python -m benchmarks match --rounds 2`" in err
    assert "`python -m benchmarks NAME`" in run("bench")[2] and err.count("\n") == 1
    assert "bench" not in VERBS and "did you mean" not in err


@pytest.mark.parametrize("verb", VERBS)
def test_the_examples_of_the_help_can_be_parsed(verb):
    lines = (command_of(verb).__doc__ or "").replace("\\\n", " ").split("\n")
    for line in lines:
        if line.startswith("  cige "):
            words = shlex.split(re.split(r" [>|]+ ", line)[0], comments=True)
            assert words[1] in VERBS, line
            parser_of(words[1]).parse_args(words[2:])
