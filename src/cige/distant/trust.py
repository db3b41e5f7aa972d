"""How far to believe a word list where a text uses one of its words: a noise model that needs no labelled text.

Lists that people find or collect hold ordinary words too: a list of brands that has been put together from web shops
says that 家用 (for the home) and 新款 (new style) are brands. Such words are in the list whatever they mean, so they
are as common among the commonest words of the language, of which hardly any is a name of the type, as anywhere else.
Words are sorted into bands from the commonest to those that the model's lexicon does not have. If a share `s` of the
words of a band is listed, and `c` is the smallest share in any commoner band, a listed word of the band names an entity
of the type with probability 1 - c/s.

Some types do have names among the commonest words (titles such as 总统 do), but not many: a small `c` is therefore
shrunk towards zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from cige.distant.matching import TextWord
from cige.lexicon.lexicon import Lexicon

BANDS = (300, 1_000, 3_000, 10_000, 30_000, 100_000)  # ends of the bands, by rank; then the rest, then unknown words
MIN_WORDS = 50  # different words of the text that a band needs to say how noisy the list is
TRUE_SHARE = 0.04  # of the commonest words, in the list of a type that has names among them
HIGHEST, LOWEST = 0.95, 0.0


def bands_of(lexicon: Lexicon) -> Callable[[str], int]:
    """A function from a normalised word to its band, 0 for the commonest.

    A lexicon with counts says itself how common its words are; the words of others stand in order of frequency, as in
    vector files.
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

    Args:
        words: all words of the text; each counts once, however often it is used.
    """
    distinct = {word.text: name in word.lists for word in words}
    all_words, listed = [0] * (len(BANDS) + 2), [0] * (len(BANDS) + 2)
    for text, is_listed in distinct.items():
        number = band(text)
        all_words[number] += 1
        listed[number] += is_listed
    return trust_of_shares(all_words, listed)


def trust_of_shares(all_words: Sequence[int], listed: Sequence[int]) -> list[float]:
    """The same from the numbers of different words in each band, and of those that are listed."""
    noise: float | None = None  # the smallest share so far
    found = []
    for n_words, n_listed in zip(all_words, listed, strict=True):
        share = n_listed / n_words if n_words else 0.0
        if n_words >= MIN_WORDS and noise is None:
            noise = share
        believed = noise or 0.0
        expected = believed * believed**2 / (believed**2 + TRUE_SHARE**2)
        found.append(min(HIGHEST, max(LOWEST, 1 - expected / share)) if share else HIGHEST)
        if n_words >= MIN_WORDS and noise is not None:
            noise = min(noise, share)
    return found


def trust_of_words(
    counts: Mapping[str, int], found: Mapping[str, int], prior: Mapping[str, float], *, weight: float = 2.0
) -> dict[str, float]:
    """How far to believe each listed word once a tagger has read the text.

    Args:
        counts: word -> how often the text uses it.
        found: word -> how often the tagger found an entity of the type just there.
        prior: word -> what the list's noise says, 0..1.
        weight: how many uses the prior counts for.
    """
    return {
        word: (weight * prior[word] + found.get(word, 0)) / (weight + n) if n else prior[word]
        for word, n in counts.items()
    }
