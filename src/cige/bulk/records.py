"""The records of finished parts: what is committed of a part, and reading it again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TypedDict

from cige.errors import DataError

_NEEDED = {"part": int, "rows": int, "rejected": int, "entities": int, "bytes": int, "sha256": str}


class PartRecord(TypedDict, total=False):
    """What is committed of a finished part, as JSON; `bytes` and `sha256` are those of its file. `read_record` checks
    that what a job needs is there."""

    part: int
    file: str
    first_row: int
    rows: int
    rejected: int
    entities: int
    model: str
    lexicon: str
    precision: str
    names: str
    lexicon_versions: list[str]
    bytes: int
    sha256: str


def read_record(path: Path, number: int) -> PartRecord | None:
    """The record of the part with this number, or None; raises a DataError if it is damaged or of another part."""
    again = "remove this file and run the same command again: it annotates only this part"
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (ValueError, RecursionError) as reason:
        raise DataError(f"{path}: damaged, and no record of part {number} ({reason}); {again}") from None
    given = record if isinstance(record, dict) else {}
    wrong = [name for name, kind in _NEEDED.items() if type(given.get(name)) is not kind]
    if wrong:
        absent = f"{', '.join(wrong)} missing or of a wrong type"
        raise DataError(f"{path}: damaged, and no record of part {number} ({absent}); {again}")
    if given["part"] != number:
        raise DataError(f"{path}: this is the record of part {given['part']}, not of part {number}; {again}")
    return record
