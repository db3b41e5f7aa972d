"""Options that several verbs share, and loading the model that they specify."""

from __future__ import annotations

import argparse
import math
import os
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from cige.errors import ModelError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from cige.api import NER
    from cige.data.sentence import Repair
    from cige.lexicon.report import LoadReport
    from cige.tagging.finder import EntityFinder
    from cige.tagging.selection import Request

V = TypeVar("V", int, float, str)


MODEL_HELP = "model folder, hub id or `research` (default: the bundled model)"


def add_model_options(parser: argparse.ArgumentParser, *, models_help: str | None = None) -> None:
    """Options for `load_finder`; with `models_help`, --model may be given several times, and `args.model` is a list."""
    action = "store" if models_help is None else "append"
    parser.add_argument("--model", "-m", metavar="M", action=action, help=models_help or MODEL_HELP)
    parser.add_argument("--device", default="cpu", help="cpu, cuda, cuda:1 ... (default: cpu)")
    parser.add_argument(
        "--precision",
        choices=("auto", "float32", "bfloat16", "int8", "int16"),
        default="auto",
        help="number format in which cige's own runtime computes a FLAT: auto uses the fastest one that the processor "
        "supports, float32 gives the same scores on every machine (default: auto)",
    )
    parser.add_argument("--domain", metavar="NAME", help="kind of text whose score calibration is used, such as posts")
    parser.add_argument(
        "--names", metavar="FILE", help="list of names with kinds instead of the model's own (see `cige names`)"
    )
    parser.add_argument(
        "--lexicon-add",
        metavar="FILE",
        action="append",
        default=[],
        help="additional words: one per line, word<TAB>label, or CSV or JSON lines with word, label and "
        "mode (evidence, type, force, block, block_exact); or a folder of `cige lexicon publish`, whose current "
        "version is read; may be given several times",
    )


def add_request_options(parser: argparse.ArgumentParser, *, recall: bool = True) -> None:
    """Options for `request_of`, with that for overlapping candidates if `recall`."""
    parser.add_argument(
        "--min-score", type=share, default=0.0, metavar="P", help="leave out entities with a lower score, 0..1"
    )
    parser.add_argument("--labels", metavar="A,B", help="report only these labels")
    add_types_option(
        parser, "coarse: report the topmost ancestor of each label, such as ORG for COMPANY (default: fine)"
    )
    parser.add_argument(
        "--flat",
        action="store_true",
        help="with a model of nested entities: leave out entities that overlap one with a higher score",
    )
    if not recall:
        parser.set_defaults(recall=None)
        return
    parser.add_argument(
        "--recall",
        type=float,
        metavar="SHARE",
        help="report as many candidates, which may overlap, as are needed to find this share of the entities; requires "
        "a model that was calibrated by `cige calibrate`",
    )


def add_types_option(
    parser: argparse.ArgumentParser,
    help: str = "coarse: the data has topmost ancestors of the model's labels, such as ORG for COMPANY (default: fine)",
) -> None:
    """The option --types; its usual help is that for labelled data."""
    parser.add_argument("--types", choices=("fine", "coarse"), default="fine", help=help)


def add_repair_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--repair",
        action="store_true",
        help="repair invalid tag transitions and keep the outermost of overlapping entities, instead of rejecting the "
        "file",
    )


def tell(message: object) -> None:
    """Print a note on standard error, apart from what a command prints."""
    print(f"cige: {message}", file=sys.stderr)


def tell_repairs(file: str, repairs: Iterable[Repair]) -> None:
    """List on standard error what --repair changed in a file."""
    for repair in repairs:
        tell(f"{file}, line {repair.line}: repaired: {repair.what}")


def add_set_option(parser: argparse.ArgumentParser, *, help: str = "change settings of the recipe") -> None:
    parser.add_argument("--set", nargs="+", action="extend", default=[], metavar="KEY=VALUE", help=help)


def add_no_resume_option(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--no-resume", action="store_true", help="start from the beginning, even if the output folder has checkpoints"
    )


def request_of(args: argparse.Namespace) -> Request:
    """The request that the options specify; raises a ModelError if a value is out of range."""
    from cige.tagging.selection import Request

    labels = None if args.labels is None else [name.strip() for name in args.labels.split(",") if name.strip()]
    try:
        return Request.of(
            min_score=args.min_score, labels=labels, types=args.types, recall=args.recall, nested=not args.flat
        )
    except ValueError as reason:
        raise ModelError(str(reason)) from None


def load_finder(model: str | None, args: argparse.Namespace) -> EntityFinder:
    """Load a model, which may be any that finds entities, as the options specify, and add the user's words.

    Refused lines of a word file are reported on stderr. Raises a ModelError as `cige.load` does, or if the model has no
    lexicon for the user's words.
    """
    from cige.api import load_as
    from cige.lexicon.word_versions import word_file
    from cige.nn.memory import keep_freed_memory

    keep_freed_memory()
    finder = load_as(model, args)
    if args.lexicon_add:
        ner = _with_lexicon(finder, model)
        for path in map(word_file, args.lexicon_add):
            tell_incomplete(ner.lexicon.add_file(path))
        _warn_of_ignored_labels(ner)
    return finder


