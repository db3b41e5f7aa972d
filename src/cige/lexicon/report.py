"""LoadReport: what was taken from a word list or vector file, and what was refused and why."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from cige.errors import WordListWarning  # noqa: F401  # users filter it by this path
from cige.lexicon.word_rules import DUPLICATE, WAYS_OUT
from cige.text.counted import counted
from cige.text.visible import visible

MAX_LISTED = 10_000  # refused lines that are listed; all of them are counted
N_SHOWN = 10
TEXT_WIDTH = 60


class Refusal(NamedTuple):
    """A line that was refused: its number `line` from 1, the beginning of its `text`, and the `reason`."""

    line: int
    text: str
    reason: str


@dataclass(frozen=True)
class LoadReport:
    """The result of reading a file line by line, or words in memory one by one.

    n_taken + n_refused + n_skipped is the number of lines, not counting blank lines, comments and headers.

    Attributes:
        source: the file, or "words" for words in memory.
        format: the format that was read: "list", "counts", "pairs", "labels", "csv", "jsonl", "word2vec", "binary",
            "npz", "folder" or "words".
        n_taken: number of words or vectors taken.
        n_refused: number of lines with a problem, including duplicates.
        n_duplicates: number of refused lines that repeat an earlier one.
        n_skipped: number of valid lines that are not needed: their count is below `min_count`, or they are vectors of
            words that are not in the lexicon.
        n_missing: number of lexicon words without a vector in the file.
        n_comments: number of lines that begin with #.
        reasons: the number of refused lines for each reason.
        refused: the first 10,000 refused lines.
        ignored_columns: the names in a table's header of columns that were not read.
    """

    source: str
    format: str
    n_taken: int
    n_refused: int = 0
    n_duplicates: int = 0
    n_skipped: int = 0
    n_missing: int = 0
    n_comments: int = 0
    reasons: dict[str, int] = field(default_factory=dict)
    refused: tuple[Refusal, ...] = ()
    ignored_columns: tuple[str, ...] = ()

    @property
    def is_incomplete(self) -> bool:
        """Whether lines were refused or nothing was taken, which commands tell the user."""
        return self.n_refused > 0 or self.n_taken == 0

    def __str__(self) -> str:
        total = f"{self.source} ({self.format}): {self.n_taken:,} taken, {self.n_refused:,} refused"
        if self.n_skipped:
            total += f", {self.n_skipped:,} not needed"
        if self.n_comments:
            total += f", {counted(self.n_comments, 'comment line')}"
        if self.n_missing:
            total += f", {counted(self.n_missing, 'lexicon word')} without a vector"
        lines = [total]
        if self.ignored_columns:
            names = visible(", ".join(self.ignored_columns))
            lines.append(f"  columns that were not read: {names} (those that are: word, label, mode and count)")
        for reason, n in sorted(self.reasons.items(), key=lambda item: -item[1]):
            lines.append(f"  {n:,} x {reason}" + (f" ({WAYS_OUT[reason]})" if reason in WAYS_OUT else ""))
        lines += [f"  line {line}: {text!r}: {reason}" for line, text, reason in self._shown()]
        if self.n_refused > N_SHOWN:
            lines.append(f"  ... and {self.n_refused - N_SHOWN:,} more")
        return "\n".join(lines)

    def _shown(self) -> list[Refusal]:
        """The refused lines to show: as many of each reason as possible, so that duplicates do not hide the others."""
        n_before: Counter[str] = Counter()
        ranked = []
        for refusal in self.refused:
            ranked.append((n_before[refusal.reason], refusal))
            n_before[refusal.reason] += 1
        return sorted(refusal for _, refusal in sorted(ranked)[:N_SHOWN])


@dataclass(kw_only=True)
class ReportBuilder:
    """Collects refused lines while a source is read."""

    source: str
    format: str
    n_skipped: int = 0
    n_missing: int = 0
    n_comments: int = 0
    ignored_columns: tuple[str, ...] = ()
    first: dict[str, Refusal] = field(default_factory=dict)  # the first refused line for each reason
    reasons: Counter[str] = field(default_factory=Counter)  # the number of refused lines for each reason
    _refused: list[Refusal] = field(default_factory=list)

    def refuse(self, line: int, text: str, reason: str) -> None:
        refusal = Refusal(line, text[:TEXT_WIDTH], reason)
        self.first.setdefault(reason, refusal)
        self.reasons[reason] += 1
        if len(self._refused) < MAX_LISTED:
            self._refused.append(refusal)

    def build(self, *, n_taken: int) -> LoadReport:
        return LoadReport(
            source=self.source,
            format=self.format,
            n_taken=n_taken,
            n_refused=self.reasons.total(),
            n_duplicates=self.reasons[DUPLICATE],
            n_skipped=self.n_skipped,
            n_missing=self.n_missing,
            n_comments=self.n_comments,
            reasons=dict(self.reasons),
            refused=tuple(sorted(self._refused)),  # the rows of a block are not always refused in order
            ignored_columns=self.ignored_columns,
        )
