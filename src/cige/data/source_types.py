"""Relate the labels of several corpora: a tree of types, and which of them each corpus annotates.

A types file is YAML or JSON:

    parents: {COMPANY: ORG, BOOK: WORK}            # a company is an organisation
    sources:
      msra:
        map: {NR: PER, NS: LOC, NT: ORG}            # its labels -> types; null: treat as not annotated
        annotated: [PER, LOC, ORG]                  # types whose entities are all labelled
        absent: [PRODUCT]                           # types that are not annotated and rarely occur
      people1998:
        map: {PER: PER, TIME: TIME}
        annotated: [PER, TIME]
        join: [TIME]                                # adjacent entities of these types are merged
      titles:
        map: {book: BOOK, video: [VIDEO, MOVIE]}    # may be either
        annotated: []
        brackets: [BOOK]                            # entities within 《》 or quotes include them
      matches:
        map: {word: PRODUCT}
        annotated: []
        doubtful: {word: 4.0}                       # may be no entity; such a span is 4 times as likely if it is one

In the data, a label may also be several labels of `map` joined by `|`, each of which is correct, or `?` for a stretch
that was not annotated, for which every prediction is correct.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any

from cige.data.sentence import EITHER, OPEN, Sentence, Span
from cige.data.tag_sets import GoldTags, TagSets
from cige.data.text_files import read_text
from cige.errors import DataError
from cige.recipes.yaml_file import YAMLError, yaml_problem, yaml_value

DOUBT = "?"  # between the types of a span that may be no entity and its odds
_BRACKETS = {"《": "》", "“": "”", '"': '"', "「": "」", "『": "』", "〈": "〉", "‘": "’"}


class TypeTree:
    """The hierarchy of types. Raises a DataError if a type is its own parent, directly or indirectly.

    Args:
        parents: the parent of each type that has one; a type is a kind of its parent.
    """

    def __repr__(self) -> str:
        return f"TypeTree({self.parents!r})"

    def __init__(self, parents: Mapping[str, str]):
        self.parents = dict(parents)
        for child in self.parents:
            self.line(child)

    def line(self, name: str) -> list[str]:
        """A type, its parent, the parent's parent, and so on."""
        line = [name]
        while line[-1] in self.parents:
            above = self.parents[line[-1]]
            if above in line:
                raise DataError(f"types: {' is a kind of '.join([*line, above])}; expected a tree")
            line.append(above)
        return line

    def is_kind_of(self, name: str, other: str) -> bool:
        """Whether `name` is `other` or a kind of it."""
        return other in self.line(name)


