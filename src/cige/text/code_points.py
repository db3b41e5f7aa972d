"""How BERT's tokeniser treats each code point: dropped, as a space, as a separate token, or as part of a run."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

import numpy as np

from cige.text.normalize import fold_width

# Kinds of code points, in an order such that a single comparison finds those that are dropped.
_UNSEEN, DROPPED, MARK, SPACE, ALONE, RUN, _SEVERAL = range(7)
_N_CODES = 0x110000
_IDEOGRAPHS = ((0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x3FFFF))
_PLAIN = re.compile("[\u4e00-\u9fff]+")


@dataclass(frozen=True)
class NormalText:
    """A text in normal form: width folded, lower case, no accents, no control characters.

    Attributes:
        codes: uint32[C], its code points. All white space becomes U+0020, and none of it is removed.
        kinds: uint8[C], SPACE, ALONE (an ideograph or a punctuation mark) or RUN (letters, digits and symbols).
        starts, ends: int32[C], half-open offsets [start, end) in code points of the original text. Accents and
            variation selectors belong to the character before them.
    """

    codes: np.ndarray
    kinds: np.ndarray
    starts: np.ndarray
    ends: np.ndarray

    def __str__(self) -> str:
        return self.codes.tobytes().decode("utf-32-le")


class _CodePointTable:
    """Kind and normal form of every code point seen so far. Each is computed once, then looked up in arrays."""

    def __init__(self) -> None:
        self._kind = np.zeros(_N_CODES, dtype=np.uint8)  # memory is only used for the pages that are touched
        self._normal = np.zeros(_N_CODES, dtype=np.uint32)
        self._several: dict[int, str] = {}  # code points whose normal form has two or more code points

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
            self.look_up(np.fromiter(map(ord, form), dtype=np.uint32))  # each part of the normal form has its own kind
            self._several[code] = form
            kind = _SEVERAL
        self._normal[code] = ord(form[0]) if form else 0
        self._kind[code] = kind  # written last, so that another thread that sees the kind also sees the normal form


def normal_text(text: str) -> NormalText:
    """Return the normal form of `text`, as BERT's uncased tokeniser does, with full-width letters made half-width.

    Each code point is processed by itself, so the time is linear in the length and every offset is known. Any str is
    accepted.
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
    is_kept = kinds > MARK
    return NormalText(codes=normal[is_kept], kinds=kinds[is_kept], starts=starts[is_kept], ends=ends[is_kept])


def normal_form(text: str) -> str:
    """The normal form of a text as a str. Texts with equal normal forms have the same tokens."""
    return text if is_plain(text) else str(normal_text(text))


def is_plain(text: str) -> bool:
    """Whether a text consists of common Chinese characters only, so that it is its own normal form."""
    return _PLAIN.fullmatch(text) is not None


def is_ideograph(char: str) -> bool:
    """Whether BERT treats a character as Chinese, which makes it a separate token."""
    return any(first <= ord(char) <= last for first, last in _IDEOGRAPHS)


def _past_marks(kinds: np.ndarray) -> np.ndarray:
    """int32[T + 1]: for each position, the first position at or after it that is not a combining mark."""
    places = np.arange(len(kinds) + 1, dtype=np.int32)
    places[:-1][kinds == MARK] = len(kinds)
    return np.minimum.accumulate(places[::-1])[::-1]


def _kind_and_form(char: str) -> tuple[int, str]:
    category = unicodedata.category(char)
    char = fold_width(char)
    if char.isspace() and char not in "\x0b\x0c\x1c\x1d\x1e\x1f\x85":
        return SPACE, " "
    # Unlike in BERT's Python code, unassigned code points are kept: they may be newer than this Python's Unicode.
    if char == "\ufffd" or category in ("Cc", "Cf", "Co", "Cs"):
        return DROPPED, ""
    form = "".join(c.lower() for c in unicodedata.normalize("NFD", char) if unicodedata.category(c) != "Mn")
    if not form:
        return MARK, ""
    if is_ideograph(char) or _is_punctuation(form):
        return ALONE, form
    return RUN, form


def _is_punctuation(char: str) -> bool:
    """Punctuation as BERT defines it: ASCII except letters, digits, spaces and controls, and Unicode's P* classes."""
    return unicodedata.category(char[0]).startswith("P") or (char.isascii() and not char.isalnum())


_TABLE = _CodePointTable()
