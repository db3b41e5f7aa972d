"""Normalisation that maps each code point to exactly one code point, so offsets refer to the user's own string."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

# Maps full-width ASCII (U+FF01..U+FF5E) to half width, and the ideographic space to a space. The Chinese punctuation
# marks ，！？：；（） stay full-width, because they are full-width in the corpora that vectors are trained on.
_KEPT = set("！（），：；？")
WIDTH = {chr(code): chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F) if chr(code) not in _KEPT} | {"\u3000": " "}

# Traditional to simplified characters, from OpenCC's TSCharacters.txt (Apache License 2.0). If there are several
# simplified forms, the first is used. Characters of GB 2312, the character set of simplified text, are not mapped,
# except 後, 於, 麽 and 菸, which are rare in simplified text.
SIMPLIFIED = {
    pair[0]: pair[1] for pair in Path(__file__).with_name("traditional.txt").read_text(encoding="utf-8").split()
}
_NO_CHARS = dict.fromkeys(map(chr, range(0xD800, 0xE000)), "\ufffd")  # lone surrogates
_WIDTH_CHANGES = WIDTH | _NO_CHARS
_CHANGES = _WIDTH_CHANGES | SIMPLIFIED
_LONG = 4096  # characters; in a longer text a pattern finds them faster, but is compiled first, which takes 3 ms


def fold_width(text: str) -> str:
    """Return `text` with full-width letters made half-width and lone surrogates replaced by U+FFFD.

    The length never changes. Case is kept, because vectors and lexicons distinguish "IT" from "it". A lone surrogate
    is replaced because it cannot be encoded, so it cannot be matched, written to a file or printed.
    """
    return _mapped(text, _WIDTH_CHANGES, _width_changes)


def normalize(text: str) -> str:
    """Return `text` in the form in which vectors and lexicons are looked up.

    The text is normalised as by `fold_width`, and traditional characters are simplified, because vectors and lexicons
    come from simplified text. Each character is mapped by itself, so the length never changes. A character that is
    also used in simplified text (乾 in 乾坤, 著 in 著名) stays as it is.
    """
    return _mapped(text, _CHANGES, _changes)


def _mapped(text: str, changes: Mapping[str, str], pattern: Callable[[], re.Pattern[str]]) -> str:
    """Map each character of `text`; `pattern` returns the pattern of characters that change."""
    if len(text) > _LONG:
        return pattern().sub(lambda match: changes[match[0]], text)
    if text.isascii() or changes.keys().isdisjoint(text):  # the common cases
        return text
    return "".join([changes.get(char, char) for char in text])


@cache
def _width_changes() -> re.Pattern[str]:
    return _any_of(WIDTH)


@cache
def _changes() -> re.Pattern[str]:
    return _any_of(WIDTH | SIMPLIFIED)


def _any_of(chars: dict[str, str]) -> re.Pattern[str]:
    return re.compile(f"[{re.escape(''.join(chars))}\ud800-\udfff]")
