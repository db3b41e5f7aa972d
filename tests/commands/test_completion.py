"""Completion: what a shell is told, asked as argcomplete's own shell code asks."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from cige.cli import main


def completions(line: str) -> set[str]:
    """What may follow `line`, as bash asks for it: the answer comes over file descriptor 8."""
    env = os.environ | {
        "_ARGCOMPLETE": "1", "_ARGCOMPLETE_IFS": "\n", "_ARGCOMPLETE_SHELL": "bash", "COMP_LINE": line,
        "COMP_POINT": str(len(line)), "COMP_TYPE": "9", "_ARGCOMPLETE_SUPPRESS_SPACE": "1",
    }  # fmt: skip
    command = ["bash", "-c", '"$0" -m cige 8>&1 9>/dev/null', sys.executable]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    return {item.strip() for item in done.stdout.split("\n") if item}


def test_verbs_and_options_are_completed():
    assert completions("cige pre") == {"predict"}
    assert {"--lexicon-add", "--model", "--min-score"} <= completions("cige predict --")
    assert completions("cige predict --format ") == {"table", "jsonl"}
    assert "build" in completions("cige lexicon b")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_get_their_code(shell, capsys):
    assert main(["completion", shell]) == 0
    assert "cige" in capsys.readouterr().out
