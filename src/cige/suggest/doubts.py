"""Doubts: where a model is unsure of the entities of a text, and by how much."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from cige.tagging.finder import EntityFinder
from cige.tagging.selection import Request, all_candidates

FLOOR = 0.01  # spans that are less probable count as no doubt


@dataclass(frozen=True)
class Doubt:
    """A span [start, end) of a text that may or may not be an entity.

    Attributes:
        amount: 0..0.5, the probability that the more probable of the two is wrong.
    """

    start: int
    end: int
    amount: float


def doubts_of(
    finder: EntityFinder, texts: Iterable[str], request: Request, *, batch_size: int = 64
) -> Iterator[list[Doubt]]:
    """The doubts of each text, in order, while texts keep coming.

    Every span and label of a probability p of at least FLOOR is a doubt of min(p, 1 - p). Their sum is about the number
    of entities that the model gets wrong in the text: an entity-level form of the least confidence of sequence
    labelling (Settles and Craven, EMNLP 2008), with exact marginals of the CRF in place of sampled readings. Words that
    the user forces are no doubt.

    Args:
        request: its labels and types are the ones that count; its minimum score does not.
    """
    everything = all_candidates(request, finder.labels, finder.label_facts, floor=FLOOR)
    for candidates in finder.stream(texts, everything, batch_size=batch_size):
        doubts = (Doubt(e.start, e.end, min(e.score, 1.0 - e.score)) for e in candidates if not e.forced)
        yield [doubt for doubt in doubts if doubt.amount > 0.0]


def total(doubts: Iterable[Doubt]) -> float:
    """About how many entities of a text are wrong."""
    return sum(doubt.amount for doubt in doubts)
