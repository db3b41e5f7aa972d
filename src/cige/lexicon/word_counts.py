"""How often each word occurs in a corpus, as a segmenter cuts it: where the words of a joint vocabulary come from."""

from __future__ import annotations

import logging
import multiprocessing
import os
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache

from cige.errors import LexiconError
from cige.lexicon.sound_lines import SoundLines
from cige.lexicon.word_rules import MAX_WORD_CHARS
from cige.text.code_points import is_ideograph, normal_form
from cige.text.normalize import fold_width

Segmenter = Callable[[str], Iterable[str]]

_BLOCK_CHARS = 1 << 18  # segmented by a process at once
_MAX_LINE_CHARS = 10_000  # jieba's memory grows with the text it is given


@dataclass(frozen=True)
class WordCounts:
    """The words of a corpus.

    Attributes:
        counts: occurrences of each word, in normal form; two or more ideographs, letters and digits, one of them an
            ideograph.
        n_lines, n_chars: read and sound, empty lines included, line ends not.
        n_bad: lines left out because they are not UTF-8 or hold a NUL.
        bad_lines: the first of them.
    """

    counts: dict[str, int]
    n_lines: int
    n_chars: int
    n_bad: int
    bad_lines: tuple[str, ...]

    def ranked(self, *, min_count: int = 1) -> list[str]:
        """The words that occur `min_count` times, frequent ones first, equally frequent ones in code-point order."""
        return [word for _, word in sorted((-n, word) for word, n in self.counts.items() if n >= min_count)]

    def share(self, words: Iterable[str]) -> float:
        """What part of all occurrences is one of `words`, from 0 to 1."""
        return sum(self.counts.get(word, 0) for word in words) / max(1, sum(self.counts.values()))

    def notes(self) -> list[str]:
        """Sentences for the user on what was left out; empty where nothing was."""
        if not self.n_bad:
            return []
        return [f"{self.n_bad:,} lines left out (not UTF-8, or with a NUL): {'; '.join(self.bad_lines)}"]


def count_words(
    corpus_path: str | os.PathLike[str],
    *,
    segment: Segmenter | None = None,
    n_workers: int = 1,
    on_progress: Callable[[int], None] | None = None,
) -> WordCounts:
    """Cut every line of a corpus into words and count them; the result does not depend on `n_workers`.

    Width is folded before a line is cut, case afterwards: a segmenter knows T恤, not t恤. Lines of more than 10,000
    characters are cut in parts first, at white space or punctuation where there is any.

    Args:
        corpus_path: UTF-8 text, plain, .gz or .xz; read as a stream, so only the counts are held in memory.
        segment: text -> its words; None is jieba. With several workers it must be picklable.
        n_workers: processes.
        on_progress: called now and then with the bytes of text read so far.

    Raises:
        LexiconError: the corpus is missing, damaged or no text, or jieba is not installed.
    """
    lines = SoundLines(corpus_path)
    found: Counter[str] = Counter()
    n_chars = n_bytes = 0
    counted = _count_here if n_workers == 1 else _count_in_processes
    for block, counts in counted(_blocks(lines), segment, n_workers):
        found.update(counts)
        n_chars += sum(map(len, block))
        n_bytes += sum(len(text.encode()) + 1 for text in block)
        if on_progress is not None:
            on_progress(n_bytes)
    merged: Counter[str] = Counter()
    for word, count in found.items():
        form = vocabulary_form(word)
        if form is not None:
            merged[form] += count
    return WordCounts(dict(merged), lines.n_lines - lines.n_bad, n_chars, lines.n_bad, tuple(lines.bad_lines))


def vocabulary_form(word: str) -> str | None:
    """A word as a vocabulary holds it, or None for one that it does not: English, a number, a character, a mark."""
    if not any(map(is_ideograph, word)):
        return None
    form = normal_form(word)
    return form if 2 <= len(form) <= MAX_WORD_CHARS and form.isalnum() else None


def _blocks(lines: SoundLines) -> Iterator[list[str]]:
    """Whole lines, 260,000 characters or more at once."""
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


def _count_here(
    blocks: Iterable[list[str]], segment: Segmenter | None, n_workers: int
) -> Iterator[tuple[list[str], Counter[str]]]:
    for block in blocks:
        yield block, _count(block, segment)


def _count_in_processes(
    blocks: Iterable[list[str]], segment: Segmenter | None, n_workers: int
) -> Iterator[tuple[list[str], Counter[str]]]:
    running: deque[tuple[list[str], Future[Counter[str]]]] = deque()
    # Spawned, not forked: the caller may have threads (torch), which a fork would break.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(n_workers, mp_context=context) as pool:
        try:
            for block in blocks:
                running.append((block, pool.submit(_count, block, segment)))
                if len(running) > 2 * n_workers:  # bounds what is read ahead
                    first, counts = running.popleft()
                    yield first, counts.result()
            yield from ((block, counts.result()) for block, counts in running)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _count(block: list[str], segment: Segmenter | None) -> Counter[str]:
    cut = segment or jieba_segmenter()
    counts: Counter[str] = Counter()
    for text in block:
        for part in _parts(fold_width(text)):
            counts.update(cut(part))
    return counts


@cache
def jieba_segmenter() -> Segmenter:
    """jieba with its own dictionary alone, made once a process; raises LexiconError where it is not installed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # jieba uses features that Python has since deprecated
            import jieba
    except ImportError as error:
        raise LexiconError("cutting a corpus into words needs jieba: pip install 'cige[train]'") from error
    jieba.setLogLevel(logging.WARNING)
    tokenizer = jieba.Tokenizer()  # its own: words that others add to jieba's must not change the counts
    tokenizer.initialize()
    return tokenizer.lcut  # type: ignore[no-any-return]


def _parts(text: str) -> Iterator[str]:
    begin = 0
    while len(text) - begin > _MAX_LINE_CHARS:
        end = begin + _MAX_LINE_CHARS
        last = next((k for k in range(end - 1, begin + _MAX_LINE_CHARS // 2, -1) if not text[k].isalnum()), end - 1)
        yield text[begin : last + 1]
        begin = last + 1
    yield text[begin:]
