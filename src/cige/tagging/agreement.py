"""Self-training labels: the entities that several models agree on in text that they were not trained on.

Entities that all models predict are taken as correct. Where the models differ, the annotation is left open, so that a
tagger trained on it may predict anything there (data.tag_sets; Jie et al., NAACL 2019). Tri-training uses agreement as
its measure of confidence in the same way (Zhou and Li, 2005).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TypeAlias

from cige.data.sentence import EITHER, OPEN, Span
from cige.entities.entity import Entity

Judge: TypeAlias = frozenset[str]
"""A model whose predictions are compared with those of others, by the labels for which only this model is used; if
empty, it is used for all labels that no other judge lists."""


def judged(label: str, judge: Judge, judges: Collection[Judge]) -> bool:
    """Whether the predictions of a judge are used for a label."""
    return label in judge if judge else not any(label in other for other in judges)


def agreed_spans(
    entities_of_judges: Sequence[Sequence[Entity]], judges: Sequence[Judge], *, min_score: float = 0.5
) -> tuple[Span, ...]:
    """The spans of a text that the judges agree on, sorted and disjoint.

    Overlapping entities form a group. If all judges that are used for its labels predict the same span with a score of
    at least `min_score`, the result is that span with their label, or with all of their labels joined by EITHER;
    otherwise the part of the text that the group covers is OPEN. So is that of an entity with a gap, since taggers that
    learn from open text cannot learn it.

    Args:
        entities_of_judges: for each of `judges` its entities, sorted and disjoint.
    """
    finds = sorted(
        (entity.start, entity.end, number, entity)
        for number, (judge, entities) in enumerate(zip(judges, entities_of_judges, strict=True))
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
    """The label of a group of overlapping entities."""
    labels = sorted({entity.label for _, entity in group})
    consulted = {n for n, judge in enumerate(judges) if any(judged(label, judge, judges) for label in labels)}
    is_one = len({(entity.start, entity.end) for _, entity in group}) == 1 and not any(e.parts for _, e in group)
    is_sure = all(entity.score >= min_score for _, entity in group)
    return EITHER.join(labels) if is_one and is_sure and {n for n, _ in group} == consulted else OPEN
