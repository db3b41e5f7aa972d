"""Convert labelled documents between the formats of cige, annotation tools, spaCy and Hugging Face.

Examples:
  cige convert labelled.jsonl tasks.json --to label-studio
  cige convert project.jsonl train.bmes --from doccano
  cige convert train.parquet train.jsonl --tag-names O,B-PER,I-PER,B-LOC,I-LOC
  cige convert reports.csv brat/ --text-column body --to brat

If no format is given, it is detected from the content and the file name. `cige train --data` and `cige evaluate` read
all of these formats except texts without labels.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from cige.commands.options import add_repair_option, tell, tell_repairs
from cige.text.counted import counted

if TYPE_CHECKING:
    from cige.data.documents import Document


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from cige.data.documents.formats import FORMATS, written

    listed = "\n".join(
        f"  {name:<14}{format.what}{'' if format.write else ' (read only)'}" for name, format in FORMATS.items()
    )
    parser.epilog = f"formats:\n{listed}"
    parser.add_argument("input", metavar="INPUT", help="file, folder of files in one format, or brat folder")
    parser.add_argument("output", metavar="OUTPUT", help="file to write, or folder for brat")
    parser.add_argument(
        "--from", dest="format", choices=FORMATS, metavar="FORMAT", help="format of INPUT (default: detected)"
    )
    parser.add_argument("--to", choices=written(), metavar="FORMAT", help="format of OUTPUT (default: by its suffix)")
    parser.add_argument(
        "--text-column",
        default="text",
        metavar="NAME",
        help="column with the text, in CSV, TSV and Parquet (default: text)",
    )
    parser.add_argument(
        "--entities-column", default="entities", metavar="NAME", help="column with the entities (default: entities)"
    )
    parser.add_argument("--tag-names", metavar="O,B-PER,...", help="names of numeric tags, in order")
    add_repair_option(parser)


def run(args: argparse.Namespace) -> None:
    from cige.data.documents import ReadingOptions, read_documents, write_documents
    from cige.data.documents.formats import format_to_write

    options = ReadingOptions(
        text_column=args.text_column,
        entities_column=args.entities_column,
        tag_names=tuple(name.strip() for name in (args.tag_names or "").split(",") if name.strip()),
        repair=args.repair,
    )
    documents = read_documents(args.input, format=args.format or "auto", options=options)
    if args.repair:
        documents = [_without_overlaps(document, args.input, n) for n, document in enumerate(documents, 1)]
    write_documents(args.output, documents, format=args.to or "auto")
    _tell_confirmed(documents, format_to_write(args.output, args.to or "auto"))
    _tell_left_out(documents)
    n_spans = sum(len(document.spans) for document in documents)
    n_unlabelled = sum(not document.is_labelled for document in documents)
    unlabelled = f", {n_unlabelled:,} of them unlabelled" if n_unlabelled else ""
    entities = counted(n_spans, "entity", "entities")
    print(f"wrote {args.output}: {counted(len(documents), 'document')} with {entities}{unlabelled}")


def _tell_left_out(documents: Sequence[Document]) -> None:
    """Print on standard error what entities have in the old file and not in the new one."""
    keys = sorted({key for document in documents for key in document.left_out})
    if keys:
        tell(f"entities are written without their {', '.join(keys)}, so keep INPUT")


def _tell_confirmed(documents: Sequence[Document], format: str) -> None:
    """Print on standard error what is labelled in the new file although nobody has labelled it."""
    from cige.data.documents.formats import FORMATS

    n_unlabelled = sum(not document.is_labelled for document in documents)
    n_suggested = sum(document.is_suggested for document in documents)
    which = "training on this file takes that as correct, so label these texts first or leave them out"
    if n_unlabelled and not FORMATS[format].has_unlabelled:
        texts = counted(n_unlabelled, "unlabelled text is", "unlabelled texts are")
        why = f"{format} has no mark for unlabelled texts"
        tell(f"{texts} written as without entities, since {why}; {which}")
    if n_suggested and not FORMATS[format].has_predictions:
        texts = counted(n_suggested, "text has", "texts have")
        why = f"they are written as entities, since {format} has no mark for predictions"
        tell(f"{texts} a model's predictions, which nobody has confirmed; {why}; {which}")


def _without_overlaps(document: Document, file: str, number: int) -> Document:
    """The document with the outermost of overlapping entities; the others are listed on standard error."""
    from cige.data.jsonl import repairs_of, without_overlaps

    spans, dropped = without_overlaps(document.spans)
    tell_repairs(file, repairs_of(dropped, document.text, document.line or number))
    return replace(document, spans=tuple(spans))
