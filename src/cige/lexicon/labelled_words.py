"""Words of a list with a label after a blank or a slash: `张三 PER`, `张三/PER`, and jieba's `张三 3 nr`.

User words may have blanks in them (iPhone 15), so what stands after a blank is a label only if it is a type that nobody
means as part of a name, or if most lines have one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from cige.lexicon.user_word import COMMON_TYPES
from cige.lexicon.whole_number import whole_number

LABEL_OF_POS = {"nr": "PER", "nrt": "PER", "nrfg": "PER", "ns": "LOC", "nt": "ORG", "nz": None}
"""The labels that jieba's parts of speech of names mean; nz are names of other kinds."""
_BEFORE_LABEL = (b" ", b"/", b"\xe3\x80\x80")  # the last is an ideographic space
_WITH_LABEL = re.compile(r"(.*[^\s/])(?:\s+|\s*/\s*)([A-Z][A-Z_-]{1,19})")
_WITH_POS = re.compile(r"(\S*[^\s/])(?:\s+(\d+))?(?:\s+|\s*/\s*)(" + "|".join(LABEL_OF_POS) + r")")


def labelled_word(raw: bytes, *, any_label: bool) -> tuple[bytes, str | None, int | None] | None:
    """The word (UTF-8), label and count of a line that has a label or a part of speech of names, or None for others.

    Args:
        raw: a line in UTF-8 without a tab.
        any_label: whether any capital letters after a word that is not in Latin letters are a label.
    """
    if not any(mark in raw for mark in _BEFORE_LABEL):
        return None
    text = raw.decode("utf-8", "replace").strip()
    match = _WITH_LABEL.fullmatch(text)
    if match is not None:
        word, label = match.groups()
        # BOOK may be the last word of an English name, but PER is not.
        if label in COMMON_TYPES and (not word.isascii() or label in ("PER", "LOC", "ORG", "GPE", "FAC")):
            return word.encode("utf-8"), label, None
        return (word.encode("utf-8"), label, None) if any_label and not word.isascii() else None
    match = _WITH_POS.fullmatch(text)
    if match is not None and not match[1].isascii():
        return match[1].encode("utf-8"), LABEL_OF_POS[match[3]], None if match[2] is None else whole_number(match[2])
    return None


def most_are_labelled(sample: Sequence[bytes]) -> bool:
    """Whether most lines have a label after a blank or a slash, which occurs twice on average."""
    lines = [raw for raw in sample if raw.strip()]
    words = [labelled_word(raw, any_label=True) for raw in lines if b"\t" not in raw]
    labels = [word[1] for word in words if word is not None and word[1] is not None]
    return 2 * len(labels) > len(lines) and 2 * len(set(labels)) <= len(labels)
