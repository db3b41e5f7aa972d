"""Six words that overlap in 南京市长江大桥, and where they are in it: (start, end, number of the word)."""

from __future__ import annotations

from cige.lexicon.lexicon import Lexicon

WORDS = ["南京", "南京市", "市长", "长江", "长江大桥", "大桥"]
TEXT = "南京市长江大桥"
MATCHES = [[0, 2, 0], [0, 3, 1], [2, 4, 2], [3, 5, 3], [3, 7, 4], [5, 7, 5]]


def matched(lexicon: Lexicon, text: str = TEXT) -> list[str]:
    """The words that are found in a text."""
    return [text[start:end] for start, end, _ in lexicon.match(text).tolist()]
