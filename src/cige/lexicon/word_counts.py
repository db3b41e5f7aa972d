"""Count the words of a segmented corpus, from which the words of a joint vocabulary are chosen."""

from __future__ import annotations

import logging
import os
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cache
from typing import Any

from cige.errors import LexiconError
from cige.folders.processes import process_pool
from cige.lexicon.text_file import SoundLines
from cige.lexicon.word_rules import MAX_WORD_CHARS
from cige.text.code_points import is_ideograph, normal_form
from cige.text.counted import counted
from cige.text.normalize import fold_width

Segmenter = Callable[[str], Iterable[str]]

_BLOCK_CHARS = 1 << 18  # characters that a process segments at once
_MAX_LINE_CHARS = 10_000  # jieba's memory grows with the length of the text


@dataclass(frozen=True)
class WordCounts:
    """The words of a corpus.

    Attributes:
        counts: number of occurrences of each word. Words are in normal form and have two or more ideographs, letters
            and digits, at least one of them an ideograph.
        n_lines, n_chars: numbers of valid lines and of their characters, including empty lines but not line ends.
        n_bad: number of lines left out because they are not UTF-8 or contain a NUL.
        bad_lines: the first of these lines.
    """

    counts: dict[str, int]
    n_lines: int
    n_chars: int
    n_bad: int
    bad_lines: tuple[str, ...]

    def ranked(self, *, min_count: int = 1) -> list[str]:
        """The words that occur at least `min_count` times, the most frequent first; ties are in code-point order."""
        return [word for _, word in sorted((-n, word) for word, n in self.counts.items() if n >= min_count)]

    def share(self, words: Iterable[str]) -> float:
        """The share, from 0 to 1, of all occurrences that are occurrences of `words`."""
        return sum(self.counts.get(word, 0) for word in words) / max(1, sum(self.counts.values()))

    def notes(self) -> list[str]:
        """Messages for the user about lines that were left out; empty if there are none."""
        if not self.n_bad:
            return []
        return [f"{counted(self.n_bad, 'line')} left out (not UTF-8, or with a NUL): {'; '.join(self.bad_lines)}"]


def count_words(
    corpus_path: str | os.PathLike[str],
    *,
    segment: Segmenter | None = None,
    n_workers: int = 1,
    on_progress: Callable[[int], None] | None = None,
) -> WordCounts:
    """Segment every line of a corpus and count its words; the result does not depend on `n_workers`, the number of
    processes.

    Width is folded before segmentation and case after it, since segmenters know T恤 but not t恤. Lines of more than
    10,000 characters are split first, at white space or punctuation if possible. Raises a LexiconError if the corpus is
    missing, damaged or not text, or jieba is not installed.

    Args:
        corpus_path: UTF-8 text, plain, .gz or .xz; read as a stream, so only the counts are in memory.
        segment: returns the words of a text; None uses jieba. With several workers, it must be picklable.
        on_progress: called regularly with the number of bytes of text read so far.
    """
    lines = SoundLines(corpus_path)
    n_of_word: Counter[str] = Counter()
    n_chars = n_bytes = 0
    blocks = _blocks(lines)
    counted_blocks: Iterator[tuple[list[str], Counter[str]]]
    if n_workers == 1:
        counted_blocks = ((block, _count(block, segment)) for block in blocks)
    else:
        counted_blocks = _count_in_processes(blocks, segment, n_workers)
    for block, counts in counted_blocks:
        n_of_word.update(counts)
        n_chars += sum(map(len, block))
        n_bytes += sum(len(text.encode()) + 1 for text in block)
        if on_progress is not None:
            on_progress(n_bytes)
    merged: Counter[str] = Counter()
    for word, count in n_of_word.items():
        form = vocabulary_form(word)
        if form is not None:
            merged[form] += count
    return WordCounts(dict(merged), lines.n_lines - lines.n_bad, n_chars, lines.n_bad, tuple(lines.bad_lines))


def vocabulary_form(word: str) -> str | None:
    """A word in the form of a vocabulary; None for English words, numbers, single characters and punctuation."""
    if not any(map(is_ideograph, word)):
        return None
    form = normal_form(word)
    return form if 2 <= len(form) <= MAX_WORD_CHARS and form.isalnum() else None


def _blocks(lines: SoundLines) -> Iterator[list[str]]:
    """Blocks of lines with 260,000 characters or more."""
    block: list[str] = []
    n_chars = 0
    for _, text in lines:
        block.append(text)
        n_chars += len(text)
        if n_chars >= _BLOCK_CHARS:
            yield block
            block, n_chars = [], 0
    if block:
        yield block


def _count_in_processes(
    blocks: Iterable[list[str]], segment: Segmenter | None, n_workers: int
) -> Iterator[tuple[list[str], Counter[str]]]:
    running: deque[tuple[list[str], Future[Counter[str]]]] = deque()
    with process_pool(n_workers) as pool:
        for block in blocks:
            running.append((block, pool.submit(_count, block, segment)))
            if len(running) > 2 * n_workers:  # limits how much is read ahead
                first, counts = running.popleft()
                yield first, counts.result()
        yield from ((block, counts.result()) for block, counts in running)


def _count(block: list[str], segment: Segmenter | None) -> Counter[str]:
    cut = segment or jieba_segmenter()
    counts: Counter[str] = Counter()
    for text in block:
        for part in _parts(fold_width(text)):
            counts.update(cut(part))
    return counts


@cache
def jieba_segmenter() -> Segmenter:
    """jieba with only its own dictionary, created once per process; raises the errors of `jieba_tokenizer`."""
    return jieba_tokenizer().lcut  # type: ignore[no-any-return]


def jieba_tokenizer() -> Any:
    """A new tokenizer of jieba, whose words are not those of other uses of jieba. Raises a LexiconError if jieba is not
    installed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # jieba uses features that Python has since deprecated
            import jieba
    except ImportError as error:
        raise LexiconError("segmenting a corpus needs jieba: pip install 'cige[train]'") from error
    jieba.setLogLevel(logging.WARNING)
    tokenizer = jieba.Tokenizer()
    tokenizer.initialize()
    return tokenizer


def _parts(text: str) -> Iterator[str]:
    begin = 0
    while len(text) - begin > _MAX_LINE_CHARS:
        end = begin + _MAX_LINE_CHARS
        last = next((k for k in range(end - 1, begin + _MAX_LINE_CHARS // 2, -1) if not text[k].isalnum()), end - 1)
        yield text[begin : last + 1]
        begin = last + 1
    yield text[begin:]
