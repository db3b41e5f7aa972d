"""Options that several verbs share, and the model they name."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

from cige.errors import ModelError
from cige.files import USES, kind_of

if TYPE_CHECKING:
    from rich.console import Console

    from cige.pipeline import NER

PRETRAINED, TUNED = "cige pre-trained model", "cige tuned model"  # what models/pretrained.py and tasks/tuned.py write


def add_model_options(parser: argparse.ArgumentParser, *, several: bool = False) -> None:
    """Options for `load_ner`; with `several`, --model may be given again and `args.model` is None or a list."""
    parser.add_argument(
        "--model",
        "-m",
        metavar="M",
        action="append" if several else "store",
        help="model folder or hub id (default: the bundled news model)" + ("; may be given again" if several else ""),
    )
    parser.add_argument("--device", default="cpu", help="cpu, cuda, cuda:1 ... (default: cpu)")
    parser.add_argument(
        "--lexicon-add",
        metavar="FILE",
        action="append",
        default=[],
        help="words of your own, one a line; they count at once (may be given several times)",
    )


def load_ner(args: argparse.Namespace) -> NER:
    """The model that the options name, with the user's words; lines that are no words are told on stderr."""
    return load_model(args.model, args)


def load_model(path_or_hub_id: str | None, args: argparse.Namespace) -> NER:
    """As `load_ner`, for one of several models."""
    from cige.hub import model_folder

    folder = model_folder(path_or_hub_id)  # before torch is imported: a wrong name is told at once
    if (kind := kind_of(folder)) in (PRETRAINED, TUNED):
        raise ModelError(f"{folder}: holds {kind!r}, expected a tagger; {USES[kind]}")
    from cige.nn.memory import keep_freed_memory
    from cige.pipeline import load

    keep_freed_memory()
    ner = load(folder, device=args.device)
    for path in args.lexicon_add:
        report = ner.lexicon.add_file(path)
        if report.n_refused or not report.n_taken:
            print(f"cige: {report}", file=sys.stderr)
    return ner


def make_console() -> Console:
    """Where tables go: as wide as the terminal, or 120 columns into a pipe or a file."""
    from rich.console import Console

    return Console(highlight=False, width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else 120)


def at_least(minimum: int):  # type: ignore[no-untyped-def]
    """A type for argparse: whole numbers from `minimum` on."""

    def whole_number(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = minimum - 1
        if number < minimum:
            raise argparse.ArgumentTypeError(f"given {text!r}, expected a whole number from {minimum} on")
        return number

    return whole_number
