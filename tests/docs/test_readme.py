"""The blocks of shell in README run as they stand, in a folder that has `examples/`, and print what stands under them.

Blocks after the comment `<!-- not run: REASON -->` install, download or run for long, so only their form is checked.
"""

from __future__ import annotations

import os
import re
import shlex
import stat
import subprocess
import sys
from collections.abc import Iterable
from itertools import takewhile

import pytest
from page_code import ROOT, Block, _parse, blocks, commands

README = ROOT / "README.md"
ONE_EPOCH = " --set training.n_epochs=1"  # so that the test does not take a minute
OTHER_PROGRAMS = {"make", "git", "pip", "."}  # those of blocks that are not run


def blocks_of_shell() -> list[Block]:
    return [block for block in blocks(README.read_text(encoding="utf-8")) if block.language == "sh"]


def comparable(lines: Iterable[str]) -> list[str]:
    """What a command printed, without spaces at the edges and scores, whose last digits depend on the processor."""
    return [re.sub(r"\b[01]\.\d+", "0", " ".join(line.split())) for line in lines]


@pytest.fixture(scope="module")
def shell(tmp_path_factory):
    """Runs a line in a folder that has `examples/`, with `cige` on the path; gives what it prints."""
    folder = tmp_path_factory.mktemp("clone")
    (folder / "examples").symlink_to(ROOT / "examples")
    program = tmp_path_factory.mktemp("bin") / "cige"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m cige "$@"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    path = os.pathsep.join([str(program.parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "2"}

    def run(line: str) -> str:
        if line.startswith("cige train"):
            line = line.partition("#")[0] + ONE_EPOCH
        done = subprocess.run(
            ["sh", "-c", line], cwd=folder, env=environment, capture_output=True, encoding="utf-8", check=False
        )
        assert done.returncode == 0, f"{line}\n{done.stderr}"
        return done.stdout

    run.folder = folder
    return run


def test_blocks_run_as_they_stand(shell):
    run = [block for block in blocks_of_shell() if block.is_run]
    assert len(run) >= 4
    n_shown = 0
    for block in run:
        lines = block.code.splitlines()
        for line, is_shown in commands(block.code):
            printed = shell(line)
            if is_shown:
                n_shown += 1
                below = lines[lines.index(line) + 1 :]
                under = [given[2:] for given in takewhile(lambda given: given.startswith("#>"), below)]
                assert comparable(printed.rstrip().splitlines()) == comparable(under), line
    assert n_shown, "README shows what a prediction prints"
    for name in ("found.jsonl", "page.html", "names.txt", "out/manifest.json", "runs/own/model/manifest.json"):
        assert (shell.folder / name).is_file(), name


@pytest.mark.parametrize("block", [b for b in blocks_of_shell() if not b.is_run], ids=lambda b: b.code.split("\n")[0])
def test_blocks_that_are_not_run_have_the_form_of_commands(block):
    _parse(block.code)
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    extras = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for line, _ in commands(block.code):
        words = shlex.split(line, comments=True)
        assert words[0] in OTHER_PROGRAMS | {"cige"}, line
        if words[0] == "make":
            assert words[1] in targets, line
        if words[0] == "pip":
            assert words[1] == "install", line
            for name in re.findall(r"\[([a-z]+)\]", line):
                assert re.search(rf"^{name} = \[", extras, re.M), line


def test_every_file_that_a_block_names_is_there():
    code = "\n".join(block.code for block in blocks_of_shell())
    named = set(re.findall(r"\bexamples/[\w./-]+", code))
    assert named and all((ROOT / name).is_file() for name in named), named


def test_cige_is_on_the_path_before_it_is_typed():
    """The first block makes .venv and activates it; everything after it types `cige`."""
    first, *rest = blocks_of_shell()
    typed = [line.partition("#")[0].strip() for line in first.code.splitlines()]
    assert typed.index(". .venv/bin/activate") > typed.index("make ner")
    assert not any(line.startswith("cige ") for line in typed)
    assert any(line.startswith("cige ") for block in rest for line in block.code.splitlines())
