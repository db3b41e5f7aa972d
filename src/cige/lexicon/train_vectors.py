"""Train skip-gram vectors of characters, character bigrams or words on raw text."""

from __future__ import annotations

import logging
import os
import tempfile
import warnings
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cige.errors import LexiconError
from cige.lexicon.lexicon import Lexicon
from cige.lexicon.text_file import read_lines
from cige.lexicon.vectors import VectorTable
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
    """Train skip-gram vectors with gensim and write `<out_folder>/<unit>.npz`.

    Text is normalised first, and white space is ignored. With one worker, results are reproducible.

    Args:
        corpus_path: UTF-8 text with one sentence per line, plain, .gz or .xz.
        out_folder: created if it does not exist.
        unit: "char"; "bigram" (c_i c_{i+1}, the last one c_i + "</s>"); "word" (jieba's segmentation).
        width: numbers per vector.
        window, negative, epochs, min_count: as in gensim: context on either side, noise samples per pair, passes over
            the corpus, and minimum number of occurrences of a unit.
        lexicon: for "word": its words are added to jieba, and every line is also segmented by longest match, so that
            words of the lexicon get a vector even if jieba splits them.
        seed: determines the initial vectors and sampling.
        workers: number of threads; more than one is faster but not reproducible.

    Raises:
        LexiconError: the corpus cannot be read or contains nothing to train on, gensim or jieba is not installed, or
            writing failed.
    """
    if unit not in UNITS:
        raise LexiconError(f"unit {unit!r}: expected one of {', '.join(UNITS)}")
    if lexicon is not None and unit != "word":
        raise LexiconError(f'unit {unit!r} needs no lexicon: leave it out, or train unit="word"')
    with tempfile.TemporaryDirectory() as scratch:
        units = Path(scratch) / "units.txt"  # segmented once; gensim's own code reads the file in every pass
        _write_units(corpus_path, units, unit, lexicon)
        model = _import("gensim.models").Word2Vec(
            vector_size=width,
            window=window,
            negative=negative,
            min_count=min_count,
            sg=1,
            seed=seed,
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
    readings = {"char": _one(_chars), "bigram": _one(_bigrams)}.get(unit) or _word_readings(lexicon)
    with open(out_path, "w", encoding="utf-8") as out:
        for line in read_sentences(corpus_path):
            for units in readings(line):
                for begin in range(0, len(units), _MAX_TOKENS):
                    out.write(" ".join(units[begin : begin + _MAX_TOKENS]) + "\n")


def read_sentences(path: str | os.PathLike[str]) -> Iterator[str]:
    """Yield normalised lines.

    Raises:
        LexiconError: a line is not UTF-8, or the file cannot be read.
    """
    for line, raw in read_lines(path):
        try:
            yield normalize(raw.decode("utf-8"))
        except UnicodeDecodeError as error:
            raise LexiconError(f"{path}, line {line}: not UTF-8 ({error}); convert the corpus to UTF-8") from error


def _chars(line: str) -> list[str]:
    return [char for char in line if not char.isspace()]


def _bigrams(line: str) -> list[str]:
    bigrams = map(str.__add__, line, [*line[1:], END])
    return [bigram for bigram in bigrams if not any(map(str.isspace, bigram))]


def _one(cut: Callable[[str], list[str]]) -> Callable[[str], list[list[str]]]:
    return lambda line: [cut(line)]


def _word_readings(lexicon: Lexicon | None) -> Callable[[str], list[list[str]]]:
    """A function that returns the segmentations of a line: jieba's and, if it differs, that by longest match."""
    cut = _jieba(lexicon)

    def readings(line: str) -> list[list[str]]:
        words = [" ".join(cut(line)).split()]  # jieba keeps white space as words
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


def _jieba(lexicon: Lexicon | None) -> Callable[[str], list[str]]:
    jieba = _import("jieba")
    jieba.setLogLevel(logging.WARNING)
    tokenizer = jieba.Tokenizer()  # a separate instance, so that words added here do not change other uses of jieba
    tokenizer.initialize()
    for word in lexicon or ():
        if not tokenizer.FREQ.get(word):
            tokenizer.add_word(word, freq=_JIEBA_COUNT)
    return tokenizer.lcut


def _stable_hash(text: str) -> int:
    return zlib.crc32(text.encode("utf-8"))  # Python's own hash of a str differs from run to run


def _import(name: str) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # both libraries use features that Python has since deprecated
            return __import__(name, fromlist=["_"])
    except ImportError as error:
        raise LexiconError(f"training vectors needs {name.partition('.')[0]}: pip install cige[train]") from error
