"""Skip-gram vectors of characters, character bigrams or words, trained on raw text."""

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
END = "</s>"  # stands after the last character of a line in its bigram
_MAX_TOKENS = 10_000  # gensim drops what follows in a longer sentence, so long lines are cut here
_JIEBA_COUNT = 3  # what jieba's own dictionary gives to rare words


@dataclass(frozen=True)
class TrainedVectors:
    """What training wrote.

    Attributes:
        path: the .npz, for `VectorTable.load`.
        n_words: units with a vector.
        n_tokens: units read in a pass over the corpus, rare ones included.
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

    Text is normalised first; white space makes no unit. With one worker the same input gives the same vectors.

    Args:
        corpus_path: UTF-8 text, a sentence a line, plain, .gz or .xz.
        out_folder: made where it is missing.
        unit: "char"; "bigram" (c_i c_{i+1}, the last one c_i + "</s>"); "word" (jieba's segmentation).
        width: numbers a vector.
        window, negative, epochs, min_count: as in gensim: context on either side, noise samples a pair, passes,
            and how often a unit must occur.
        lexicon: with "word", jieba learns its words, and every line is read a second time by longest match, so that
            a lexicon word gets a vector even where jieba would cut it.
        seed: of the initial vectors and of sampling.
        workers: threads; more than one is faster and not reproducible.

    Raises:
        LexiconError: the corpus cannot be read or holds nothing to train on, gensim or jieba is missing, or writing
            failed.
    """
    if unit not in UNITS:
        raise LexiconError(f"unit {unit!r}: expected one of {', '.join(UNITS)}")
    if lexicon is not None and unit != "word":
        raise LexiconError(f'unit {unit!r} needs no lexicon: leave it out, or train unit="word"')
    with tempfile.TemporaryDirectory() as scratch:
        if unit == "word":  # segmented once, not in every pass
            segmented = Path(scratch) / "segmented.txt"
            _segment(corpus_path, segmented, lexicon)
            corpus = Corpus(segmented, str.split)
        else:
            corpus = Corpus(corpus_path, _chars if unit == "char" else _bigrams)
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
        model.build_vocab(corpus)
        words = model.wv.index_to_key
        if not words:
            raise LexiconError(f"{corpus_path}: no {unit} occurs {min_count} times; give more text or lower min_count")
        model.train(corpus, total_examples=model.corpus_count, epochs=epochs)
    counts = np.array([model.wv.get_vecattr(word, "count") for word in words], dtype=np.int64)
    path = Path(out_folder) / f"{unit}.npz"
    VectorTable(words, model.wv.vectors, counts=counts).save(path)
    return TrainedVectors(path=path, n_words=len(words), n_tokens=int(model.corpus_total_words))


class Corpus:
    """A text file as lists of units; can be read any number of times."""

    def __init__(self, path: str | os.PathLike[str], split: Callable[[str], list[str]]) -> None:
        self._path = path
        self._split = split

    def __iter__(self) -> Iterator[list[str]]:
        for line in read_sentences(self._path):
            units = self._split(line)
            for begin in range(0, len(units), _MAX_TOKENS):
                yield units[begin : begin + _MAX_TOKENS]


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


def _segment(corpus_path: str | os.PathLike[str], out_path: Path, lexicon: Lexicon | None) -> None:
    """Write one line of blank-parted words for each segmentation of a line; equal ones are written once."""
    cut = _jieba(lexicon)
    with open(out_path, "w", encoding="utf-8") as out:
        for line in read_sentences(corpus_path):
            readings = [" ".join(cut(line)).split()]
            if lexicon is not None:
                longest = " ".join(longest_match(line, lexicon)).split()
                readings += [longest] if longest != readings[0] else []
            for reading in filter(None, readings):
                out.write(" ".join(reading) + "\n")


def longest_match(line: str, lexicon: Lexicon) -> list[str]:
    """Cut a line from left to right, each time taking the longest word there, else one character."""
    longest = {start: end for start, end, _ in lexicon.match(line).tolist()}  # sorted by end: the last one stays
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
    tokenizer = jieba.Tokenizer()  # its own: words added here must not change what others get from jieba
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
