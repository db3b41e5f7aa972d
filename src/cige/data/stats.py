"""Stats: statistics of a data set, as in Table 1 of the FLAT paper."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from typing import TYPE_CHECKING

from cige.data.sentence import Sentence, Span
from cige.lexicon.snapshot import LexiconSnapshot
from cige.text.normalize import normalize

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True)
class DatasetStats:
    """Statistics of labelled sentences.

    Attributes:
        n_sentences, n_chars, n_entities: total numbers of sentences, code points and entities.
        n_words: number of words matched by the lexicon, including overlapping ones; None without a lexicon.
        n_overlapping: number of entities that share a character with another one, as nested ones do.
        n_discontinuous: number of entities with gaps.
        labels: number of entities by type, the most frequent first.
        max_chars: length of the longest sentence in code points.
        n_empty: number of sentences without an entity.
        n_duplicates: number of sentences whose text occurred before.
    """

    n_sentences: int
    n_chars: int
    n_words: int | None
    n_entities: int
    n_overlapping: int
    n_discontinuous: int
    labels: dict[str, int]
    max_chars: int
    n_empty: int
    n_duplicates: int

    @property
    def chars_per_sentence(self) -> float:
        """Table 1's Char_avg."""
        return self._per_sentence(self.n_chars)

    @property
    def words_per_sentence(self) -> float | None:
        """Table 1's Word_avg; None without a lexicon."""
        return None if self.n_words is None else self._per_sentence(self.n_words)

    @property
    def entities_per_sentence(self) -> float:
        """Table 1's Entity_avg."""
        return self._per_sentence(self.n_entities)

    def _per_sentence(self, n: int) -> float:
        return n / self.n_sentences if self.n_sentences else 0.0

    def to_dict(self) -> dict[str, object]:
        """Counts and averages as JSON values."""
        return asdict(self) | {
            "chars_per_sentence": self.chars_per_sentence,
            "words_per_sentence": self.words_per_sentence,
            "entities_per_sentence": self.entities_per_sentence,
        }

    def table(self, title: str | None = None) -> Table:
        """The statistics as a rich table."""
        from rich.table import Table

        table = Table("", "total", "per sentence", title=title)
        for column in table.columns[1:]:
            column.justify = "right"
        words, words_each = self.n_words, self.words_per_sentence
        table.add_row("sentences", f"{self.n_sentences:,}", "")
        table.add_row("characters", f"{self.n_chars:,}", f"{self.chars_per_sentence:.2f}")
        if words is not None and words_each is not None:
            table.add_row("matched words", f"{words:,}", f"{words_each:.2f}")
        table.add_row("entities", f"{self.n_entities:,}", f"{self.entities_per_sentence:.2f}", end_section=True)
        for label, n_entities in self.labels.items():
            table.add_row(f"  {label}", f"{n_entities:,}", f"{n_entities / self.n_sentences:.2f}")
        if self.n_overlapping or self.n_discontinuous:  # few data sets have such entities
            table.add_section()
            table.add_row("overlapping entities", f"{self.n_overlapping:,}", "")
            table.add_row("entities with gaps", f"{self.n_discontinuous:,}", "")
        table.add_section()
        table.add_row("longest sentence", f"{self.max_chars:,}", "")
        table.add_row("without an entity", f"{self.n_empty:,}", "")
        table.add_row("seen before in the file", f"{self.n_duplicates:,}", "")
        return table


def dataset_stats(sentences: Sequence[Sentence], lexicon: LexiconSnapshot | None = None) -> DatasetStats:
    """Compute statistics; with a `lexicon` (a snapshot), also of the words in the normalised texts."""
    labels = Counter(span.label for sentence in sentences for span in sentence.spans)
    return DatasetStats(
        n_sentences=len(sentences),
        n_chars=sum(len(sentence.text) for sentence in sentences),
        n_words=None if lexicon is None else sum(len(lexicon.match(normalize(s.text))) for s in sentences),
        n_entities=labels.total(),
        n_overlapping=sum(_n_overlapping(sentence.spans) for sentence in sentences),
        n_discontinuous=sum(bool(span.parts) for sentence in sentences for span in sentence.spans),
        labels=dict(sorted(labels.items(), key=lambda item: (-item[1], item[0]))),
        max_chars=max((len(sentence.text) for sentence in sentences), default=0),
        n_empty=sum(not sentence.spans for sentence in sentences),
        n_duplicates=len(sentences) - len({sentence.text for sentence in sentences}),
    )


def _n_overlapping(spans: Sequence[Span]) -> int:
    ordered = sorted(spans)
    overlapping: set[Span] = set()
    for number, span in enumerate(ordered, 1):
        for other in islice(ordered, number, None):
            if other.start >= span.end:
                break
            if span.overlaps(other):
                overlapping |= {span, other}
    return len(overlapping)
