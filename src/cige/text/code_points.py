"""What BERT makes of each code point: dropped, a space, a piece of its own or part of a run, in which normal form."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

import numpy as np

from cige.text.normalize import fold_width

# Kinds, in an order that lets one comparison tell what is dropped.
_UNSEEN, DROPPED, MARK, SPACE, ALONE, RUN, _SEVERAL = range(7)
_N_CODES = 0x110000
_IDEOGRAPHS = ((0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x3FFFF))
_PLAIN = re.compile("[\u4e00-\u9fff]+")


@dataclass(frozen=True)
class NormalText:
    """A text in normal form: width folded, lower case, no accents, no control characters.

    Attributes:
        codes: uint32[C], its code points; all white space is U+0020, and none of it is left out.
        kinds: uint8[C], SPACE, ALONE (an ideograph or a punctuation mark) or RUN (all else: letters, digits, symbols).
        starts, ends: int32[C], half-open [start, end) in code points of the given text. Accents and variation
            selectors belong to the character before them.
    """

    codes: np.ndarray
    kinds: np.ndarray
    starts: np.ndarray
    ends: np.ndarray

    def __str__(self) -> str:
        return self.codes.tobytes().decode("utf-32-le")


class _CodePointTable:
    """Kind and normal form of every code point met so far; worked out once each, then looked up by arrays."""

    def __init__(self) -> None:
        self._kind = np.zeros(_N_CODES, dtype=np.uint8)  # memory is only used for the pages that are touched
        self._normal = np.zeros(_N_CODES, dtype=np.uint32)
        self._several: dict[int, str] = {}  # code points whose normal form has two or more

    def look_up(self, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(kinds, normal forms) of T code points."""
        kinds = self._kind[codes]
        if not kinds.all():
            for code in np.unique(codes[kinds == _UNSEEN]).tolist():
                self._add(code)
            kinds = self._kind[codes]
        return kinds, self._normal[codes]

    def several(self, code: int) -> str:
        return self._several[code]

    def _add(self, code: int) -> None:
        kind, form = _kind_and_form(chr(code))
        if len(form) > 1:
            self.look_up(np.fromiter(map(ord, form), dtype=np.uint32))  # its parts have kinds of their own
            self._several[code] = form
            kind = _SEVERAL
        self._normal[code] = ord(form[0]) if form else 0
        self._kind[code] = kind  # last: another thread that sees the kind finds the rest in place


def normal_text(text: str) -> NormalText:
    """Put `text` in normal form, as BERT's uncased tokeniser does after folding full-width letters and digits.

    Code point by code point, so linear in the length, and every offset is known. Any str will do.
    """
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    kinds, normal = _TABLE.look_up(codes)
    starts = np.arange(len(codes), dtype=np.int32)
    ends = starts + 1
    if not len(kinds) or (kinds.min() > MARK and kinds.max() < _SEVERAL):  # nearly every text
        return NormalText(codes=normal, kinds=kinds, starts=starts, ends=ends)
    ends = _past_marks(kinds)[ends]
    if kinds.max() == _SEVERAL:
        forms = {code: _TABLE.several(code) for code in np.unique(codes[kinds == _SEVERAL]).tolist()}
        lengths = np.ones(len(codes), dtype=np.int64)
        for code, form in forms.items():
            lengths[codes == code] = len(form)
        firsts = np.cumsum(lengths) - lengths
        normal, starts, ends = (np.repeat(array, lengths) for array in (normal, starts, ends))
        for code, form in forms.items():
            places = firsts[codes == code]
            for k, char in enumerate(form):
                normal[places + k] = ord(char)
        of_forms, _ = _TABLE.look_up(normal)
        kinds = np.where(np.repeat(kinds, lengths) == _SEVERAL, of_forms, np.repeat(kinds, lengths))
    kept = kinds > MARK
    return NormalText(codes=normal[kept], kinds=kinds[kept], starts=starts[kept], ends=ends[kept])


def normal_form(text: str) -> str:
    """The normal form alone: what two texts share that the tokeniser cannot tell apart."""
    return text if is_plain(text) else str(normal_text(text))


def is_plain(text: str) -> bool:
    """Whether a text is nothing but common Chinese characters: its own normal form, one piece a character."""
    return _PLAIN.fullmatch(text) is not None


def is_ideograph(char: str) -> bool:
    """Whether a character is a Chinese one, to BERT: a piece of its own wherever it stands."""
    return any(first <= ord(char) <= last for first, last in _IDEOGRAPHS)


def _past_marks(kinds: np.ndarray) -> np.ndarray:
    """int32[T + 1]: for each place, the first place from there on where no mark stands."""
    places = np.arange(len(kinds) + 1, dtype=np.int32)
    places[:-1][kinds == MARK] = len(kinds)
    return np.minimum.accumulate(places[::-1])[::-1]


def _kind_and_form(char: str) -> tuple[int, str]:
    category = unicodedata.category(char)
    char = fold_width(char)
    if char.isspace() and char not in "\x0b\x0c\x1c\x1d\x1e\x1f\x85":
        return SPACE, " "
    # Unassigned code points are kept, unlike in Python's BERT: they may be newer than the tables of this Python.
    if char == "\ufffd" or category in ("Cc", "Cf", "Co", "Cs"):
        return DROPPED, ""
    form = "".join(c.lower() for c in unicodedata.normalize("NFD", char) if unicodedata.category(c) != "Mn")
    if not form:
        return MARK, ""
    if is_ideograph(char) or _is_punctuation(form):
        return ALONE, form
    return RUN, form


def _is_punctuation(char: str) -> bool:
    """As BERT: every ASCII character that is no letter, digit, space or control, and Unicode's classes P*."""
    return unicodedata.category(char[0]).startswith("P") or (char.isascii() and not char.isalnum())


_TABLE = _CodePointTable()
