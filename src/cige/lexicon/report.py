"""LoadReport: what a word list or vector file gave, and what it did not and why."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

MAX_LISTED = 10_000  # refusals listed one by one; the counts cover all of them
N_SHOWN = 10
TEXT_WIDTH = 60


class Refusal(NamedTuple):
    """One line that was not taken: `line` is 1-based, `text` is its beginning, `reason` says why."""

    line: int
    text: str
    reason: str


@dataclass(frozen=True)
class LoadReport:
    """What became of every line of a file, or of every word given in memory.

    n_taken + n_refused + n_skipped is the number of lines, a word2vec header not counted.

    Attributes:
        source: the file, or "words" for words given in memory.
        format: how it was read: "list", "counts", "pairs", "word2vec", "binary", "npz", "folder" or "words".
        n_taken: words or vectors taken.
        n_refused: lines that something is wrong with, duplicates included.
        n_duplicates: how many of the refused lines repeat an earlier one.
        n_skipped: sound lines that nobody asked for: a count below `min_count`, a vector of no lexicon word.
        n_missing: lexicon words that a vector file has nothing for.
        reasons: reason -> number of refused lines.
        refused: the refused lines, the first 10,000 of them.
    """

    source: str
    format: str
    n_taken: int
    n_refused: int = 0
    n_duplicates: int = 0
    n_skipped: int = 0
    n_missing: int = 0
    reasons: dict[str, int] = field(default_factory=dict)
    refused: tuple[Refusal, ...] = ()

    def __str__(self) -> str:
        total = f"{self.source} ({self.format}): {self.n_taken:,} taken, {self.n_refused:,} refused"
        if self.n_skipped:
            total += f", {self.n_skipped:,} not asked for"
        if self.n_missing:
            total += f", {self.n_missing:,} lexicon words without a vector"
        lines = [total]
        lines += [f"  {n:,} x {reason}" for reason, n in sorted(self.reasons.items(), key=lambda item: -item[1])]
        lines += [f"  line {line}: {text!r}: {reason}" for line, text, reason in self.refused[:N_SHOWN]]
        if self.n_refused > N_SHOWN:
            lines.append(f"  ... and {self.n_refused - N_SHOWN:,} more")
        return "\n".join(lines)


class ReportBuilder:
    """Collects refusals while a source is read."""

    def __init__(self, *, source: str, format: str) -> None:
        self.source = source
        self.format = format
        self.n_skipped = 0
        self.n_missing = 0
        self.first: dict[str, Refusal] = {}  # reason -> the first line refused for it
        self._n_refused: Counter[str] = Counter()
        self._refused: list[Refusal] = []

    def refuse(self, line: int, text: str, reason: str) -> None:
        refusal = Refusal(line, text[:TEXT_WIDTH], reason)
        self.first.setdefault(reason, refusal)
        self._n_refused[reason] += 1
        if len(self._refused) < MAX_LISTED:
            self._refused.append(refusal)

    def n_refused(self, reason: str) -> int:
        return self._n_refused[reason]

    def build(self, *, n_taken: int) -> LoadReport:
        return LoadReport(
            source=self.source,
            format=self.format,
            n_taken=n_taken,
            n_refused=sum(self._n_refused.values()),
            n_duplicates=self._n_refused["duplicate"],
            n_skipped=self.n_skipped,
            n_missing=self.n_missing,
            reasons=dict(self._n_refused),
            refused=tuple(sorted(self._refused)),  # a block's rows may be refused in several turns
        )
