"""Prepare texts for taggers: split them into windows, build lattices, and map words to offsets in the whole text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import NamedTuple

import numpy as np

from cige.entities.label_facts import LabelFacts
from cige.lattice.lattice import Lattice, build_lattice
from cige.lexicon.lexicon import LexiconSnapshot
from cige.lexicon.rules import NO_RULES, Rules
from cige.lexicon.user_word import EVIDENCE, FORCE, Mode
from cige.lexicon.word_rules import MAX_WORD_CHARS
from cige.text.cells import LINE_BREAKS
from cige.text.closed import Stretch, closed_stretches, within
from cige.text.visible import visible
from cige.text.windows import Window, split_windows, table_cells

READ_SPACE_AS = "，"  # taggers are trained on text without spaces, in which commas are the usual separators
WIDE_COMMA = "，"
SET_APART_BY = "；"  # of all marks, the one between which single names are found best (docs/reading.md)
HALF_COMMA = re.compile(
    r"(?<=[\u3005-\u3007\u3040-\u30ff\u3400-\u9fff]),|,(?=[\u3005-\u3007\u3040-\u30ff\u3400-\u9fff])"
)
END_OF_CELL = re.compile(f"[{LINE_BREAKS}\t]")
SENTENCE_MARK = re.compile("[，。！？；：、…,!?;:]")


@dataclass(frozen=True)
class LatticeWord:
    """A lexicon word over [start, end) of the user's text, in the spelling of the lexicon.

    `is_user` tells whether the user added it, `label` is the entity type that the user gave it or None, and `mode` is
    "evidence", "type" or "force" (blocked words are not listed).
    """

    start: int
    end: int
    text: str
    is_user: bool
    label: str | None = None
    mode: Mode = EVIDENCE

    def to_dict(self) -> dict[str, object]:
        """The fields as JSON values; `label` and `mode` only if they are not None or "evidence"."""
        fields = asdict(self)
        left_out = {"label"} if self.label is None else set()
        left_out |= {"mode"} if self.mode == EVIDENCE else set()
        return {name: value for name, value in fields.items() if name not in left_out}

    def shown(self) -> str:
        """The word as shown in tables: `*` and its label mark a user word, and `!` marks a forced one."""
        star = "*" if self.is_user else ""
        return visible(self.text) + star + (self.label or "") + ("!" if self.mode == FORCE else "")


class ReadWindow(NamedTuple):
    """A window of a text, and the lattice of its content without trailing whitespace.

    If the content is set apart, the lattice has a semicolon at either end, and the window begins one character before
    the content, at -1 if the text begins with it. So `window.start` is always the offset of the lattice in the text.
    """

    window: Window
    lattice: Lattice


def read_windows(text: str, snapshot: LexiconSnapshot, facts: LabelFacts | None = None) -> list[ReadWindow]:
    """The windows of a text that contain more than whitespace, each with its lattice. `facts` are those of the model
    that reads the lattices; None reads the text as it stands."""
    closed, rules = closed_stretches(text), snapshot.rules(text)
    return [read_window(text, window, snapshot, closed, rules, facts) for window in windows_of(text, facts, snapshot)]


def windows_of(text: str, facts: LabelFacts | None = None, snapshot: LexiconSnapshot | None = None) -> list[Window]:
    """The windows whose core contains more than whitespace.

    Args:
        facts: those of the model that reads them.
        snapshot: a lexicon. Windows are long enough for those of its user words that begin in their core.
    """
    windows = [w for w in split_windows(text) if not text[w.core_start : w.core_end].isspace()]
    if snapshot is not None and snapshot.user_entries:
        windows = [
            _with_own_words(text, window, snapshot) if window.end > window.core_end else window for window in windows
        ]
    return table_cells(text, windows, facts.set_apart) if facts is not None and facts.set_apart else windows


def _with_own_words(text: str, window: Window, snapshot: LexiconSnapshot) -> Window:
    """The window of a part of a cell, up to the end of the longest user word over the end of its core."""
    first = max(window.core_start, window.core_end - MAX_WORD_CHARS)
    behind = END_OF_CELL.split(text[window.core_end : window.core_end + MAX_WORD_CHARS], maxsplit=1)[0]
    words = snapshot.match(text[first : window.core_end] + behind)
    before = window.core_end - first
    ends = words[(words[:, 2] >= snapshot.n_base) & (words[:, 0] < before) & (words[:, 1] > before), 1]
    return window._replace(end=max(window.end, first + int(ends.max()))) if len(ends) else window


def read_window(
    text: str,
    window: Window,
    snapshot: LexiconSnapshot,
    closed: Sequence[Stretch],
    rules: Rules,
    facts: LabelFacts | None = None,
) -> ReadWindow:
    """A window with its lattice; `closed` and `rules` are the closed stretches and the rules of the whole text.

    Each whitespace character in a closed stretch is replaced by a comma, so offsets do not change. The `facts` of a
    model may ask for two more changes, which words are not matched with: half-width commas next to Chinese characters
    become full-width ones, and a short cell of a table is set apart by semicolons if it has no punctuation of a
    sentence.
    """
    read = text[window.start : window.end].rstrip()
    inside = within(closed, window.start, window.start + len(read))
    for start, end in inside:
        read = read[:start] + re.sub(r"\s", READ_SPACE_AS, read[start:end]) + read[end:]
    own_rules = rules if rules is NO_RULES else rules.within(window.start, window.start + len(read))
    lattice = build_lattice(read, snapshot, closed=tuple(inside), rules=own_rules)
    if facts is None:
        return ReadWindow(window, lattice)
    if facts.wide_commas and "," in read:
        lattice = replace(lattice, text=HALF_COMMA.sub(WIDE_COMMA, lattice.text))
    if window.is_short_cell and not SENTENCE_MARK.search(read):
        return ReadWindow(window._replace(start=window.start - 1), _set_apart(lattice))
    return ReadWindow(window, lattice)


def _set_apart(lattice: Lattice) -> Lattice:
    """The lattice between two semicolons, which are closed."""
    n = lattice.n_chars
    return replace(
        lattice,
        text=SET_APART_BY + lattice.text + SET_APART_BY,
        words=lattice.words + np.array([1, 1, 0], lattice.words.dtype),
        closed=((0, 1), *((a + 1, b + 1) for a, b in lattice.closed), (n + 1, n + 2)),
        rules=lattice.rules.within(-1, n + 1),
    )


def lattice_word(row: int, part: ReadWindow, snapshot: LexiconSnapshot) -> LatticeWord:
    """The word in row `row` of a window's lattice, with offsets in the whole text."""
    start, end, word = part.lattice.words[row].tolist()
    offset = part.window.start
    if word < snapshot.n_base:
        return LatticeWord(offset + start, offset + end, snapshot.word(word), is_user=False)
    entry = snapshot.user_entries[word - snapshot.n_base]
    return LatticeWord(offset + start, offset + end, entry.text, True, entry.label, entry.mode)


def core_words(part: ReadWindow, snapshot: LexiconSnapshot) -> list[LatticeWord]:
    """The words of a window's lattice that start in its core, with offsets in the whole text."""
    words = (lattice_word(row, part, snapshot) for row in range(part.lattice.n_words))
    return [word for word in words if part.window.core_start <= word.start < part.window.core_end]
