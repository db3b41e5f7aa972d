"""The names that were written down for a sentence, and where they stand in it.

A row of an answer file is `part<TAB>line<TAB>checksum<TAB>name|TYPE<TAB>...`. A name counts at each of its occurrences
that does not lie inside a longer name of the row; `name|TYPE|2` is the second occurrence alone.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass
from pathlib import Path

ANSWERS = Path(__file__).parent / "today"  # the folder of the answer files
TYPES = (
    *("PER", "LOC", "SCENE", "GOVERNMENT", "COMPANY", "ORG"),
    *("BRAND", "PRODUCT", "MEDICINE", "GAME", "BOOK", "VIDEO", "SONG"),
)


@dataclass(frozen=True)
class Row:
    """An annotated line of a corpus.

    Attributes:
        part: the file of the corpus, such as "zh_corpus3".
        line: its number in that file, from 1.
        checksum: of the line's text, eight hexadecimal digits.
        names: what was written down, in the form of the answer file.
    """

    part: str
    line: int
    checksum: str
    names: tuple[str, ...]


def checksum(text: str) -> str:
    return f"{zlib.crc32(text.encode('utf-8')):08x}"


def read_rows(path: Path) -> list[Row]:
    """The rows of an answer file; lines that begin with # are comments."""
    rows = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if not line or line.startswith("#"):
            continue
        part, place, code, *names = line.split("\t")
        if not place.isdigit():
            raise ValueError(f"{path}, line {number}: expected part, line number, checksum, names; got {line!r}")
        rows.append(Row(part, int(place), code, tuple(names)))
    return rows


def spans_of(text: str, names: tuple[str, ...]) -> list[tuple[int, int, str]]:
    """(start, end, type) of every name, in order; longer names take their place first.

    Raises:
        ValueError: a name is not in the text, or its form or its type is unknown.
    """
    candidates = [place for written in names for place in _places(text, written)]
    taken = [False] * len(text)
    spans = []
    for start, end, label in sorted(candidates, key=lambda place: (place[0] - place[1], place[0])):
        if not any(taken[start:end]):
            taken[start:end] = [True] * (end - start)
            spans.append((start, end, label))
    return sorted(spans)


def _places(text: str, written: str) -> list[tuple[int, int, str]]:
    """Where a name stands; titles may hold the separator, so it is looked for from the end."""
    form = re.fullmatch(r"(.+?)\|([A-Z]+)(?:\|(\d+))?", written)
    if form is None or form[2] not in TYPES:
        raise ValueError(f"{written!r}: expected name|TYPE or name|TYPE|occurrence, with a type of {', '.join(TYPES)}")
    starts = [match.start() for match in re.finditer(re.escape(form[1]), text)]
    if form[3] is not None:
        starts = starts[int(form[3]) - 1 : int(form[3])] if int(form[3]) else []
    if not starts:
        raise ValueError(f"{written!r} is not in {text!r}")
    return [(start, start + len(form[1]), form[2]) for start in starts]
