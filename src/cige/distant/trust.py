"""Estimate the noise of a word list without labelled text: the probability that an occurrence is an entity.

Collected lists also contain ordinary words: a list of brands from web shops may contain 家用 (for the home) and 新款
(new style). Such words are in the list independently of their meaning, so their share is the same among the most common
words of the language, of which hardly any are names of the type, as among other words. Words are sorted into bands,
from the most common words to words that are not in the model's lexicon. If a share `s` of the words of a band is
listed, and `c` is the smallest share in any more common band, a listed word of the band names an entity of the type
with probability 1 - c/s.

Some types have a few names among the most common words (such as the title 总统), so a small `c` is shrunk towards zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from cige.distant.matching import TextWord
from cige.lexicon.lexicon import Lexicon

# End ranks of the bands; followed by the remaining words and unknown words.
BANDS = (300, 1_000, 3_000, 10_000, 30_000, 100_000)
MIN_WORDS = 50  # minimum number of distinct words of the text for estimating the noise from a band
TRUE_SHARE = 0.04  # assumed share of names among the most common words
HIGHEST, LOWEST = 0.95, 0.0


def bands_of(lexicon: Lexicon) -> Callable[[str], int]:
    """A function from a normalised word to its band, 0 for the most common words.

    If the lexicon has counts, bands follow the counts; otherwise, its words are assumed to be in order of frequency, as
    in vector files.
    """
    n_words = len(lexicon)
    counts = [lexicon.count(k) or 0 for k in range(n_words)] if n_words and lexicon.count(0) is not None else None
    ranks: Sequence[int] = range(n_words)
    if counts is not None and len(set(counts)) > 1:
        by_rank = sorted(range(n_words), key=lambda k: -counts[k])
        ranks = [0] * n_words
        for rank, word in enumerate(by_rank):
            ranks[word] = rank

    def band(word: str) -> int:
        number = lexicon.id(word)
        if number is None:
            return len(BANDS) + 1
        return next((k for k, end in enumerate(BANDS) if ranks[number] < end), len(BANDS))

    return band


def trust_by_band(words: Iterable[TextWord], name: str, band: Callable[[str], int]) -> list[float]:
    """The probability, 0..1, that a word of list `name` names an entity of its type, for each band.

    `words` are all words of the text; each distinct word counts once.
    """
    distinct = {word.text: name in word.lists for word in words}
    all_words, listed = [0] * (len(BANDS) + 2), [0] * (len(BANDS) + 2)
    for text, is_listed in distinct.items():
        number = band(text)
        all_words[number] += 1
        listed[number] += is_listed
    return trust_of_shares(all_words, listed)


def trust_of_shares(all_words: Sequence[int], listed: Sequence[int]) -> list[float]:
    """The same, from the numbers of distinct words and of listed words in each band."""
    noise: float | None = None  # the smallest share so far
    trust = []
    for n_words, n_listed in zip(all_words, listed, strict=True):
        share = n_listed / n_words if n_words else 0.0
        if n_words >= MIN_WORDS and noise is None:
            noise = share
        believed = noise or 0.0
        expected = believed * believed**2 / (believed**2 + TRUE_SHARE**2)
        trust.append(min(HIGHEST, max(LOWEST, 1 - expected / share)) if share else HIGHEST)
        if n_words >= MIN_WORDS and noise is not None:
            noise = min(noise, share)
    return trust


def trust_of_words(
    counts: Mapping[str, int], predicted: Mapping[str, int], prior: Mapping[str, float], *, weight: float = 2.0
) -> dict[str, float]:
    """The probability of each listed word to be an entity, given the predictions of a tagger for the text.

    Args:
        counts: word -> number of occurrences in the text.
        predicted: word -> number of occurrences that the tagger predicted as an entity of the type.
        prior: word -> the probability, 0..1, according to the noise of the list.
        weight: the number of occurrences to which the prior corresponds.
    """
    return {
        word: (weight * prior[word] + predicted.get(word, 0)) / (weight + n) if n else prior[word]
        for word, n in counts.items()
    }
