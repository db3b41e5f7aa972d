"""The entities of a stream of texts: windows of similar length are read together, by several threads if there are many.

A thread prepares a group of windows in Python, which one thread at a time can do, and reads them in C, which many can.
What a text's entities are does not depend on the number of threads: the groups are the same, and each is read by one.
"""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from cige.entities.entity import Entity
from cige.lexicon.lexicon import LexiconSnapshot
from cige.lexicon.rules import Rules
from cige.tagging.merging import merge_windows
from cige.tagging.prediction import MAX_PAIRS, PredictionModel, ScoredSpan, predict_spans
from cige.tagging.selection import Selection
from cige.tagging.windows import read_window, windows_of
from cige.text.closed import Stretch, closed_stretches
from cige.text.given import item_hint
from cige.text.windows import Window

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

GROUP_BATCHES = 16  # a group has the windows of this many batches, so that a batch has windows of similar length
MAX_AT_ONCE = 256  # windows that a compiled model reads in one call
_PAIRS_AT_ONCE = 4 * MAX_PAIRS  # node pairs, so that long windows take little memory
_GROUPS_AHEAD = 2  # that each thread may have

Answer: TypeAlias = tuple[Window, int, list[ScoredSpan]]  # a window, the words left out in it, and its entities


class WordBudgetWarning(UserWarning):
    """Words of a text were left out, because a lattice has room for fewer overlapping words."""


@dataclass
class _Text:
    """A text, some windows of which may not have been read yet."""

    text: str
    closed: list[Stretch]
    rules: Rules
    n_unread: int
    spans: list[tuple[Window, list[ScoredSpan]]] = field(default_factory=list)
    n_dropped: int = 0

    def add(self, answer: Answer) -> None:
        window, n_dropped, spans = answer
        self.spans.append((window, spans))
        self.n_dropped += n_dropped
        self.n_unread -= 1

    def entities(self, *, overlapping: bool) -> list[Entity]:
        if self.n_dropped:
            warnings.warn(
                f"{self.n_dropped:,} of the words that match in {self.text[:20]!r}... were left out, because a lattice "
                "has room for fewer overlapping words; ner.analyze(text).words lists those that were read",
                WordBudgetWarning,
                stacklevel=3,
            )
        return merge_windows(self.text, self.spans, overlapping=overlapping)


_Group: TypeAlias = Sequence[tuple[_Text, Window]]


@dataclass(frozen=True)
class Stream:
    """How texts are read.

    Attributes:
        batch_size: windows per batch; with 1, the entities of each text are returned before the next text is read.
        is_compiled: whether the model runs in C. It then reads a group of any lengths in few calls, since each return
            from C waits for the thread that has the interpreter.
    """

    model: PredictionModel
    snapshot: LexiconSnapshot
    selection: Selection
    batch_size: int
    is_compiled: bool = False

    def entities(
        self, texts: Iterable[str], n_threads: int = 1, start_thread: Callable[[], None] | None = None
    ) -> Iterator[list[Entity]]:
        """The entities of each text, in order.

        Args:
            n_threads: number of threads that read groups of windows.
            start_thread: called first by each of these threads, if there are several.

        Raises:
            TypeError: a text is not a str.
        """
        size = 1 if self.batch_size == 1 else self.batch_size * GROUP_BATCHES
        if self.is_compiled:
            size = min(size, MAX_AT_ONCE)
        waiting: deque[_Text] = deque()
        group: list[tuple[_Text, Window]] = []
        readers = _Readers(self._read, 1 if self.batch_size == 1 else n_threads, start_thread)
        try:
            for number, text in enumerate(texts, 1):
                if not isinstance(text, str):
                    raise TypeError(f"text {number} is {type(text).__name__}; expected str{item_hint(text)}")
                windows = windows_of(text, self.model.label_facts, self.snapshot)
                waiting.append(_Text(text, closed_stretches(text), self.snapshot.rules(text), len(windows)))
                group += [(waiting[-1], window) for window in windows]
                while len(group) >= size:
                    readers.read(group[:size])
                    del group[:size]
                while waiting and not waiting[0].n_unread:
                    yield waiting.popleft().entities(overlapping=self.selection.overlapping)
            readers.finish(group)
            yield from (text.entities(overlapping=self.selection.overlapping) for text in waiting)
        finally:
            readers.close()

    def _read(self, group: _Group) -> list[Answer]:
        facts = self.model.label_facts
        parts = [read_window(t.text, window, self.snapshot, t.closed, t.rules, facts) for t, window in group]
        batch_size, max_pairs = (len(parts), _PAIRS_AT_ONCE) if self.is_compiled else (self.batch_size, MAX_PAIRS)
        lattices = [part.lattice for part in parts]
        of_lattices = predict_spans(self.model, lattices, self.selection, batch_size=batch_size, max_pairs=max_pairs)
        return [(part.window, part.lattice.n_dropped, spans) for part, spans in zip(parts, of_lattices, strict=True)]


class _Readers:
    """Threads that read groups of windows; their answers go to the texts in the order of the groups."""

    def __init__(self, read: Callable[[_Group], list[Answer]], n_threads: int, start_thread: Callable[[], None] | None):
        self._read, self._n_threads, self._start_thread = read, n_threads, start_thread
        self._threads: ThreadPoolExecutor | None = None
        self._running: deque[tuple[_Group, Future[list[Answer]]]] = deque()

    def read(self, group: _Group) -> None:
        """Read a group, at once or later; wait if many are being read."""
        if self._n_threads == 1:
            self._add(group, self._read(group))
            return
        if self._threads is None:
            from concurrent.futures import ThreadPoolExecutor  # which one thread does not need

            self._threads = ThreadPoolExecutor(self._n_threads, "cige", self._start_thread)
        self._running.append((group, self._threads.submit(self._read, group)))
        while self._running and (self._running[0][1].done() or len(self._running) > _GROUPS_AHEAD * self._n_threads):
            self._take()

    def finish(self, group: _Group) -> None:
        """Read the last group, by the calling thread if it is the only one, and wait for all others."""
        if self._threads is None:
            self._n_threads = 1
        self.read(group)
        while self._running:
            self._take()

    def close(self) -> None:
        """End the threads; groups that were not begun are not read."""
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)

    def _take(self) -> None:
        group, answers = self._running.popleft()
        self._add(group, answers.result())

    @staticmethod
    def _add(group: _Group, answers: list[Answer]) -> None:
        for (text, _), answer in zip(group, answers, strict=True):
            text.add(answer)
