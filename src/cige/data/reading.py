"""Sentences from files and back, whatever the format."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from pathlib import Path

from cige.data.columns import format_columns, parse_columns
from cige.data.jsonl import format_json_lines, looks_like_json_lines, parse_json_lines
from cige.data.labelled import LabelledFile, RepairWarning
from cige.data.sentence import Sentence
from cige.data.text_files import read_text, write_text
from cige.errors import DataError

COLUMN_FORMATS = ("bmes", "bioes", "bio")
JSON_FORMATS = ("jsonl", "cluener")
FORMATS = COLUMN_FORMATS + JSON_FORMATS
_BY_NAME = {".bmes": "bmes", ".bioes": "bioes", ".bieos": "bioes", ".bio": "bio", ".jsonl": "jsonl", ".json": "jsonl"}


def read_sentences(path: str | Path, *, format: str = "auto", repair: bool = False) -> list[Sentence]:
    """Read the labelled sentences of a file (UTF-8; plain, .gz or .xz).

    `format`: bmes, bioes, bio, jsonl, cluener, or "auto" to tell it from the contents.
    `repair`: mend illegal tag transitions (see `tags.repair`) and keep the outermost of overlapping spans; a
    RepairWarning then says how many places were mended. `read_labelled` lists them.

    Raises DataError with file and line for anything that cannot be read, and for a file without a sentence.
    """
    found = read_labelled(path, format=format, repair=repair)
    if found.repairs:
        first = found.repairs[0]
        warnings.warn(
            f"{path}: {len(found.repairs)} place(s) mended, the first on line {first.line}: {first.what}",
            RepairWarning,
            stacklevel=2,
        )
    return list(found.sentences)


def read_labelled(path: str | Path, *, format: str = "auto", repair: bool = False) -> LabelledFile:
    """Like `read_sentences`, with the format that was found and the list of repairs in place of a warning."""
    if format != "auto":
        _check_format(format)
    name = str(path)
    text = read_text(path)
    is_json = format in JSON_FORMATS or (
        format == "auto" and (looks_like_json_lines(text) or _BY_NAME.get(_bare_suffix(path)) == "jsonl")
    )
    if is_json:
        found = parse_json_lines(text, name=name, form=format, keep_outermost=repair)
    else:
        scheme = "auto" if format == "auto" else format.upper()
        found = parse_columns(text, name=name, scheme=scheme, repair_tags=repair)
    if not found.sentences:
        raise DataError(f"{path} holds no sentence; expected lines of `character tag` or of JSON objects")
    return found


def write_sentences(path: str | Path, sentences: Iterable[Sentence], *, format: str = "auto") -> None:
    """Write sentences to a file, wholly or not at all; .gz and .xz names are packed.

    `format`: as in `read_sentences`; "auto" takes it from the name (.bmes, .bioes, .bio, .jsonl, ...).

    Raises DataError with the number of a sentence that the format cannot hold; an old file is then unchanged.
    """
    if format == "auto":
        format = _BY_NAME.get(_bare_suffix(path), "")
        if not format:
            raise DataError(f"cannot tell the format from the name {path}; give format= one of {', '.join(FORMATS)}")
    _check_format(format)
    is_json = format in JSON_FORMATS
    write_text(path, format_json_lines(sentences, format) if is_json else format_columns(sentences, format.upper()))


def _check_format(format: str) -> None:
    if format not in FORMATS:
        raise DataError(f"unknown format {format!r}; expected auto or one of {', '.join(FORMATS)}")


def _bare_suffix(path: str | Path) -> str:
    """The suffix of a name, seen through .gz and .xz."""
    path = Path(path)
    return Path(path.stem).suffix if path.suffix in (".gz", ".xz") else path.suffix
