"""Suggest which sentences to label next, and write them as tasks of doccano or Label Studio with the model's labels.

Examples:
  cige suggest unlabelled.txt round1.jsonl --strategy diversity --n 200
  cige suggest unlabelled.txt round2.jsonl --model runs/round1 --exclude answers.jsonl --n 200
  cige suggest posts.txt tasks.json --format label-studio --lexicon-add products.txt --n 100
  cige suggest unlabelled.txt dev.jsonl --strategy random --n 100 --no-labels

The file has one sentence per line, or is a .json or .jsonl file of documents, whose lines are the sentences. An
annotator corrects the labels, and `cige train --data` trains on the export of the annotation tool. The most important
sentences come first in the output, which must not exist yet. If the selection is interrupted, run the same command
again to continue.

strategies:
  both         sentences with the most uncertain spans in total, where repeated kinds of spans count less (the default)
  uncertainty  sentences with the most uncertain entities
  diversity    sentences that together cover the most common character pairs; this does not use a model, so it suits the
               first round, when no model knows your labels
  random       random sentences, for evaluating models
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from cige.commands.exit_codes import INTERRUPTED
from cige.commands.options import add_model_options, add_request_options, at_least, load_finder, request_of, seed, tell
from cige.commands.texts import sentences_of
from cige.errors import DataError
from cige.text.counted import counted

if TYPE_CHECKING:
    from cige.data.documents import Document
    from cige.suggest.kept import KeptReading
    from cige.suggest.selecting import Selector, Settings, Suggestion
    from cige.tagging.finder import EntityFinder
    from cige.tagging.selection import Request

FORMATS = ("doccano", "label-studio", "jsonl")
STRATEGIES = ("both", "uncertainty", "diversity", "random")  # those of suggest.selecting, which is not imported here
KEEP_EVERY = 5  # blocks of selecting.READ_AT_ONCE texts


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="FILE|-", help="unlabelled sentences, one per line; - is standard input")
    parser.add_argument("output", metavar="OUTPUT", help="file of tasks to write, which must not exist")
    parser.add_argument("--n", type=at_least(1), default=200, metavar="N", help="sentences to suggest (default: 200)")
    parser.add_argument("--strategy", choices=STRATEGIES, default="both", help="see above (default: both)")
    parser.add_argument(
        "--format",
        choices=FORMATS,
        default="doccano",
        help="format of OUTPUT; jsonl has text and entities (default: doccano)",
    )
    parser.add_argument(
        "--exclude",
        action="append",
        default=[],
        metavar="FILE",
        help="sentences that are already labelled, in any format of `cige convert`; may be given several times",
    )
    parser.add_argument(
        "--per",
        choices=("sentence", "character"),
        default="sentence",
        help="unit of annotation cost; with `character`, long sentences have no advantage (default: sentence)",
    )
    parser.add_argument(
        "--chars",
        type=at_least(1),
        nargs=2,
        default=(5, 200),
        metavar=("MIN", "MAX"),
        help="skip shorter and longer sentences (default: 5 200)",
    )
    parser.add_argument("--no-labels", action="store_true", help="write the sentences without the model's labels")
    parser.add_argument("--seed", type=seed, default=1, help="seed for samples and ties (default: 1)")
    add_model_options(parser)
    add_request_options(parser, recall=False)


def run(args: argparse.Namespace) -> int:
    from cige.data.documents import write_documents
    from cige.suggest.kept import KeptReading
    from cige.suggest.selecting import Selector, Settings

    low, high = args.chars
    if low > high:
        raise DataError(f"--chars {low} {high}: expected the smallest number first, such as --chars {high} {low}")
    settings = Settings(args.n, args.strategy, args.per, low, high, args.seed)
    if args.source != "-" and not Path(args.source).is_file():
        from cige.folders.packed import is_pipe

        kinds = {"a folder": os.path.isdir, "a pipe or device": is_pipe}
        what = next((kind for kind, holds in kinds.items() if holds(args.source)), "no such file")
        raise DataError(f"{args.source}: {what}; expected a file of sentences, one per line, or - for standard input")
    _refuse_to_overwrite(args.output, [args.source, *args.exclude])
    request = request_of(args)
    labelled = list(_labelled(args.exclude))
    finder = load_finder(args.model, args) if settings.reads_doubts or not args.no_labels else None
    if finder is not None:
        finder.select(request)  # an unknown label is reported before anything is read
    selector = Selector(settings, finder=finder, request=request, labelled=labelled)
    reading = None
    if args.source != "-":
        output = Path(args.output)
        reading = KeptReading(output.with_name(f".{output.name}.kept"), _fingerprint(args, settings, labelled, finder))
    try:
        _read(selector, args.source, reading)
        suggestions = selector.chosen()
        if not suggestions:
            known = f" and is not among the {len(labelled):,} of --exclude" if labelled else ""
            raise DataError(
                f"{args.source}: no line in it, of {counted(selector.n_read, 'line')}, has {low} to "
                f"{high} characters{known}; give another file, or other --chars"
            )
        write_documents(args.output, _documents(suggestions, finder, request, args), format=args.format)
    except KeyboardInterrupt:
        goes_on = "" if reading is None else "; run the same command again to continue"
        tell(f"stopped; nothing was written to {args.output}{goes_on}")
        return INTERRUPTED
    if reading is not None:
        reading.drop()
    _report(args, selector, suggestions, len(labelled))
    return 0


def _refuse_to_overwrite(output: str, inputs: list[str]) -> None:
    """Tasks are files that people work on, so unlike the results of other commands they are not replaced."""
    if not os.path.lexists(output):
        return
    for path in inputs:
        if os.path.exists(output) and os.path.exists(path) and os.path.samefile(path, output):
            raise DataError(f"{output} is also an input file; give another name for OUTPUT")
    raise DataError(f"{output}: already exists, and may have been labelled; give another name for OUTPUT, or remove it")


def _labelled(paths: Iterable[str]) -> Iterator[str]:
    """The texts of labelled files; documents are split into lines, which may have been suggested separately."""
    from cige.data.documents import read_documents

    for path in paths:
        for document in read_documents(path):
            yield from document.text.split("\n")


def _read(selector: Selector, source: str, reading: KeptReading | None) -> None:
    if reading is not None and reading.take_up(selector):
        tell(f"resuming after line {selector.n_read:,}")
    n_blocks = 0

    def on_block(selector: Selector) -> None:
        nonlocal n_blocks
        n_blocks += 1
        if sys.stderr.isatty():
            print(f"\r{counted(selector.n_read, 'line')} read", end="", file=sys.stderr, flush=True)
        if reading is not None and n_blocks % KEEP_EVERY == 0:
            reading.keep(selector)

    try:
        selector.read(sentences_of(source), on_block=on_block)
    except KeyboardInterrupt:
        if reading is not None:
            reading.keep(selector)
        raise
    finally:
        if n_blocks and sys.stderr.isatty():
            print(file=sys.stderr)


def _documents(
    suggestions: list[Suggestion], finder: EntityFinder | None, request: Request, args: argparse.Namespace
) -> list[Document]:
    """The tasks: each sentence with its predicted entities, rank, line and uncertainty."""
    from cige.data.documents import Document
    from cige.data.sentence import Span

    texts = [suggestion.text for suggestion in suggestions]
    labels: list[tuple[Span, ...]] = [()] * len(texts)
    if finder is not None and not args.no_labels:
        of_texts = finder.stream(texts, finder.select(request))
        labels = [tuple(Span(e.start, e.end, e.label, e.parts) for e in entities) for entities in of_texts]
    broken = [(span, text) for text, spans in zip(texts, labels, strict=True) for span in spans if span.parts]
    if broken and args.format != "jsonl":
        span, text = broken[0]
        raise DataError(
            f"the model found entities with gaps, such as {span.label} {span.text_in(text)!r} in {text!r:.60}, which "
            f"--format {args.format} cannot hold; give --format jsonl, or --no-labels"
        )
    return [
        Document(
            suggestion.text,
            spans,
            {"rank": suggestion.rank, "line": suggestion.line}
            | ({} if suggestion.uncertainty is None else {"uncertainty": round(suggestion.uncertainty, 4)}),
            is_labelled=not args.no_labels,
            is_suggested=not args.no_labels,
        )
        for suggestion, spans in zip(suggestions, labels, strict=True)
    ]


def _report(args: argparse.Namespace, selector: Selector, suggestions: list[Suggestion], n_labelled: int) -> None:
    n_chars = sum(len(suggestion.text) for suggestion in suggestions)
    known = f"; {n_labelled:,} {'is' if n_labelled == 1 else 'are'} labelled already" if n_labelled else ""
    print(
        f"wrote {args.output}: {counted(len(suggestions), 'sentence')} of {counted(n_chars, 'character')}, "
        f"out of {selector.n_fitting:,} (of {counted(selector.n_read, 'line')}{known})"
    )
    if len(suggestions) < args.n:
        were = f"{args.n:,} {'was' if args.n == 1 else 'were'} requested"
        tell(f"{were}; there are no more that differ enough")


def _fingerprint(args: argparse.Namespace, settings: Settings, labelled: list[str], finder: EntityFinder | None) -> str:
    """A hash of everything that a selection depends on."""
    from cige.bulk.fingerprint import versions_of
    from cige.folders.hub import model_folder

    file = os.stat(args.source)
    versions = None if finder is None else versions_of(finder, model_folder(args.model), names=args.names)
    parts = (settings, versions, args.labels, args.types, labelled, os.path.abspath(args.source))
    return hashlib.sha256(repr((*parts, file.st_size, file.st_mtime_ns)).encode("utf-8", "surrogatepass")).hexdigest()
