"""Make a lexicon of any size with vectors, and text that uses it: the real files of this size are downloads.

The words of the bundled lexicon come first. The rest are phrases of two to five of them, drawn by Zipf's law, as the
entries of public vectors of millions of "words" mostly are: they share beginnings, nest and overlap, and they get rarer
towards the end of the file. The same number of words and seed give the same file. Numbers are drawn once for a
thousand rows and used again: only their form and their count matter to whoever reads them.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np

import cige
from cige.lexicon.word_blob import WordBlob

BUNDLED = Path(cige.__file__).parent / "bundled" / "lexicon"
N_PARTS = {2: 0.72, 3: 0.2, 4: 0.06, 5: 0.02}  # words in a phrase -> share; 5.7 characters a word at 8.8M words
N_ROWS = 1000
_DRAWN = 200_000
_BLOCK = 10_000


def zipf(rng: np.random.Generator, n: int, size: int) -> np.ndarray:
    """int64[size] ranks 0 .. n-1, the rank r with a probability that falls as 1 / (r + 1)."""
    return (n ** rng.random(size)).astype(np.int64) - 1


def make_words(n_words: int, *, seed: int = 0) -> list[str]:
    """Distinct words, the frequent ones first; 30 s and 1.2 GB for 8.8 million."""
    rng = np.random.default_rng(seed)
    real = np.array(list(WordBlob.load(BUNDLED)), dtype=object)
    words = dict.fromkeys(real[:n_words].tolist())
    while len(words) < n_words:
        n_parts = rng.choice(list(N_PARTS), _DRAWN, p=list(N_PARTS.values()))
        for k in N_PARTS:
            size = int((n_parts == k).sum())
            phrases = real[zipf(rng, len(real), size)]
            for _ in range(k - 1):
                phrases = phrases + real[zipf(rng, len(real), size)]
            words.update(dict.fromkeys(phrases.tolist()))
    return list(islice(words, n_words))


def write_vectors(path: str | Path, words: Sequence[str], *, width: int, n_digits: int, seed: int = 0) -> None:
    """Write word2vec text: a header, then a word and `width` numbers of `n_digits` decimals a line."""
    rng = np.random.default_rng(seed)
    numbers = rng.normal(0, 0.3, (N_ROWS, width))
    rows = [" " + " ".join(f"{number:.{n_digits}f}" for number in row) + "\n" for row in numbers.tolist()]
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"{len(words)} {width}\n")
        for begin in range(0, len(words), _BLOCK):
            block = words[begin : begin + _BLOCK]
            file.writelines(word + rows[(begin + k) % N_ROWS] for k, word in enumerate(block))


def make_sentences(words: Sequence[str], n_sentences: int, *, seed: int = 0) -> Iterator[str]:
    """Sentences of some 45 characters, words drawn by Zipf's law, so that all of a large lexicon is used."""
    rng = np.random.default_rng(seed)
    for _ in range(n_sentences):
        sentence = ""
        while len(sentence) < 42:
            for word in zipf(rng, len(words), 8).tolist():
                if len(sentence) < 42:
                    sentence += words[word]
        yield sentence + "。"
