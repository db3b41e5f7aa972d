"""VerbParser: an argparse parser for arguments that are texts and may begin with a dash; and verbs below a verb."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from typing import Any, NoReturn

SOURCE = "TEXT|FILE|-"
"""The metavar of an argument that is a text, or says where texts are."""
_LIKE_AN_OPTION = re.compile("--?[A-Za-z]")


class VerbParser(argparse.ArgumentParser):
    """A parser that treats arguments as options only if they begin with a dash and an ASCII letter.

    Thus `cige predict "-北京"` is a text. Texts such as "-a" still need `--` before them, as the error explains.
    """

    def _parse_optional(self, arg_string: str) -> Any:  # where argparse distinguishes options from arguments
        return super()._parse_optional(arg_string) if _LIKE_AN_OPTION.match(arg_string) else None

    def error(self, message: str) -> NoReturn:
        if message.startswith("unrecognized arguments: -"):
            message += ' (put -- before a text that looks like an option, as in `cige predict -- "-a"`)'
        elif message.startswith("unrecognized arguments: ") and any(a.metavar == SOURCE for a in self._actions):
            message += (
                " (give one text in quotes or one file; for several files, `cat *.txt | cige VERB`, or a folder for "
                "`cige annotate`)"
            )
        super().error(message)


def add_verb(verbs: Any, name: str, run: Callable[[argparse.Namespace], int | None], help: str) -> Any:
    """Add a verb below another one, such as `lexicon build`, which calls `run`; returns its parser."""
    parser = verbs.add_parser(name, help=help)
    parser.set_defaults(run=run)
    return parser
