"""Read word segmentation and named entities as labelled sentences."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from cige.data.reading import read_sentences
from cige.data.sentence import Sentence, Span
from cige.data.text_files import read_text
from cige.errors import DataError
from cige.lattice_bert.tasks.records import find_file

WORD = "WORD"  # the only label of segmentation
N_DEV, DEV_SHARE = 2000, 10  # without a dev file, dev is the last 2,000 sentences of train, but at most a tenth of it


def read_segmented(folder: Path, split: str) -> list[Sentence]:
    """Read one sentence per line, with words separated by white space; every word is a span. [] if there is no file.

    Without a dev file, dev is the end of train.
    """
    return _read_split(folder, split, _read_words)


def read_entities(folder: Path, split: str) -> list[Sentence]:
    """Read sentences in any format of `read_sentences`; without a dev file, dev is the end of train."""
    return _read_split(folder, split, read_sentences)


def _read_split(folder: Path, split: str, read: Callable[[Path], list[Sentence]]) -> list[Sentence]:
    path = find_file(folder, split)
    if path is not None and (split != "train" or find_file(folder, "dev")):
        return read(path)
    train = find_file(folder, "train")
    if split == "test" or train is None:
        return []
    sentences = read(train)
    n_dev = min(N_DEV, len(sentences) // DEV_SHARE)
    return sentences[len(sentences) - n_dev :] if split == "dev" else sentences[: len(sentences) - n_dev]


def _read_words(path: Path) -> list[Sentence]:
    sentences = []
    for number, line in enumerate(read_text(path).split("\n"), 1):
        words = line.split()
        if words:
            sentences.append(_sentence(words, number))
    if not sentences:
        raise DataError(f"{path} contains no sentence; expected one sentence per line with spaces between words")
    return sentences


def _sentence(words: list[str], line: int) -> Sentence:
    spans, end = [], 0
    for word in words:
        spans.append(Span(end, end + len(word), WORD))
        end += len(word)
    return Sentence("".join(words), tuple(spans), line)
