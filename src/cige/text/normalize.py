"""Normalisation that maps one code point to one code point, so every offset stays the user's own."""

import re

# Full-width ASCII (U+FF01..U+FF5E) to half width and the ideographic space to a space; the Chinese punctuation
# marks ，！？：；（） stay as they are, because the corpora that vectors are trained on keep them full width.
_KEPT = set("！（），：；？")
_TABLE = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F) if chr(code) not in _KEPT} | {0x3000: 0x20}
_SURROGATE = re.compile("[\ud800-\udfff]")
_CHANGES = re.compile("[\u3000\uff01-\uff5e\ud800-\udfff]")


def normalize(text: str) -> str:
    """Return `text` with width folded and lone surrogates replaced by U+FFFD; the length never changes.

    Case is kept: vectors and lexicons tell "IT" from "it". A lone surrogate cannot be encoded, so no matcher,
    file or terminal could take it.
    """
    if not _CHANGES.search(text):  # the common case, and the fast one
        return text
    return _SURROGATE.sub("\ufffd", text).translate(_TABLE)
