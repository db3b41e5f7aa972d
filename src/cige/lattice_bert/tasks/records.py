"""Records: the JSON objects of a task's files, whose errors name the file and line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, TypeVar

from cige.data.text_files import read_text
from cige.errors import DataError
from cige.json_text import JsonObject, to_json

T = TypeVar("T")
SUFFIXES = (".jsonl", ".json", ".txt", ".bmes", ".bio")
PACKED = ("", ".xz", ".gz")
_TYPE_NAMES = {str: "text", int: "whole number", list: "list", dict: "object"}


@dataclass(frozen=True)
class Record:
    """One JSON object and its location ("dev.json, line 3")."""

    values: JsonObject
    where: str

    @classmethod
    def of(cls, value: object, where: str) -> Record:
        """The record of a JSON value; raises a DataError if that is not an object."""
        if not isinstance(value, dict):
            raise DataError(f"{where}: {to_json(value, ensure_ascii=True)[:60]}, expected an object")
        return cls(value, where)

    def get(self, key: str, kind: type[T]) -> T:
        """The value of a field; raises DataError if it is missing or has another type."""
        if key not in self.values:
            raise self.wrong(f"the field {key!r} is missing; it has {', '.join(self.values) or 'none'}")
        value = self.values[key]
        if not isinstance(value, kind) or isinstance(value, bool):
            raise self.wrong(f"{key} is {to_json(value, ensure_ascii=True)[:60]}, expected a {_TYPE_NAMES[kind]}")
        return value

    def text(self, key: str) -> str:
        return self.get(key, str)

    def texts(self, key: str) -> list[str]:
        """A list of texts."""
        values = self.get(key, list)
        if not all(isinstance(value, str) for value in values):
            raise self.wrong(f"{key} is {to_json(values)[:60]}, expected texts only")
        return values

    def name(self, *keys: str, default: object) -> str:
        """The first of several fields that exists, as text; ids are numbers in some files and strings in others."""
        return str(next((self.values[key] for key in keys if key in self.values), default))

    def part(self, key: str) -> Record:
        """An object within this one."""
        return Record(self.get(key, dict), f"{self.where}, {key}")

    def parts(self, key: str) -> Iterator[Record]:
        """The objects of a list within this one."""
        for number, value in enumerate(self.get(key, list)):
            yield Record.of(value, f"{self.where}, {key}[{number}]")

    def wrong(self, what: str) -> DataError:
        """An error about this record."""
        return DataError(f"{self.where}: {what}")


def split_names(split: str) -> tuple[str, ...]:
    """The possible names of a split's file, in order of preference; CLUE numbers some of its test files."""
    return f"{split}_full", split, f"{split}1.1", f"{split}1.0"


def find_file(folder: Path, *names: str) -> Path | None:
    """The first existing NAME.jsonl, .json, .txt, .bmes or .bio, plain or compressed, of several names, or None."""
    paths = (folder / "".join(parts) for parts in product(names, SUFFIXES, PACKED))
    return next((path for path in paths if path.is_file()), None)


def read_records(path: Path) -> list[Record]:
    """Read the objects of a file with one object per line."""
    records = []
    for number, line in enumerate(read_text(path).split("\n"), 1):
        if line.strip():
            where = f"{path}, line {number}"
            records.append(Record.of(_load(line, where), where))
    if not records:
        raise DataError(f"{path} holds no record; expected a JSON object on each line")
    return records


def read_document(path: Path) -> Any:
    """Read a file that holds a single JSON value."""
    return _load(read_text(path), str(path))


def is_document(path: Path) -> bool:
    """Whether a file holds a single JSON value rather than one per line, judging by its first line."""
    first = next((line for line in read_text(path).split("\n") if line.strip()), "")
    try:
        value = json.loads(first)
    except ValueError:
        return True  # it continues
    return not isinstance(value, dict) or "data" in value


def _load(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where}: not JSON ({error})") from None
