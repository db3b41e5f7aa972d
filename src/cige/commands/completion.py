"""Print the shell code that completes `cige` commands with argcomplete; install it once per shell.

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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, help="the shell to print code for")


def run(args: argparse.Namespace) -> None:
    from argcomplete.shell_integration import shellcode

    print(shellcode(["cige"], shell=args.shell))


def answer(verbs: Mapping[str, str], parser_of: Callable[[str], argparse.ArgumentParser]) -> None:
    """Print the completions of the typed command, and end the process, if argcomplete is installed.

    Only the parser of the typed verb is created, so that completion imports only the module of that verb.
    """
    if find_spec("argcomplete") is None:
        return
    import argcomplete

    typed = os.environ.get("COMP_LINE", "")[: int(os.environ.get("COMP_POINT") or 0) or None].split()
    root = argparse.ArgumentParser(prog="cige")
    below = root.add_subparsers(parser_class=_Given)
    for verb, what in verbs.items():
        of_verb = parser_of(verb) if verb in typed[1:2] else None
        below.add_parser(verb, help=what, given=of_verb)
    argcomplete.autocomplete(root)


class _Given(argparse.ArgumentParser):
    """A parser that wraps an existing one; `add_subparsers` can only create new parsers."""

    def __init__(self, *, given: argparse.ArgumentParser | None = None, prog: str | None = None):
        super().__init__(prog=prog, parents=[given] if given else [], add_help=given is None)
