"""The formats of documents: their names, readers and writers, and the detection of the format of a file."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from cige.data.columns import DOCSTART
from cige.data.documents import brat, folders, lines, tables, tokens, tools
from cige.data.documents.document import Document, ReadingOptions, read_objects
from cige.data.jsonl import is_pair, parsed_or_none
from cige.data.text_files import read_text
from cige.errors import DataError
from cige.json_text import JsonObject

Read = Callable[[Path, ReadingOptions], list[Document]]
Write = Callable[[Path, Iterable[Document]], None]


@dataclass(frozen=True)
class Format:
    """A format.

    Attributes:
        what: a short description.
        read, write: the reader and the writer; None if cige has none.
        suffixes: suffixes of file names that usually have this format.
        has_unlabelled: whether a text without annotation differs from one that has no entities.
        has_predictions: whether predictions of a model differ from confirmed entities.
    """

    what: str
    read: Read
    write: Write | None = None
    suffixes: tuple[str, ...] = ()
    has_unlabelled: bool = False
    has_predictions: bool = False


def _columns(scheme: str) -> tuple[Read, Write]:
    return partial(lines.read_columns, scheme=scheme), partial(lines.write_columns, scheme=scheme)


def _objects(
    place: str,
    read: Callable[[JsonObject, int], Document],
    has_relations: Callable[[JsonObject], bool] | None = None,
) -> Read:
    return partial(read_objects, place=place, read=read, has_relations=has_relations)


def _table(form: str) -> Read:
    return partial(tables.read_table, form=form)


FORMATS: dict[str, Format] = {
    "txt": Format("one text per line, unlabelled", lines.read_txt, None, (".txt",)),
    "jsonl": Format(
        "JSON lines of text and entities",
        _objects("line", lines.jsonl_document),
        lines.write_jsonl,
        (".jsonl", ".ndjson"),
        has_unlabelled=True,
    ),
    "cluener": Format("JSON lines of CLUENER", lines.read_cluener, lines.write_cluener),
    "bmes": Format("a character and a BMES tag per line", *_columns("BMES"), (".bmes",)),
    "bioes": Format("a character and a BIOES tag per line", *_columns("BIOES"), (".bioes", ".bieos")),
    "bio": Format("a character and a BIO tag per line", *_columns("BIO"), (".bio",)),
    "conll": Format(
        "2 to 4 columns: token first, tag last",
        partial(lines.read_columns, is_conll=True),
        lines.write_columns,
        (".conll",),
    ),
    "csv": Format("CSV with a column of texts", _table("csv"), tables.write_csv, (".csv",), has_unlabelled=True),
    "tsv": Format("TSV with a column of texts", _table("tsv"), tables.write_tsv, (".tsv",), has_unlabelled=True),
    "parquet": Format(
        "Parquet with a column of texts", tables.read_parquet, tables.write_parquet, (".parquet",), has_unlabelled=True
    ),
    "doccano": Format(
        "doccano's JSON lines",
        _objects("line", tools.doccano_document, tools.has_doccano_relations),
        tools.write_doccano,
    ),
    "label-studio": Format(
        "tasks of Label Studio",
        _objects("task", tools.label_studio_document, tools.has_label_studio_relations),
        tools.write_label_studio,
        has_unlabelled=True,
        has_predictions=True,
    ),
    "displacy": Format(
        "displaCy's objects (manual=True)", _objects("object", tools.displacy_document), tools.write_displacy
    ),
    "brat": Format(
        "a folder of brat's .txt and .ann files", brat.read_brat, brat.write_brat, (".ann",), has_unlabelled=True
    ),
    "spacy-json": Format("spaCy's training JSON", tokens.read_spacy_json),
    "docbin": Format("spaCy's DocBin", tokens.read_docbin, None, (".spacy",)),
    "hugging-face": Format("rows of tokens and ner_tags", tokens.read_hugging_face),
}

# Other suffixes that files of a format have. Names that end in .txt count where a folder has no others.
_ALSO_NAMED: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("cluener", "doccano", "label-studio", "displacy", "spacy-json"), (".jsonl", ".ndjson", ".json")),
    "jsonl": (".json",),
    "hugging-face": (".parquet", ".jsonl", ".json"),
    "conll": (".bio", ".bmes", ".bioes", ".bieos", ".txt"),
    **dict.fromkeys(("bmes", "bioes", "bio", "csv", "tsv"), (".txt",)),
}


def read_documents(path: str | Path, *, format: str = "auto", options: ReadingOptions | None = None) -> list[Document]:
    """Read the documents of a file, of a brat folder, or of all files of a folder, which have one format.

    Args:
        format: a name in FORMATS; "auto" detects the format from the content and the file name.
        options: options for reading, which are not in the file.

    Raises:
        DataError: a file cannot be read, or its format cannot be detected, or a folder has no files of the format, or
            files of several formats or splits; the message contains the place.
    """
    path = Path(path)
    if format != "auto":
        known(format)
    files = _in_folder(path, format) if path.is_dir() else [(find_format(path) if format == "auto" else format, path)]
    return [document for name, file in files for document in FORMATS[name].read(file, options or ReadingOptions())]


def write_documents(path: str | Path, documents: Iterable[Document], *, format: str = "auto") -> None:
    """Write documents to a file, or to a folder for brat, completely or not at all.

    Args:
        format: a name in FORMATS; "auto" uses the suffix of the file name.

    Raises:
        DataError: the format is unknown or cannot be written, or a document cannot be represented in it.
    """
    path = Path(path)
    name = format_to_write(path, format)
    write = FORMATS[name].write
    if write is None:
        raise DataError(f"format {name} is only read; cige writes {', '.join(written())}")
    write(path, documents)


def format_to_write(path: str | Path, format: str = "auto") -> str:
    """The name of the format that `write_documents` uses; raises a DataError if it is unknown."""
    name = _by_suffix(Path(path)) if format == "auto" else known(format)
    if name is None:
        raise DataError(
            f"cannot tell the format from the name {path}; name it by --to (in Python, format=): one of "
            f"{', '.join(written())}"
        )
    return name


def written() -> list[str]:
    """The formats that can be written."""
    return [name for name, format in FORMATS.items() if format.write is not None]


def known(format: str) -> str:
    """Return `format` if it is a known format; raises a DataError otherwise."""
    if format not in FORMATS:
        raise DataError(f"unknown format {format!r}; expected auto or one of {', '.join(FORMATS)}")
    return format


def find_format(path: Path) -> str:
    """Detect the format of a file, or of the files of a folder, from its content and its name. Raises a DataError if it
    cannot be detected, or a folder has files of several formats."""
    if path.is_dir():
        return _in_folder(path, "auto")[0][0]
    name = of_name(path)
    if name is not None and name not in ("txt", "jsonl"):
        return name
    text = read_text(path, again=True)
    found = of_json(text) or _of_columns(text) or name
    if found is None:
        raise DataError(f"cannot tell the format of {path}; give one of {', '.join(FORMATS)}")
    return found


def of_name(path: Path) -> str | None:
    """The format of a file according to its name, or for Parquet according to its columns."""
    name = _by_suffix(path)
    if name == "txt" and path.with_suffix(".ann").exists():
        return "brat"
    if name == "parquet" and {"tokens", "ner_tags"} <= set(tables.parquet_columns(path)):
        return "hugging-face"
    return name


def of_json(text: str) -> str | None:
    """The format of JSON or JSON lines, according to the first value; None if it is not JSON."""
    value = _first_value(text)
    if isinstance(value, list):
        return "spacy-json" if is_pair(value) else None
    if not isinstance(value, dict):
        return None
    labels = value.get("label", value.get("labels"))
    entities = value.get("entities")
    if "tokens" in value and "ner_tags" in value:
        return "hugging-face"
    if "paragraphs" in value:
        return "spacy-json"
    if isinstance(value.get("data"), dict):
        return "label-studio"
    if "ents" in value:
        return "displacy"
    if isinstance(labels, dict) and entities is None:
        return "cluener"
    if isinstance(labels, list) and entities is None:
        return "label-studio" if labels and isinstance(labels[0], dict) else "doccano"
    if isinstance(entities, list) and entities and isinstance(entities[0], dict) and "start_offset" in entities[0]:
        return "doccano"
    return "jsonl"


def _first_value(text: str) -> Any:
    start = text.lstrip()
    if not start.startswith(("[", "{")):
        return None
    value = parsed_or_none(start.split("\n", 1)[0])
    if value is None:
        value = parsed_or_none(start)
    return value[0] if isinstance(value, list) and value and not is_pair(value) else value


def _of_columns(text: str) -> str | None:
    """The format of a file of columns, according to their number; the tag scheme is detected on reading."""
    first = re.search(r"[^\n]*\S[^\n]*", text)
    if first is None:
        return None
    columns = first[0].split()
    has_tag = len(columns) in (2, 3, 4) and re.fullmatch(r"O|[BMIESLU]-\S+", columns[-1])
    return "conll" if has_tag or first[0].startswith(DOCSTART) else None


def _in_folder(folder: Path, format: str) -> list[tuple[str, Path]]:
    """The documents of a folder: the format and the path of each file, or of the folder itself if it is brat's. Raises
    a DataError if there are no files of the format, or files of several formats or splits."""
    known_suffixes = {".json", *chain(*(known.suffixes for known in FORMATS.values()))}
    known = folders.by_suffix(folder, known_suffixes)
    if format == "brat" or (format == "auto" and (not known or ".ann" in known)):
        return [("brat", folder)]
    if format != "auto":
        wanted = (*FORMATS[format].suffixes, *_ALSO_NAMED.get(format, ()))
        files = folders.one_split(folder, [file for suffix in wanted for file in known.get(suffix, ())])
        if not files:
            raise DataError(f"{folder} is a folder without files of format {format} ({', '.join(wanted)})")
        return [(format, file) for file in files]
    formats = {file: find_format(file) for file in folders.one_split(folder, list(chain(*known.values())))}
    names = Counter(formats.values())
    if known.keys() == {".txt"} and names.keys() != {"conll"}:
        return [("brat", folder)]
    if len(names) > 1:
        several = ", ".join(f"{name} ({n:,})" for name, n in sorted(names.items()))
        raise DataError(f"{folder} has files of several formats: {several}; give the format, or a folder with one")
    return [(name, file) for file, name in formats.items()]


def _by_suffix(path: Path) -> str | None:
    return next((name for name, format in FORMATS.items() if folders.suffix(path) in format.suffixes), None)
