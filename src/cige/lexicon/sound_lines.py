"""SoundLines: the lines of a corpus that are text. A few other lines are left out and counted; many are an error."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from cige.errors import LexiconError
from cige.lexicon.text_file import read_lines, shown

_N_SHOWN = 3
_N_TRIED, _MAX_BAD_SHARE = 1000, 0.01  # a file with a larger share of bad lines is not UTF-8 text


class SoundLines:
    """Iterates over (line number from 1, text) of a UTF-8 file, plain, .gz or .xz.

    Args:
        path: of the file.
        lines: (number from 1, line) of a part of the file that `path` names in messages; None reads the file.

    Attributes:
        n_lines: number of lines read so far.
        n_bad: number of lines left out because they are not UTF-8 or contain a NUL.
        bad_lines: the first of these, in a printable form.

    Raises (while iterating):
        LexiconError: the file cannot be read, or more than 1% of its lines are bad.
    """

    def __init__(self, path: str | os.PathLike[str], lines: Iterable[tuple[int, bytes]] | None = None) -> None:
        self._path, self._lines = path, lines
        self.n_lines = 0
        self.n_bad = 0
        self.bad_lines: list[str] = []

    def __iter__(self) -> Iterator[tuple[int, str]]:
        for number, raw in read_lines(self._path) if self._lines is None else self._lines:
            self.n_lines = number
            text = _decoded(raw)
            if text is not None:
                yield number, text
                continue
            self.n_bad += 1
            if len(self.bad_lines) < _N_SHOWN:
                self.bad_lines.append(f"line {number}: {shown(raw[:20])}")
            self._check(max(_N_TRIED, number))
        if self.n_bad > 1 or self.n_bad == self.n_lines:
            self._check(self.n_lines)

    def _check(self, n_tried: int) -> None:
        if self.n_bad > n_tried * _MAX_BAD_SHARE:
            raise LexiconError(
                f"{self._path}: {self.n_bad:,} of the first {self.n_lines:,} lines are not UTF-8 text "
                f"({self.bad_lines[0]}); expected text with one sentence per line (for GBK: iconv -f gb18030 -t utf-8)"
            )


def _decoded(raw: bytes) -> str | None:
    if b"\0" in raw:
        return None
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return None
