"""Completion of `cige` commands in a shell, by argcomplete: print what the shell must read, once per shell.

Examples:
  cige completion bash >> ~/.bashrc
  cige completion zsh >> ~/.zshrc
  cige completion fish > ~/.config/fish/completions/cige.fish
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Mapping
from importlib.util import find_spec

SHELLS = ("bash", "zsh", "fish", "powershell", "tcsh")
_ASKING = "_ARGCOMPLETE"  # the shell sets it when it asks what may follow


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, help="the shell to print the lines for")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    from argcomplete import shellcode

    print(shellcode(["cige"], shell=args.shell))


def is_asked() -> bool:
    """Whether a shell asks for completions, and argcomplete is there to answer."""
    return _ASKING in os.environ and find_spec("argcomplete") is not None


def answer(verbs: Mapping[str, str], parser_of: Callable[[str], argparse.ArgumentParser]) -> None:
    """Tell the shell what may follow what was typed, and end the process.

    Only the parser of the verb that was typed is made, so that completion imports no more than the verb.
    """
    import argcomplete

    typed = os.environ.get("COMP_LINE", "")[: int(os.environ.get("COMP_POINT") or 0) or None].split()
    root = argparse.ArgumentParser(prog="cige")
    below = root.add_subparsers(parser_class=_Given)
    for verb, what in verbs.items():
        own = parser_of(verb) if verb in typed[1:2] else None
        below.add_parser(verb, help=what, given=own)
    argcomplete.autocomplete(root)


class _Given(argparse.ArgumentParser):
    """A parser with the arguments of another, which `add_subparsers` would otherwise make itself."""

    def __init__(self, *, given: argparse.ArgumentParser | None = None, prog: str | None = None):
        super().__init__(prog=prog, parents=[given] if given else [], add_help=given is None)
