"""The compiled libraries against plain loops in C: tests/native/check.c, which .ci/cross runs on other systems."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from cige import instruction_sets

ROOT = Path(__file__).parents[2]
PACKAGE = Path(instruction_sets.__file__).parents[1]
COMPILER = shutil.which("cc")


@pytest.fixture(scope="module")
def program(tmp_path_factory) -> Path:
    """The compiled check."""
    if COMPILER is None or not (ROOT / "src").is_dir():
        pytest.skip("needs a C compiler and the sources")
    path = tmp_path_factory.mktemp("native") / "check"
    sources = [*sorted((ROOT / "tests" / "native").glob("*.c")), ROOT / "src" / "cige" / "lexicon" / "trie.c"]
    command = [COMPILER, "-O1", "-std=gnu11", "-Wall", "-Wextra", "-Werror", *map(str, sources)]
    subprocess.run([*command, "-o", str(path), "-ldl", "-lm"], check=True)
    return path


@pytest.mark.parametrize("level", instruction_sets.LEVELS)
def test_every_function_computes_what_plain_loops_do(level, program):
    if not [*(PACKAGE / "runtime" / "native").glob(f"_runtime_{level}.abi3.*")]:
        pytest.skip(f"the level {level} was not built")
    done = subprocess.run([str(program), str(PACKAGE), level], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    first, *results = done.stdout.splitlines()
    if level not in instruction_sets.supported():
        assert first == f"{level}: not on this processor"
    else:
        assert first == f"{level}:"
        assert len(results) > 30 and "WRONG" not in done.stdout


def test_a_library_that_is_not_there_is_named(program, tmp_path):
    done = subprocess.run([str(program), str(tmp_path), "portable"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "instruction_sets/_cpu" in done.stderr
