"""The commands `cige lattice-bert ...`."""

from __future__ import annotations

import argparse
from importlib import import_module


def add_verb(
    verbs: argparse._SubParsersAction[argparse.ArgumentParser], name: str, what: str, module: str
) -> argparse.ArgumentParser:
    """Add a verb that a module of this package describes in its docstring and implements."""
    command = import_module(f"{__name__}.{module}")
    sub = verbs.add_parser(
        name, help=what, description=command.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    command.add_arguments(sub)
    return sub
