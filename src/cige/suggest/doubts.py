"""Doubts: the spans of a text of which a model is uncertain, and the amount of uncertainty."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from cige.tagging.finder import EntityFinder
from cige.tagging.selection import Request, all_candidates

FLOOR = 0.01  # spans with a lower probability are ignored


@dataclass(frozen=True)
class Doubt:
    """A span [start, end) that may be an entity; `amount`, 0..0.5, is how likely the better guess is wrong."""

    start: int
    end: int
    amount: float


def doubts_of(finder: EntityFinder, texts: Iterable[str], request: Request) -> Iterator[list[Doubt]]:
    """The doubts of each text of a stream, in order, for the labels and types of the request.

    Each span and label with a probability p of at least FLOOR is a doubt with amount min(p, 1 - p). Their sum is about
    the number of errors of the model in the text. It is an entity-level form of least confidence for sequence labelling
    (Settles and Craven, EMNLP 2008), with exact marginals of the CRF. Forced user words are not doubts.
    """
    everything = all_candidates(request, finder.labels, finder.label_facts, floor=FLOOR)
    for candidates in finder.stream(texts, everything, batch_size=64):
        doubts = (Doubt(e.start, e.end, min(e.score, 1.0 - e.score)) for e in candidates if not e.forced)
        yield [doubt for doubt in doubts if doubt.amount > 0.0]


def total(doubts: Iterable[Doubt]) -> float:
    """The approximate number of wrong entities of a text."""
    return sum(doubt.amount for doubt in doubts)
