"""A text as a tagger reads it: windows, the lattice of each, and their words with offsets into the whole text."""

from __future__ import annotations

from dataclasses import dataclass

from cige.lattice.lattice import Lattice, build_lattice
from cige.lexicon.lexicon import LexiconSnapshot
from cige.text.windows import LINE_BREAKS, Window, split_windows


@dataclass(frozen=True)
class LatticeWord:
    """A word over [start, end) of the user's text, spelled as the lexicon has it; `is_user` if the user added it."""

    start: int
    end: int
    text: str
    is_user: bool


@dataclass(frozen=True)
class ReadWindow:
    """A window of a text, and the lattice of what is read in it (its trailing line breaks are not)."""

    window: Window
    lattice: Lattice


def read_windows(text: str, snapshot: LexiconSnapshot) -> list[ReadWindow]:
    """The windows of a text that hold more than whitespace, each with its lattice."""
    return [ReadWindow(window, lattice_of(text, window, snapshot)) for window in windows_of(text)]


def windows_of(text: str) -> list[Window]:
    """The windows worth reading: those whose core is not whitespace alone."""
    return [w for w in split_windows(text) if not text[w.core_start : w.core_end].isspace()]


def lattice_of(text: str, window: Window, snapshot: LexiconSnapshot) -> Lattice:
    return build_lattice(text[window.start : window.end].rstrip(LINE_BREAKS), snapshot)


def lattice_word(row: int, part: ReadWindow, snapshot: LexiconSnapshot) -> LatticeWord:
    """Word number `row` of a window's lattice, with offsets into the whole text."""
    start, end, word = part.lattice.words[row].tolist()
    offset = part.window.start
    return LatticeWord(offset + start, offset + end, snapshot.word(word), word >= part.lattice.n_base)


def core_words(part: ReadWindow, snapshot: LexiconSnapshot) -> list[LatticeWord]:
    """The words of a window's lattice that start in its core, with offsets into the whole text."""
    words = (lattice_word(row, part, snapshot) for row in range(part.lattice.n_words))
    return [word for word in words if part.window.core_start <= word.start < part.window.core_end]
