"""Normalisation that maps each code point to exactly one code point, so offsets refer to the user's own string."""

from __future__ import annotations

import re
from pathlib import Path

# Maps full-width ASCII (U+FF01..U+FF5E) to half width, and the ideographic space to a space. The Chinese punctuation
# marks ，！？：；（） stay full-width, because they are full-width in the corpora that vectors are trained on.
_KEPT = set("！（），：；？")
WIDTH = {chr(code): chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F) if chr(code) not in _KEPT} | {"\u3000": " "}

# Traditional to simplified characters, from OpenCC's TSCharacters.txt (Apache License 2.0). Where there are several
# simplified forms, the first is taken. Characters of GB 2312, the character set of simplified text, are not mapped,
# except 後, 於, 麽 and 菸, which are rare in simplified text.
SIMPLIFIED = {
    pair[0]: pair[1] for pair in Path(__file__).with_name("traditional.txt").read_text(encoding="utf-8").split()
}
_FOLDED = WIDTH | SIMPLIFIED


def _any_of(chars: dict[str, str]) -> re.Pattern[str]:
    return re.compile(f"[{re.escape(''.join(chars))}\ud800-\udfff]")


_WIDTH_CHANGES, _CHANGES = _any_of(WIDTH), _any_of(_FOLDED)


def fold_width(text: str) -> str:
    """Return `text` with full-width letters made half-width and lone surrogates replaced by U+FFFD.

    The length never changes. Case is kept, because vectors and lexicons distinguish "IT" from "it". A lone surrogate
    is replaced because it cannot be encoded, so it cannot be matched, written to a file or printed.
    """
    if not _WIDTH_CHANGES.search(text):  # the common case, and the fast one
        return text
    return _WIDTH_CHANGES.sub(lambda found: WIDTH.get(found[0], "\ufffd"), text)


def normalize(text: str) -> str:
    """Return `text` in the form in which vectors and lexicons are looked up.

    The text is normalised as by `fold_width`, and traditional characters are simplified, because vectors and lexicons
    come from simplified text. Each character is mapped by itself, so the length never changes. A character that is
    also used in simplified text (乾 in 乾坤, 著 in 著名) stays as it is.
    """
    if not _CHANGES.search(text):
        return text
    return _CHANGES.sub(lambda found: _FOLDED.get(found[0], "\ufffd"), text)