@dataclass(frozen=True)
class SourceTypes:
    """The types that a corpus annotates.

    Attributes:
        map: for each label of the corpus, the types that such an entity may have; if there are none, the entity is
            treated as not annotated.
        annotated: types whose entities are all labelled, including those of their subtypes.
        absent: types that are not annotated and rarely occur, so that an O excludes them. Otherwise only corpora that
            annotate a type would have negative examples of it.
        join: types whose adjacent entities are merged.
        brackets: types whose entities include the brackets or quotes around them.
        doubtful: labels whose spans may not be entities: how many times as likely such a span is for an entity as for
            other text, above 0 (see GoldTags). `read` writes these odds after the types.
    """

    map: Mapping[str, tuple[str, ...]]
    annotated: tuple[str, ...]
    absent: tuple[str, ...] = ()
    join: tuple[str, ...] = ()
    brackets: tuple[str, ...] = ()
    doubtful: Mapping[str, float] = field(default_factory=dict)

    def read(self, sentence: Sentence) -> Sentence:
        """The sentence with types instead of the corpus's labels; several types are joined by `EITHER`, and `OPEN` is
        kept. Raises a DataError if a label is not in `map`."""
        spans: list[Span] = []
        for span in sentence.spans:
            if span.label == OPEN:
                spans.append(span)
                continue
            types = self._types_of(span.label)
            if not types:
                continue
            start, end = span.start, span.end
            if not set(self.brackets).isdisjoint(types) and _in_brackets(sentence.text, start, end):
                start, end = start - 1, end + 1
            label = self._written(span.label) if span.label in self.map else EITHER.join(types)
            if spans and spans[-1].end == start and spans[-1].label == label and not set(self.join).isdisjoint(types):
                start = spans.pop().start
            spans.append(Span(start, end, label))
        return Sentence(sentence.text, tuple(spans), sentence.line)

    def _types_of(self, label: str) -> tuple[str, ...]:
        types: dict[str, None] = {}
        for one in [label] if label in self.map else label.split(EITHER):
            if one not in self.map:
                raise DataError(f"the label {label!r} is not in its types: {', '.join(self.map)}")
            types |= dict.fromkeys(self.map[one])
        return tuple(types)

    def gold(
        self,
        sets: TagSets,
        scheme: str,
        labels: Sequence[str],
        tree: TypeTree,
        *,
        hidden_odds: float = 1.0,
        written: Collection[str] = (),
    ) -> GoldTags:
        """The gold tags of sentences that `read` returned, for a model with `labels`.

        A span of a type may have any of its subtypes that the corpus does not label separately. If the model has no
        label for a type, that of its nearest ancestor is used; if there is none, the type is treated as not annotated.
        Labels of the model whose types are neither annotated nor absent are allowed wherever the corpus has an O.

        Args:
            sets: tag sets of the model's tags.
            scheme: tag scheme of the model.
            labels: labels of the model.
            tree: the hierarchy of types.
            hidden_odds: see GoldTags.
            written: the labels that `read` returned, if some are OPEN or joined from several labels of `map`.
        """
        named = {self._written(label): types for label, types in self.map.items() if types}
        named |= {label: tuple(label.split(EITHER)) for label in written if label not in (*named, OPEN)}
        allowed = {label: self._labels_of(types, labels, tree) for label, types in named.items()}
        return GoldTags(
            sets,
            scheme,
            allowed=allowed | ({OPEN: sets.tags} if OPEN in written else {}),
            hidden=[
                x for x in labels if not any(tree.is_kind_of(x, known) for known in (*self.annotated, *self.absent))
            ],
            hidden_odds=hidden_odds,
            doubtful={self._written(label): odds for label, odds in self.doubtful.items() if self.map[label]},
        )

    def comparable(
        self, spans: Iterable[Span], labels: Sequence[str], tree: TypeTree, *, but: Sequence[str] = ()
    ) -> list[Span]:
        """Spans with the annotated type to which they belong; spans of other types cannot be scored and are left out.

        Doubtful spans are compared like certain ones.

        Args:
            spans: gold spans that `read` returned, or predicted spans.
            labels: labels of the model; annotated types that it cannot predict are left out.
            but: other annotated types to leave out.
        """
        known = {x for x in self.annotated if any(tree.is_kind_of(label, x) for label in labels)} - set(but)
        types = []
        for span in spans:
            type_ = next((x for x in tree.line(_first_type(span.label)) if x in self.annotated), None)
            if type_ in known:
                types.append(Span(span.start, span.end, type_))
        return types

    def _written(self, label: str) -> str:
        """The label that `read` writes for a label of the corpus."""
        odds = f"{DOUBT}{self.doubtful[label]:g}" if label in self.doubtful else ""
        return EITHER.join(self.map[label]) + odds

    def _labels_of(self, types: Sequence[str], labels: Sequence[str], tree: TypeTree) -> list[str]:
        mapped = {
            x
            for x in labels
            for type_ in types
            if x == type_ or (tree.is_kind_of(x, type_) and set(self.annotated).isdisjoint(_between(tree, x, type_)))
        }
        if not mapped:
            nearest = (next((above for above in tree.line(type_) if above in labels), None) for type_ in types)
            mapped = {above for above in nearest if above is not None}
        return sorted(mapped)


def _first_type(label: str) -> str:
    return label.partition(DOUBT)[0].partition(EITHER)[0]


def _between(tree: TypeTree, name: str, above: str) -> list[str]:
    """The types from `name` up to `above`, without the latter."""
    line = tree.line(name)
    return line[: line.index(above)]


