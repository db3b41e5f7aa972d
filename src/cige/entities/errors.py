"""Errors: entities that a model missed, and predictions that are spurious or have a wrong label or boundary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Literal

from cige.data.jsonl import span_object
from cige.entities.entity import Entity
from cige.entities.scores import Labelled, parts_of, span_of

Kind = Literal["missed", "spurious", "wrong type", "wrong boundary"]
KINDS: tuple[Kind, ...] = ("missed", "spurious", "wrong type", "wrong boundary")
NOTHING = "none"  # instead of a label if there is no entity on the other side
_Extent = tuple[int, int, tuple[tuple[int, int], ...]]  # start, end, parts


@dataclass(frozen=True)
class EntityError:
    """One difference between gold and predicted entities.

    Attributes:
        kind: "wrong type" is a correct span with another label, and "wrong boundary" a different span that shares a
            character with the gold span, with any label; "missed" and "spurious" entities have no counterpart.
        sentence: number of the sentence, from 0.
        gold, found: the gold and the predicted entity; None if there is none.
    """

    kind: Kind
    sentence: int
    gold: Labelled | None
    found: Entity | None

    def to_dict(self, text: str) -> dict[str, object]:
        """The fields and the `text` of the sentence, as JSON values."""
        return {
            "kind": self.kind,
            "sentence": self.sentence,
            "text": text,
            "gold": None if self.gold is None else span_object(span_of(self.gold), text),
            "found": None if self.found is None else self.found.to_dict(),
        }


def list_errors(gold: Sequence[Iterable[Labelled]], predicted: Sequence[Iterable[Entity]]) -> list[EntityError]:
    """The errors of each sentence, in order; every entity without an equal counterpart is in exactly one of them.

    Equal spans with different labels are paired first, then overlapping spans by their overlap, and of these, spans
    with equal labels first.
    """
    errors = []
    for number, (labelled, entities) in enumerate(zip(gold, predicted, strict=True)):
        right = set(map(span_of, entities)) & set(map(span_of, labelled))
        rest = [s for s in labelled if span_of(s) not in right]
        others = [e for e in entities if span_of(e) not in right]
        near = ((_closeness(s, e), j, k) for j, s in enumerate(rest) for k, e in enumerate(others))
        paired: dict[int, int] = {}
        for _, j, k in sorted((pair for pair in near if pair[0][0] > 0), reverse=True):
            if j not in paired and k not in paired.values():
                paired[j] = k
        of_sentence: list[EntityError] = []
        for j, k in paired.items():
            same = _extent(rest[j]) == _extent(others[k])
            of_sentence.append(EntityError("wrong type" if same else "wrong boundary", number, rest[j], others[k]))
        of_sentence += [EntityError("missed", number, s, None) for j, s in enumerate(rest) if j not in paired]
        of_sentence += [
            EntityError("spurious", number, None, e) for k, e in enumerate(others) if k not in paired.values()
        ]
        errors += sorted(of_sentence, key=_place)
    return errors


def confusion(gold: Sequence[Iterable[Labelled]], predicted: Sequence[Iterable[Labelled]]) -> dict[str, dict[str, int]]:
    """How often each gold label (first key) was predicted as each label or NOTHING (second key) for its span.

    Of several labels of one span, equal ones are paired first, and the others in alphabetical order.
    """
    counts: Counter[tuple[str, str]] = Counter()
    for labelled, entities in zip(gold, predicted, strict=True):
        left, right = _labels_by_extent(labelled), _labels_by_extent(entities)
        for span in left.keys() | right.keys():
            ours, theirs = left.get(span, set()), right.get(span, set())
            counts.update((label, label) for label in ours & theirs)
            counts.update(zip_longest(sorted(ours - theirs), sorted(theirs - ours), fillvalue=NOTHING))
    names = [*sorted({name for pair in counts for name in pair} - {NOTHING}), NOTHING]
    return {a: {b: counts[a, b] for b in names} for a in names} if counts else {}


def _closeness(a: Labelled, b: Labelled) -> tuple[float, bool, int]:
    """The priority of a pair: equal spans first, then by the share of common characters, then equal labels."""
    ours, theirs = span_of(a).pieces, span_of(b).pieces
    shared = sum(max(0, min(end, last) - max(start, first)) for start, end in ours for first, last in theirs)
    n_chars = sum(end - start for start, end in (*ours, *theirs)) - shared
    return shared / n_chars, a.label == b.label, -a.start


def _extent(span: Labelled) -> _Extent:
    return span.start, span.end, parts_of(span)


def _labels_by_extent(spans: Iterable[Labelled]) -> dict[_Extent, set[str]]:
    labels: dict[_Extent, set[str]] = {}
    for span in spans:
        labels.setdefault(_extent(span), set()).add(span.label)
    return labels


def _place(error: EntityError) -> tuple[int, int]:
    at = error.gold if error.gold is not None else error.found
    assert at is not None
    return at.start, at.end
