"""Find entities in a text, in each line of a file, or in each line of standard input.

Examples:
  cige predict "罗氏公司总部设在瑞士巴塞尔。"
  cige predict news.txt --lexicon-add names.txt --words
  cige predict news.txt --labels PER,ORG --min-score 0.8
  cige predict report.txt --consistent          # the whole file as one document
  tail -f log.txt | cige predict --format jsonl --batch-size 1
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from cige.commands.options import (
    add_model_options,
    add_request_options,
    at_least,
    load_finder,
    load_ner,
    make_console,
    request_of,
)
from cige.commands.texts import add_source_argument, texts_of, whole_text_of
from cige.json_text import to_json
from cige.text.visible import visible

if TYPE_CHECKING:
    from rich.table import Table

    from cige.api import NER
    from cige.entities.entity import Entity
    from cige.explain.evidence import EntityEvidence
    from cige.tagging.finder import EntityFinder
    from cige.tagging.selection import Request

SHOWN_CHARS = 300  # maximum length of the text printed above its table; the table lists the entities of the whole text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_source_argument(parser, "texts to process, one per line")
    add_model_options(parser)
    add_request_options(parser)
    parser.add_argument(
        "--format",
        choices=("table", "jsonl"),
        default="table",
        help="output format, of which `cige convert` makes those of annotation tools from jsonl (default: table)",
    )
    parser.add_argument("--words", action="store_true", help="add the lattice words that each entity attended to most")
    parser.add_argument(
        "--consistent",
        action="store_true",
        help="treat all lines as one document; if a name was found at one place and missed at another, predict again "
        "with the found names as words (of nested entities, those of --flat)",
    )
    parser.add_argument(
        "--batch-size",
        type=at_least(1),
        default=16,
        metavar="N",
        help="texts per batch; with 1, each result is printed before the next text is read (default: 16)",
    )
    parser.set_defaults(error=parser.error)


def run(args: argparse.Namespace) -> None:
    if args.consistent and (args.words or args.recall is not None):
        args.error(
            f"--consistent cannot be combined with {'--words' if args.words else '--recall'}; give one of the two"
        )
    ner = (load_ner if args.words else load_finder)(args.model, args)
    batch_size = 1 if args.source == "-" and sys.stdin.isatty() else args.batch_size
    if args.consistent:
        flat = replace(request_of(args), nested=False)  # names are looked for outside entities
        (entities,) = ner.stream([text := whole_text_of(args.source)], ner.select(flat), consistent=True)
        results: Iterable[Any] = [(text, _without_words(entities))]
    else:
        results = _predict(ner, texts_of(args.source), request_of(args), batch_size, with_words=args.words)
    print_results = _print_lines if args.format == "jsonl" else _print_tables
    print_results(results, args.words)


def _predict(
    ner: EntityFinder, texts: Iterable[str], request: Request, batch_size: int, *, with_words: bool
) -> Iterator[tuple[str, list[EntityEvidence]]]:
    if with_words:
        for text in texts:
            yield text, cast("NER", ner).explain(text, removals=False, n_words=3, request=request).entities
        return
    from cige.tagging.consistency import with_texts

    read = partial(ner.stream, selection=ner.select(request), batch_size=batch_size)
    for text, entities in with_texts(texts, read):
        yield text, _without_words(entities)


def _without_words(entities: Iterable[Entity]) -> list[EntityEvidence]:
    from cige.explain.evidence import EntityEvidence

    return [EntityEvidence(entity) for entity in entities]


def _print_lines(results: Iterable[tuple[str, list[EntityEvidence]]], with_words: bool) -> None:
    for text, entities in results:
        listed = []
        for evidence in entities:
            words = {"words": [word.to_dict() for word in evidence.words]} if with_words else {}
            listed.append({**evidence.entity.to_dict(), **words})
        print(to_json({"text": text, "entities": listed}), flush=True)


def _print_tables(results: Iterable[tuple[str, list[EntityEvidence]]], with_words: bool) -> None:
    from rich.text import Text

    console = make_console()
    for text, entities in results:
        if text.strip():
            more = f"… ({len(text):,} characters)" if len(text) > SHOWN_CHARS else ""
            console.print(Text(visible(text[:SHOWN_CHARS]) + more), soft_wrap=True)
            console.print(_table(entities, with_words) if entities else Text("(no entity)", style="dim"))
            console.print()


def _table(entities: list[EntityEvidence], with_words: bool) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("entity", style="bold", overflow="fold")
    table.add_column("label")
    table.add_column("offsets", justify="right")
    table.add_column("score", justify="right")
    if with_words:
        table.add_column(
            "attended words (share of attention to words; * user word, with its label; ! forced)", overflow="fold"
        )
    for evidence in entities:
        entity = evidence.entity
        score = "forced" if entity.forced else f"{entity.score:.3f}"
        row: list[str | Text] = [Text(visible(entity.text)), entity.label, entity.shown_offsets(), score]
        if with_words:
            row.append(Text("  ".join(f"{w.word.shown()}\xa0{w.share:.0%}" for w in evidence.words)))
        table.add_row(*row)
    return table
