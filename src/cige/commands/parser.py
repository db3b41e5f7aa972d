"""VerbParser: argparse, for a program whose arguments are texts that may begin with a dash."""

from __future__ import annotations

import argparse
import re
from typing import Any, NoReturn

_LIKE_AN_OPTION = re.compile("--?[A-Za-z]")


class VerbParser(argparse.ArgumentParser):
    """A parser for which only what begins with a dash and an ASCII letter is an option.

    So `cige predict "-北京"` reads a text. Texts such as "-a" still need `--` before them, and the error says so.
    """

    def _parse_optional(self, arg_string: str) -> Any:  # argparse's one place that tells options from arguments
        return super()._parse_optional(arg_string) if _LIKE_AN_OPTION.match(arg_string) else None

    def error(self, message: str) -> NoReturn:
        if message.startswith("unrecognized arguments: -"):
            message += ' (a text that begins like an option goes after --, as in `cige predict -- "-a"`)'
        super().error(message)
