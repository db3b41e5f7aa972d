"""Normalisation that maps one code point to one code point, so every offset stays the user's own."""

import re

# Full-width ASCII (U+FF01..U+FF5E) to half width and the ideographic space to a space; the Chinese punctuation
# marks ，！？：；（） stay as they are, because the corpora that vectors are trained on keep them full width.
_KEPT = set("！（），：；？")
_FOLDED = {chr(code): chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F) if chr(code) not in _KEPT} | {"\u3000": " "}
_CHANGES = re.compile(f"[{re.escape(''.join(_FOLDED))}\ud800-\udfff]")


def normalize(text: str) -> str:
    """Return `text` with width folded and lone surrogates replaced by U+FFFD; the length never changes.

    Case is kept: vectors and lexicons tell "IT" from "it". A lone surrogate cannot be encoded, so no matcher,
    file or terminal could take it.
    """
    if not _CHANGES.search(text):  # the common case, and the fast one
        return text
    return _CHANGES.sub(lambda found: _FOLDED.get(found[0], "\ufffd"), text)