def _in_brackets(text: str, start: int, end: int) -> bool:
    return start > 0 and end < len(text) and _BRACKETS.get(text[start - 1]) == text[end]


def default_labels(sources: Sequence[SourceTypes], tree: TypeTree) -> list[str]:
    """The labels of a model that is trained on these sources: every type that occurs, except parents that are only the
    union of their subtypes. A source that uses both a parent and its subtypes uses the parent for the other
    entities."""
    used = {type_ for source in sources for types in source.map.values() for type_ in types}

    def is_sum(name: str) -> bool:
        kinds = {x for x in used if x != name and tree.is_kind_of(x, name)}
        return bool(kinds) and not any(
            (name,) in source.map.values() and kinds & {x for types in source.map.values() for x in types}
            for source in sources
        )

    return sorted(x for x in used if not is_sum(x))


def read_types(path: str | Path) -> tuple[dict[str, SourceTypes], TypeTree]:
    """Read a types file: the sources by name, and the tree. Raises a DataError if the file cannot be read, or does not
    have the format above."""
    text = read_text(path)
    try:
        values = yaml_value(text)
    except YAMLError as reason:
        line, problem = yaml_problem(reason, text)
        raise DataError(f"{path}:{line}: not valid YAML: {problem}") from reason
    if not isinstance(values, Mapping):
        raise DataError(f"{path}: expected a mapping with `parents` and `sources`")
    sources = values.get("sources", values)
    parents = values.get("parents") or {}
    if not isinstance(sources, Mapping) or not isinstance(parents, Mapping):
        raise DataError(f"{path}: `parents` and `sources` must be mappings")
    try:
        for child, parent in parents.items():
            if not isinstance(child, str) or not isinstance(parent, str):
                raise DataError(f"`parents` has {child!r}: {parent!r:.60}; expected two types, as in COMPANY: ORG")
        return {name: _source(facts) for name, facts in sources.items() if name != "parents"}, TypeTree(parents)
    except DataError as reason:
        raise DataError(f"{path}: {reason}") from None


def _source(facts: Any) -> SourceTypes:
    known = {"map", "annotated", "absent", "join", "brackets", "doubtful"}
    if not isinstance(facts, Mapping) or set(facts) - known or "map" not in facts:
        given = ", ".join(map(str, facts)) if isinstance(facts, Mapping) else f"{facts!r:.60}"
        raise DataError(
            f"a source has `map`, `annotated`, `absent`, `join`, `brackets` and `doubtful`; given {given or 'nothing'}"
        )
    for name in ("map", "doubtful"):
        if not isinstance(facts.get(name) or {}, Mapping):
            raise DataError(f"`{name}` is {facts[name]!r:.60}; expected a mapping, as in `{name}: {{NR: ...}}`")
    labels = facts["map"] or {}
    for label in labels:
        if not isinstance(label, str):
            raise DataError(
                f"the label {label!r} in `map` is not a string; put quotes around it (YAML reads NO as false)"
            )
    return SourceTypes(
        map={label: _names(types) for label, types in labels.items()},
        doubtful=_odds(facts.get("doubtful") or {}, labels),
        **{name: _names(facts.get(name)) for name in ("annotated", "absent", "join", "brackets")},
    )


def _odds(value: Any, labels: Mapping[str, Any]) -> dict[str, float]:
    for label, odds in value.items():
        if label not in labels:
            raise DataError(f"`doubtful` has {label!r}, which is not in `map`")
        if isinstance(odds, bool) or not isinstance(odds, int | float) or not (odds > 0 and isfinite(odds)):
            raise DataError(f"`doubtful` has {odds!r} for {label}; expected odds above 0")
    return {label: float(odds) for label, odds in value.items()}


def _names(value: Any) -> tuple[str, ...]:
    names = () if value is None else value if isinstance(value, list) else (value,)
    if not all(isinstance(name, str) and name and not {EITHER, DOUBT} & set(name) for name in names):
        raise DataError(f"given {value!r}; expected a type or a list of types (without {EITHER!r} and {DOUBT!r})")
    return tuple(names)
