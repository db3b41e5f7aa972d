"""Train skip-gram vectors of characters, character bigrams or words on raw text."""

from __future__ import annotations

import os
import tempfile
import warnings
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cige.errors import LexiconError
from cige.lexicon.lexicon import Lexicon
from cige.lexicon.text_file import read_text_lines
from cige.lexicon.vectors import VectorTable
from cige.lexicon.word_counts import jieba_tokenizer
from cige.text.normalize import normalize

UNITS = ("char", "bigram", "word")
END = "</s>"  # the second half of the bigram of the last character of a line
_MAX_TOKENS = 10_000  # gensim ignores the rest of longer sentences, so long lines are split
_JIEBA_COUNT = 3  # the count of rare words in jieba's own dictionary


@dataclass(frozen=True)
class TrainedVectors:
    """The result of training.

    Attributes:
        path: the .npz file, for `VectorTable.load`.
        n_words: number of units with a vector.
        n_tokens: number of units in the corpus, including rare ones.
    """

    path: Path
    n_words: int
    n_tokens: int


def train_vectors(
    corpus_path: str | os.PathLike[str],
    out_folder: str | os.PathLike[str],
    *,
    unit: str = "char",
    width: int = 50,
    window: int = 5,
    negative: int = 5,
    epochs: int = 5,
    min_count: int = 3,
    lexicon: Lexicon | None = None,
    seed: int = 0,
    workers: int = 1,
) -> TrainedVectors:
    """Train skip-gram vectors of `width` numbers with gensim and write `<out_folder>/<unit>.npz`.

    Text is normalised first, and white space is ignored. With one worker, results are reproducible from the seed.
    Raises a LexiconError if the corpus cannot be read or contains nothing to train on, gensim or jieba is not
    installed, or writing failed.

    Args:
        corpus_path: UTF-8 text with one sentence per line, plain, .gz or .xz.
        unit: "char"; "bigram" (c_i c_{i+1}, the last one c_i + "</s>"); "word" (jieba's segmentation).
        window, negative, epochs, min_count: as in gensim: context on either side, noise samples per pair, passes over
            the corpus, and minimum number of occurrences of a unit.
        lexicon: for "word": its words are added to jieba, and every line is also segmented by longest match, so that
            words of the lexicon get a vector even if jieba splits them.
        workers: number of threads.
    """
    if unit not in UNITS:
        raise LexiconError(f"unit {unit!r}: expected one of {', '.join(UNITS)}")
    if lexicon is not None and unit != "word":
        raise LexiconError(f'unit {unit!r} needs no lexicon: leave it out, or train unit="word"')
    with tempfile.TemporaryDirectory() as scratch:
        units = Path(scratch) / "units.txt"  # segmented once; gensim's own code reads the file in every pass
        _write_units(corpus_path, units, unit, lexicon)
        model = _word2vec()(
            vector_size=width,
            window=window,
            negative=negative,
            min_count=min_count,
            sg=1,
            seed=seed % 2**32,  # what NumPy's older generators take
            workers=workers,
            hashfxn=_stable_hash,
        )
        model.build_vocab(corpus_file=str(units))
        words = model.wv.index_to_key
        if not words:
            raise LexiconError(f"{corpus_path}: no {unit} occurs {min_count} times; give more text or lower min_count")
        model.train(
            corpus_file=str(units),
            total_words=model.corpus_total_words,
            total_examples=model.corpus_count,
            epochs=epochs,
        )
    counts = np.array([model.wv.get_vecattr(word, "count") for word in words], dtype=np.int64)
    path = Path(out_folder) / f"{unit}.npz"
    VectorTable(words, model.wv.vectors, counts=counts).save(path)
    return TrainedVectors(path=path, n_words=len(words), n_tokens=int(model.corpus_total_words))


def _write_units(corpus_path: str | os.PathLike[str], out_path: Path, unit: str, lexicon: Lexicon | None) -> None:
    """Write the units of each line, separated by spaces; a line of more than `_MAX_TOKENS` units becomes several."""
    cut = {"char": _chars, "bigram": _bigrams}.get(unit) or _word_readings(lexicon)
    with open(out_path, "w", encoding="utf-8") as out:
        for _, line in read_text_lines(corpus_path):
            for units in cut(normalize(line)):
                for begin in range(0, len(units), _MAX_TOKENS):
                    out.write(" ".join(units[begin : begin + _MAX_TOKENS]) + "\n")


def _chars(line: str) -> list[list[str]]:
    return [[char for char in line if not char.isspace()]]


def _bigrams(line: str) -> list[list[str]]:
    bigrams = map(str.__add__, line, [*line[1:], END])
    return [[bigram for bigram in bigrams if not any(map(str.isspace, bigram))]]


def _word_readings(lexicon: Lexicon | None) -> Callable[[str], list[list[str]]]:
    """A function that returns the segmentations of a line: jieba's and, if it differs, that by longest match."""
    jieba = jieba_tokenizer()
    for word in lexicon or ():
        if not jieba.FREQ.get(word):
            jieba.add_word(word, freq=_JIEBA_COUNT)

    def readings(line: str) -> list[list[str]]:
        words = [" ".join(jieba.lcut(line)).split()]  # jieba keeps white space as words
        if lexicon is not None:
            longest = " ".join(longest_match(line, lexicon)).split()
            words += [longest] if longest != words[0] else []
        return words

    return readings


def longest_match(line: str, lexicon: Lexicon) -> list[str]:
    """Segment a line from left to right into the longest words of the lexicon, or single characters."""
    # Sorted by end, so the longest word is kept.
    longest = {start: end for start, end, _ in lexicon.match(line).tolist()}
    words = []
    begin = 0
    while begin < len(line):
        end = longest.get(begin, begin + 1)
        words.append(line[begin:end])
        begin = end
    return words


def _stable_hash(text: str) -> int:
    return zlib.crc32(text.encode("utf-8"))  # Python's own hash of a str differs from run to run


def _word2vec() -> Any:
    """gensim's Word2Vec."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # gensim uses features that Python has since deprecated
            from gensim.models import Word2Vec
    except ImportError as error:
        raise LexiconError("training vectors needs gensim: pip install cige[train]") from error
    return Word2Vec
