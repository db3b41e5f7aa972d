"""Units: the sections of a corpus, each of which becomes one shard.

A section ends at the end of a document. The units depend only on the text and the size of a unit, not on the number of
processes, and each process reads only the bytes of its own units. To divide an uncompressed file, a few kilobytes are
read at each place where a unit is full. Compressed files are not seekable, so the dividing process decompresses their
text and sends it with the unit.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import IO

from cige.errors import DataError, LexiconError
from cige.folders.packed import unpack
from cige.lexicon.text_file import DAMAGE, UTF8_BOM, damaged, open_file
from cige.text.encodings import UTF16_MARKS, how_to_convert

_PROBE = 1 << 16  # bytes that are read first to find the end of a document
_BLANK_LINE, _LINE = re.compile(rb"\n[ \t\r\f\v]*\n"), re.compile(rb"\n")


@dataclass(frozen=True)
class Stretch:
    """Bytes [start, stop) of a file, which are complete lines.

    Attributes:
        path: the path of the file; start, stop: offsets in bytes of its decompressed text.
        text: the bytes of a compressed file; None if the file must be read.
        begins_inside, ends_inside: whether a long document was cut at this end.
    """

    path: str
    start: int
    stop: int
    text: bytes | None = None
    begins_inside: bool = False
    ends_inside: bool = False

    def read(self) -> bytes:
        """The bytes. Raises a LexiconError if the file cannot be read or is UTF-16, and a DataError if it has become
        shorter."""
        raw = self.text
        if raw is None:
            try:
                with open_file(self.path) as file:
                    file.seek(self.start)
                    raw = file.read(self.stop - self.start)
            except OSError as reason:
                raise damaged(self.place, reason) from reason
        if len(raw) != self.stop - self.start:
            raise DataError(f"{self.path}: became shorter while it was read; start again without changing it")
        if self.start == 0:
            if raw.startswith(UTF16_MARKS):
                raise LexiconError(f"{self.path}, line 1: {how_to_convert(raw[:200])}")
            raw = raw.removeprefix(UTF8_BOM)
        return raw

    @property
    def place(self) -> str:
        """The place of line 1 of the stretch, for messages."""
        return f"{self.path} from byte {self.start:,}" if self.start else self.path


@dataclass(frozen=True)
class Unit:
    """The text of shard `number`: stretches of one file, or of several small ones."""

    number: int
    stretches: tuple[Stretch, ...]


def cut_units(corpus: Sequence[str | os.PathLike[str]], size: int, *, is_document_a_line: bool) -> Iterator[Unit]:
    """Cut a corpus into units of at least `size` bytes, except the last. A document of more than twice that size is cut
    at the end of a line. Raises a LexiconError if a file cannot be read, or is compressed and damaged."""
    stretches: list[Stretch] = []
    number = n_bytes = 0

    def room() -> int:
        return size - n_bytes

    for path in corpus:
        for stretch in _stretches(str(path), room, size, _LINE if is_document_a_line else _BLANK_LINE):
            stretches.append(stretch)
            n_bytes += stretch.stop - stretch.start
            if n_bytes >= size:
                yield Unit(number, tuple(stretches))
                stretches, n_bytes, number = [], 0, number + 1
    if stretches:
        yield Unit(number, tuple(stretches))


def _stretches(path: str, room: Callable[[], int], most: int, end: re.Pattern[bytes]) -> Iterator[Stretch]:
    start, begins_inside = 0, False
    try:
        with open_file(path) as file, unpack(file) as content:
            is_packed, ahead = content is not file, b""  # text of a compressed file that was read beyond a stretch
            while True:
                n = room()
                if is_packed:
                    ahead += content.read(max(0, n - len(ahead)))
                    text, ahead = ahead[:n], ahead[n:]
                    stop = start + len(text)
                else:
                    stop = min(start + n, os.fstat(content.fileno()).st_size)
                    content.seek(stop)
                n_more, ahead, ends_inside = _end_in(content, ahead, most, end)
                stop += n_more
                if stop == start:
                    return
                packed = text + ahead[:n_more] if is_packed else None
                yield Stretch(path, start, stop, packed, begins_inside, ends_inside)
                start, begins_inside, ahead = stop, ends_inside, ahead[n_more:] if is_packed else b""
    except DAMAGE as reason:
        raise damaged(f"{path}, after byte {start:,}", reason) from reason


def _end_in(content: IO[bytes], tail: bytes, most: int, end: re.Pattern[bytes]) -> tuple[int, bytes, bool]:
    """(end of the first document in the following text, the text read, whether the document continues there)."""
    while True:
        if match := end.search(tail, 0, most):
            return match.end(), tail, False
        if len(tail) >= most:
            line = tail.rfind(b"\n", 0, most) + 1 or tail.find(b"\n", most) + 1
            if line:
                return line, tail, True
        block = content.read(max(_PROBE, len(tail)))  # as much again, so that a line without end takes linear time
        if not block:
            return len(tail), tail, False
        tail += block
