"""Find the words of lists in a text as separate words, not as parts of other words.

豆包 is a substring of 咖啡豆包装袋, but the words are 咖啡豆 and 包装袋. Therefore, the whole text is segmented into
words of the model's lexicon and of the lists, and only words of this segmentation are found. The segmentation has the
fewest words, where a character outside words counts as one and a half words; among these segmentations, it is the one
with the most even lengths.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from cige.lexicon.snapshot import LexiconSnapshot
from cige.lexicon.user_word import UserWord
from cige.text.normalize import normalize, normalize_word

_RUN = re.compile("[A-Za-z]+|[0-9]+")
_SINGLE = 1.5  # the cost of a single character, relative to 1 for a word


@dataclass(frozen=True)
class TextWord:
    """A word of a text, over its code points [start, end).

    Attributes:
        text: the word, normalised.
        lists: names of the lists that contain it, in the order of the lists.
    """

    start: int
    end: int
    text: str
    lists: tuple[str, ...] = ()


class ListMatcher:
    """Finds listed words.

    Args:
        snapshot: the words of the model.
        lists: list name -> its words; a word in several lists has the names of all of them.
    """

    def __init__(self, snapshot: LexiconSnapshot, lists: Mapping[str, Iterable[str]]):
        names: dict[str, list[str]] = {}
        for name, words in lists.items():
            for word in dict.fromkeys(map(normalize_word, words)):
                names.setdefault(word, []).append(name)
        self._names = {word: tuple(list_names) for word, list_names in names.items()}
        self._snapshot = snapshot.with_words(UserWord(word) for word in names)

    def words(self, text: str) -> list[TextWord]:
        """All words of two or more characters in the segmentation of a text, sorted, including unlisted words."""
        text = normalize(text)
        places = {(start, end) for start, end, _ in self._snapshot.match(text).tolist()}
        places |= {run.span() for run in _RUN.finditer(text)}
        listed = {place: names for place in places if (names := self._names.get(normalize_word(text[slice(*place)])))}
        return [
            TextWord(start, end, text[start:end], listed.get((start, end), ()))
            for start, end in fewest_words(len(text), places, listed)
            if end - start > 1
        ]


def fewest_words(
    n_chars: int,
    places: Iterable[tuple[int, int]],
    preferred: Mapping[tuple[int, int], object] | Sequence[tuple[int, int]] = (),
) -> list[tuple[int, int]]:
    """The words of the best segmentation of `n_chars` characters, including single characters.

    Args:
        places: the spans [start, end) of words.
        preferred: of equally good segmentations, the one with most of these spans is chosen.
    """
    starts: list[list[int]] = [[end - 1] for end in range(n_chars + 1)]
    for start, end in places:
        if end - start > 1:
            starts[end].append(start)
    best: list[tuple[float, int, int, int]] = [(0.0, 0, 0, 0)]  # (words, sum of squared lengths, not preferred, start)
    for end in range(1, n_chars + 1):
        ways = []
        for start in starts[end]:
            words, squares, others, _ = best[start]
            cost, is_other = _SINGLE if end - start == 1 else 1.0, (start, end) not in preferred
            ways.append((words + cost, squares + (end - start) ** 2, others + is_other, start))
        best.append(min(ways))
    words_found, end = [], n_chars
    while end:
        start = best[end][3]
        words_found.append((start, end))
        end = start
    return words_found[::-1]