def load_ner(model: str | None, args: argparse.Namespace) -> NER:
    """Like `load_finder`, for commands that require a model with a lexicon."""
    return _with_lexicon(load_finder(model, args), model)


def tell_incomplete(*reports: LoadReport) -> None:
    """Print which lines of word files were refused, on stderr."""
    for report in reports:
        if report.is_incomplete:
            tell(report)


def _warn_of_ignored_labels(ner: NER) -> None:
    from cige.lexicon.user_word import EVIDENCE

    n_labels = sum(word.label is not None and word.mode == EVIDENCE for word in ner.lexicon.user_entries)
    if n_labels and not ner.read_word_labels:
        tell(
            f"this model ignores labels of words, so {n_labels:,} of your words are used without their labels; "
            "words with mode force are still tagged with their label",
        )


def _with_lexicon(finder: EntityFinder, model: str | None) -> NER:
    """Return `finder`; raises a ModelError if it is a fine-tuned Lattice-BERT, which has no lexicon."""
    from cige.api import NER

    if not isinstance(finder, NER):
        raise ModelError(
            f"{model}: a model that `cige lattice-bert finetune` wrote only uses the words of its vocabulary "
            "and does not report them; use `cige predict` without --lexicon-add and --words, `cige lattice-bert "
            "pretrain explain` for what it attends to, or a model of `cige train`"
        )
    return finder


def flat_tagger_folder(model: str | None) -> Path:
    """The folder of a model without nested entities, for commands that change models; raises a ModelError for others.

    Only the manifest is read, so that this happens before PyTorch is imported.
    """
    from cige.folders.hub import model_folder
    from cige.folders.kinds import GRID_TAGGER
    from cige.folders.manifest import kind_of

    folder = model_folder(model)
    if kind_of(folder) == GRID_TAGGER:
        raise ModelError(
            f"{folder}: it finds nested entities, and such models can be neither averaged, compacted nor exported; "
            "give a model that was trained with head: crf"
        )
    return folder


def refuse_own_folder(output: str, folder: Path, *, or_in_it: bool = False) -> None:
    """Raise a ModelError if a changed copy of the model in `folder` would replace the model itself or, for copies of
    all of its files, be one of them."""
    if os.path.realpath(folder) == os.path.realpath(output):
        raise ModelError(f"{output}: the folder of the model itself, which its copy would replace; give another folder")
    if or_in_it and Path(folder).resolve() in Path(output).resolve().parents:
        raise ModelError(f"{output}: in the folder of the model itself, all of which is copied; give another folder")


def make_console() -> Console:
    """The console for tables, as wide as the terminal, or 120 columns for a pipe or a file."""
    from rich.console import Console

    class TableConsole(Console):
        def on_broken_pipe(self) -> None:
            raise  # the BrokenPipeError that is being handled, for which `main` has an exit code

    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else 120
    return TableConsole(highlight=False, markup=False, width=width)  # brackets in labels and names are no markup


def print_table(table: Table) -> None:
    """Print a table below its title, which stays on one line: rich would break a path in it."""
    console = make_console()
    console.print(table.title, style="italic", soft_wrap=True)
    table.title = None
    console.print(table)


def folder_bytes(folder: str | Path) -> int:
    """The size of all files of a folder."""
    return sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file())


def _checked(kind: Callable[[str], V], is_right: Callable[[V], bool], expected: str) -> Callable[[str], V]:
    """Argument type: values of a kind for which `is_right` holds."""

    def checked(text: str) -> V:
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not is_right(value):
            raise argparse.ArgumentTypeError(f"given {text!r}, expected {expected}")
        return value

    return checked


def at_least(minimum: int) -> Callable[[str], int]:
    """Argument type: whole numbers that are at least `minimum`."""
    return _checked(int, lambda number: number >= minimum, f"a whole number of at least {minimum}")


port = _checked(int, lambda number: 0 <= number <= 65_535, "a port from 0 to 65535")
seconds = _checked(float, lambda number: 0 < number < math.inf, "seconds, more than 0")
minutes = _checked(float, lambda number: 0 <= number < math.inf, "minutes, at least 0")
seed = _checked(int, lambda number: 0 <= number < 2**63, "a whole number from 0 to 2^63 - 1")
share = _checked(float, lambda number: 0 <= number <= 1, "a number from 0 to 1")
_ORIGIN = re.compile(r"\*|[a-z][a-z0-9+.-]*://([a-z0-9._-]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?")


def _as_browsers_send(text: str) -> str:
    """An origin as the header has it with which it is compared: in lower case, without the scheme's usual port."""
    text = text.lower()
    port = ":80" if text.startswith("http://") else ":443" if text.startswith("https://") else ""
    return text.removesuffix(port)


origin = _checked(
    _as_browsers_send,
    lambda text: _ORIGIN.fullmatch(text) is not None,
    "* or scheme://host[:port] without a path, such as https://example.org",
)
