"""Normalisation that maps one code point to one code point, so every offset stays the user's own."""

from __future__ import annotations

import re
from pathlib import Path

# Full-width ASCII (U+FF01..U+FF5E) to half width and the ideographic space to a space; the Chinese punctuation
# marks ，！？：；（） stay as they are, because the corpora that vectors are trained on keep them full width.
_KEPT = set("！（），：；？")
_WIDTH = {chr(code): chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F) if chr(code) not in _KEPT} | {"\u3000": " "}

# Traditional to simplified characters, from OpenCC's TSCharacters.txt (Apache License 2.0): of several simplified forms
# the first, and without the characters of GB 2312, the set of simplified text, but for 後, 於, 麽 and 菸, rare there.
_SIMPLIFIED = {
    pair[0]: pair[1] for pair in Path(__file__).with_name("traditional.txt").read_text(encoding="utf-8").split()
}
_FOLDED = _WIDTH | _SIMPLIFIED


def _any_of(chars: dict[str, str]) -> re.Pattern[str]:
    return re.compile(f"[{re.escape(''.join(chars))}\ud800-\udfff]")


_WIDTH_CHANGES, _CHANGES = _any_of(_WIDTH), _any_of(_FOLDED)


def fold_width(text: str) -> str:
    """Return `text` with width folded and lone surrogates replaced by U+FFFD; the length never changes.

    Case is kept: vectors and lexicons tell "IT" from "it". A lone surrogate cannot be encoded, so no matcher,
    file or terminal could take it.
    """
    if not _WIDTH_CHANGES.search(text):  # the common case, and the fast one
        return text
    return _WIDTH_CHANGES.sub(lambda found: _WIDTH.get(found[0], "\ufffd"), text)


def normalize(text: str) -> str:
    """Return `text` as vectors and lexicons are looked up: as `fold_width`, with traditional characters simplified.

    Character by character, so the length never changes. A character that simplified text uses too (乾 of 乾坤, 著 of
    著名) stays as it is. Vectors and lexicons come from simplified text and know few traditional characters.
    """
    if not _CHANGES.search(text):
        return text
    return _CHANGES.sub(lambda found: _FOLDED.get(found[0], "\ufffd"), text)
