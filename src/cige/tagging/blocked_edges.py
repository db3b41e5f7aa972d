"""Blocked edges: no longer entity takes the place of a blocked word unless the model finds one there without the rule.

Without this, the best tags given that a span is not an entity are often those of the same span with a neighbouring
character: 在南京市长江大桥 in place of 南京市长江大桥. A longer name that the model itself finds, as 天津大学 over a
blocked 天津, stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from cige.data.sentence import Span
from cige.data.tags import split_tag
from cige.lattice.lattice import Lattice
from cige.tagging.edges import trimmed
from cige.tagging.scored_span import ScoredSpan


def without_blocked(lattice: Lattice) -> Lattice:
    """The same lattice without its blocked spans."""
    return replace(lattice, rules=replace(lattice.rules, blocked=()))


def edges_to_cut(lattice: Lattice, spans: Iterable[Span | ScoredSpan]) -> list[int]:
    """The positions, sorted, at which no entity may go on from the character before: the edges of blocked spans.

    The edges of a blocked span are left open if an entity of `spans` that is not blocked itself reaches beyond it.

    Args:
        spans: the entities of the best tags of `without_blocked(lattice)`.
    """
    blocked = np.array(lattice.rules.blocked, np.int64).reshape(-1, 2)
    starts, ends = blocked[:, 0], blocked[:, 1]
    is_open = np.zeros(len(blocked), bool)
    for span in spans:
        edges = trimmed(lattice.text, span.start, span.end)
        if edges and edges not in lattice.rules.blocked:
            start, end = edges
            is_open |= (start < ends) & (end > starts) & ((start < starts) | (end > ends))
    places = np.unique(blocked[~is_open]).tolist()
    return [place for place in places if 0 < place < lattice.n_chars]


def cut_edges(emissions: np.ndarray, places: Sequence[int], *, tags: Sequence[str], scheme: str) -> None:
    """Rule out, in float[T, L] emissions of a sentence, that an entity goes on at these positions."""
    goes_on = np.array([split_tag(tag, scheme)[0] in ("M", "I", "E") for tag in tags])
    if places:
        emissions[np.ix_(np.array(places), np.flatnonzero(goes_on))] = -np.inf
