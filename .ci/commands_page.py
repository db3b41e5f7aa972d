"""The page of the site that shows what `cige VERB --help` prints, for every verb."""

from __future__ import annotations

import argparse
import io
import os

from cige.cli import VERBS, command_of


def commands_page() -> str:
    """What `cige VERB --help` prints, for every verb."""
    parts = [
        "# Command line",
        "`cige VERB --help` prints what stands here. A command ends with exit code 0 if it did what it was asked, 1 if "
        "`cige doctor` found something that does not work or an unexpected error occurred, 2 if something was wrong "
        "with what it was given (one line on standard error says what), 130 if it was interrupted with Ctrl-C, and 141 "
        "if the program that reads its output went away.",
        "\n".join(f"- [`cige {verb}`](#cige-{verb}): {what}" for verb, what in VERBS.items()),
    ]
    for verb in VERBS:
        command = command_of(verb)
        parser = argparse.ArgumentParser(
            prog=f"cige {verb}", description=command.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        command.add_arguments(parser)
        parts.append(f"## cige {verb}\n\n```text\n{_help(parser)}```")
        for below in _below(parser):
            parts.append(f"### {below.prog}\n\n```text\n{_help(below)}```")
    return "\n\n".join(parts) + "\n"


def _below(parser: argparse.ArgumentParser) -> list[argparse.ArgumentParser]:
    """The parsers of `cige VERB WHAT`, and of what is below them."""
    own = [
        below
        for action in parser._actions
        if isinstance(action, argparse._SubParsersAction)
        for below in dict.fromkeys(action.choices.values())
    ]
    return [found for below in own for found in (below, *_below(below))]


def _help(parser: argparse.ArgumentParser) -> str:
    columns = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = "100"  # as wide as a page, whatever the terminal of whoever builds the site
    try:
        shown = io.StringIO()
        parser.print_help(shown)
        return shown.getvalue()
    finally:
        if columns is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = columns
