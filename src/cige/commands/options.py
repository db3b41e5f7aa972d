"""Options that several verbs share, and the model they name."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

from cige.errors import ModelError

if TYPE_CHECKING:
    from rich.console import Console

    from cige.api import NER
    from cige.tagging.finder import EntityFinder
    from cige.tagging.selection import Request


def add_model_options(
    parser: argparse.ArgumentParser, *, several: bool = False, models_help: str | None = None
) -> None:
    """Options for `load_ner`.

    With `several` or `models_help`, --model may be given again, and `args.model` is None or a list.

    Args:
        models_help: what --model says of itself, in place of the usual.
    """
    several = several or models_help is not None
    parser.add_argument(
        "--model",
        "-m",
        metavar="M",
        action="append" if several else "store",
        help=models_help
        or "model folder or hub id (default: the bundled model)" + ("; may be given again" if several else ""),
    )
    parser.add_argument("--device", default="cpu", help="cpu, cuda, cuda:1 ... (default: cpu)")
    parser.add_argument(
        "--precision",
        choices=("auto", "float32", "bfloat16", "int8"),
        default="auto",
        help="what cige's own runtime computes a FLAT in: auto takes the fastest that this processor has, float32 "
        "gives the same scores everywhere (default: auto)",
    )
    parser.add_argument(
        "--domain", metavar="NAME", help="kind of text, for scores that were calibrated on it: posts ..."
    )
    parser.add_argument(
        "--lexicon-add",
        metavar="FILE",
        action="append",
        default=[],
        help="words of your own, used at once: one per line, word<TAB>label, or CSV or JSON lines with word, label and "
        "mode (evidence, force, block); may be given several times",
    )


def add_request_options(parser: argparse.ArgumentParser, *, recall: bool = True) -> None:
    """Options that say which entities are reported; `request_of` reads them.

    Args:
        recall: whether overlapping candidates may be asked for.
    """
    parser.add_argument(
        "--min-score", type=float, default=0.0, metavar="P", help="leave out entities with a lower score, 0..1"
    )
    parser.add_argument("--labels", metavar="A,B", help="report only these labels")
    parser.add_argument(
        "--types",
        choices=("fine", "coarse"),
        default="fine",
        help="coarse: report COMPANY as ORG and the like, where the model knows of kinds (default: fine)",
    )
    if not recall:
        parser.set_defaults(recall=None)
        return
    parser.add_argument(
        "--recall",
        type=float,
        metavar="SHARE",
        help="report as many candidates, overlapping ones too, as find this share of the entities; needs a model that "
        "`cige calibrate` calibrated",
    )


def request_of(args: argparse.Namespace) -> Request:
    """What the options ask to be reported.

    Raises:
        ModelError: a value is out of range.
    """
    from cige.tagging.selection import Request

    labels = None if args.labels is None else [name.strip() for name in args.labels.split(",") if name.strip()]
    try:
        return Request.of(min_score=args.min_score, labels=labels, types=args.types, recall=args.recall)
    except ValueError as reason:
        raise ModelError(str(reason)) from None


def load_finder(args: argparse.Namespace) -> EntityFinder:
    """The model that the options name, of any kind that finds entities, with the user's words.

    Lines of a word file that are no words are reported on stderr.

    Raises:
        ModelError: what `cige.load` raises; or the user's words were given to a model that has no lexicon.
    """
    return load_model(args.model, args)


def load_ner(args: argparse.Namespace) -> NER:
    """As `load_finder`, for commands that need a model with a lexicon."""
    return with_lexicon_only(load_finder(args), args.model)


def load_model(path_or_hub_id: str | None, args: argparse.Namespace) -> EntityFinder:
    """As `load_finder`, for one of several models."""
    from cige.api import load
    from cige.nn.memory import keep_freed_memory

    keep_freed_memory()
    finder = load(path_or_hub_id, device=args.device, precision=args.precision, domain=args.domain)
    for path in args.lexicon_add:
        report = with_lexicon_only(finder, path_or_hub_id).lexicon.add_file(path)
        if report.n_refused or not report.n_taken:
            print(f"cige: {report}", file=sys.stderr)
    if args.lexicon_add:
        _tell_of_labels_not_read(with_lexicon_only(finder, path_or_hub_id))
    return finder


def _tell_of_labels_not_read(ner: NER) -> None:
    from cige.lexicon.user_word import EVIDENCE

    n_labels = sum(word.label is not None and word.mode == EVIDENCE for word in ner.lexicon.user_entries)
    if n_labels and not ner.read_word_labels:
        print(
            f"cige: this model reads no labels of words, so {n_labels:,} of your words count without theirs; words "
            "with mode force are tagged with their label all the same",
            file=sys.stderr,
        )


def with_lexicon_only(finder: EntityFinder, path_or_hub_id: str | None) -> NER:
    """`finder` if it reads a lexicon.

    Raises:
        ModelError: it is a fine-tuned Lattice-BERT, whose words are those of its own vocabulary.
    """
    from cige.api import NER

    if not isinstance(finder, NER):
        raise ModelError(
            f"{path_or_hub_id}: a model that `cige finetune` wrote reads the words of its own vocabulary and no "
            "others, and does not report which it read; use `cige predict` without --lexicon-add and --words, or a "
            "model that `cige train` wrote"
        )
    return finder


def make_console() -> Console:
    """Where tables go: as wide as the terminal, or 120 columns into a pipe or a file."""
    from rich.console import Console

    return Console(highlight=False, width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else 120)


def seconds(text: str) -> float:
    """A type for argparse: seconds, more than 0."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"given {text!r}, expected seconds, more than 0")
    return number


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


def share(text: str) -> float:
    """Argument type: a number from 0 to 1."""
    value = float(text)
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"given {text}, expected a number from 0 to 1")
    return value
