"""What several models agree on in a text they were not trained on: labels for self-training.

What all of them find alike is taken as right, and where they differ the annotation stays open, so that a tagger that
learns from it is free there (data.tag_sets; Jie et al., NAACL 2019). Agreement is the measure of confidence of
tri-training (Zhou and Li, 2005).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from cige.data.sentence import EITHER, OPEN, Span
from cige.entities.entity import Entity


@dataclass(frozen=True)
class Judge:
    """A model whose finds count.

    Attributes:
        labels: those that it alone is asked about; empty: all labels that no other judge was given.
    """

    labels: frozenset[str] = frozenset()


def judged(label: str, judge: Judge, judges: Collection[Judge]) -> bool:
    """Whether a judge is asked about a label."""
    return label in judge.labels if judge.labels else not any(label in other.labels for other in judges)


def agreed_spans(
    found: Sequence[Sequence[Entity]], judges: Sequence[Judge], *, min_score: float = 0.5
) -> tuple[Span, ...]:
    """The spans of a text that its judges agree on, sorted and disjoint.

    Finds that overlap are settled together. If all who are asked about their labels found one and the same stretch,
    each with at least `min_score`, it is a span with their label, or with all of their labels joined by EITHER;
    otherwise the stretch that the finds cover is OPEN.

    Args:
        found: the entities of each judge, sorted and disjoint.
        judges: as many.
        min_score: of every find.
    """
    finds = sorted(
        (entity.start, entity.end, number, entity)
        for number, (judge, entities) in enumerate(zip(judges, found, strict=True))
        for entity in entities
        if judged(entity.label, judge, judges)
    )
    spans: list[Span] = []
    first = 0
    while first < len(finds):
        last, end = first + 1, finds[first][1]
        while last < len(finds) and finds[last][0] < end:
            end = max(end, finds[last][1])
            last += 1
        group = finds[first:last]
        spans.append(Span(group[0][0], end, _label([(n, e) for _, _, n, e in group], judges, min_score)))
        first = last
    return tuple(spans)


def _label(group: Sequence[tuple[int, Entity]], judges: Sequence[Judge], min_score: float) -> str:
    """Of finds that overlap."""
    labels = sorted({entity.label for _, entity in group})
    asked = {n for n, judge in enumerate(judges) if any(judged(label, judge, judges) for label in labels)}
    is_one = len({(entity.start, entity.end) for _, entity in group}) == 1
    is_sure = all(entity.score >= min_score for _, entity in group)
    return EITHER.join(labels) if is_one and is_sure and {n for n, _ in group} == asked else OPEN
