"""Partial gold tags: for every character, the set of tags that its annotation allows.

Corpora that are used together for training annotate different types. If a corpus does not annotate films, a film may be
tagged O in it; if it annotates only organisations, each of them may be a company. Such a sentence has not one gold
sequence of tags but a set of them, given by a set of tags per character, and its likelihood is the sum over that set:
Jie, Xie, Lu, Ding, Li, "Better Modeling of Incomplete Annotations for Named Entity Recognition", NAACL 2019.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from math import log, sqrt

import numpy as np

from cige.data.sentence import OPEN, Sentence, Span, show_sentence
from cige.data.tags import spans_to_tags, split_tag
from cige.errors import DataError


class TagSets:
    """The distinct sets of weighted tags that occur, with ids. Sets 0..L-1 contain one of the L `tags` each and have
    its id."""

    def __init__(self, tags: Sequence[str]):
        self.tags = list(tags)
        self._ids: dict[frozenset[tuple[int, float]], int] = {frozenset([(k, 1.0)]): k for k in range(len(tags))}

    def __len__(self) -> int:
        return len(self._ids)

    def id_of(self, names: Iterable[str] | Mapping[str, float]) -> int:
        """The id of the set of these tags, which is added if it is new. Raises a DataError if the model does not have
        one of the tags, or there are no tags.

        Args:
            names: the tags; as a mapping, the weight of each, above 0. Otherwise, all weights are 1.
        """
        weights = names if isinstance(names, Mapping) else dict.fromkeys(names, 1.0)
        try:
            members = frozenset((self.tags.index(tag), float(weight)) for tag, weight in weights.items())
        except ValueError as missing:
            raise DataError(f"the model does not have this tag: {missing}") from None
        if not members:
            raise DataError("the annotation allows no tag")
        return self._ids.setdefault(members, len(self._ids))

    @property
    def log_weights(self) -> np.ndarray:
        """float32[K, L]: the logarithm of the weight of each tag in each set; -inf for tags that are not in the set."""
        table = np.full((len(self._ids), len(self.tags)), -np.inf, np.float32)
        for members, number in self._ids.items():
            for tag, weight in members:
                table[number, tag] = log(weight)
        return table


class GoldTags:
    """Converts the gold spans of a corpus to ids of tag sets.

    Args:
        sets: tag sets of the model's tags; new sets are added to it.
        scheme: tag scheme of the model.
        allowed: for each label of gold spans, the labels of the model that it may represent. A label that is not listed
            represents only itself, or each of its parts if it is several labels joined by EITHER. Spans whose label has
            an empty list are treated as not annotated. A span labelled OPEN allows every tag.
        hidden: labels of the model whose entities the corpus does not annotate, so that they may be tagged O.
        hidden_odds: the weight of such an entity, greater than 0 and at most 1, compared with 1 for an O. With 1,
            training on the corpus never contradicts predictions of these types, so wrong ones are not corrected.
        doubtful: for each label of gold spans that may not be entities, how many times as likely such a span is for an
            entity as for other text, above 0. The span may then be an entity, or have the tags of an O. If it shares
            only one of its two edges with an entity, the weight of that entity is the square root of these odds.
    """

    def __init__(
        self,
        sets: TagSets,
        scheme: str,
        *,
        allowed: Mapping[str, Sequence[str]] | None = None,
        hidden: Sequence[str] = (),
        hidden_odds: float = 1.0,
        doubtful: Mapping[str, float] | None = None,
    ):
        self.sets, self._scheme = sets, scheme
        doubtful = doubtful or {}
        self._allowed = {label: (label,) for label in doubtful} | dict(allowed or {})
        parts = {tag: split_tag(tag) for tag in sets.tags}
        none = {"O": 1.0} | {
            tag: hidden_odds if prefix in "BS" else 1.0 for tag, (prefix, label) in parts.items() if label in hidden
        }
        self._ids = {"O": sets.id_of(none)}  # of the tags that `spans_to_tags` writes
        prefixes = {prefix for prefix, _ in parts.values()} - {"O"}
        for label, tags_of_label in self._allowed.items():  # all of them now, so that the table of sets is complete
            if label == OPEN:
                self._ids |= {f"{prefix}-{OPEN}": sets.id_of(sets.tags) for prefix in prefixes}
                continue
            for prefix in sorted(prefixes) if tags_of_label else ():
                weight = _edge_weight(prefix, doubtful.get(label, 1.0))
                tags = {f"{prefix}-{x}": weight for x in tags_of_label}
                self._ids[f"{prefix}-{label}"] = sets.id_of(none | tags if label in doubtful else tags)

    def ids(self, sentence: Sentence) -> np.ndarray:
        """int64[T] ids of tag sets."""
        spans = [span for span in sentence.spans if self._allowed.get(span.label, (span.label,))]
        try:
            tags = spans_to_tags(len(sentence.text), spans, self._scheme)
            return np.array([self._ids[x] if x in self._ids else self.sets.id_of([x]) for x in tags], np.int64)
        except DataError as reason:
            raise DataError(f"{show_sentence(sentence)}: {reason}") from None

    def narrowed(self, ids: np.ndarray, spans: Iterable[Span], labelled: Container[tuple[int, int, str]]) -> np.ndarray:
        """Restrict spans that allow several labels to their own label if a user's word has this label.

        A user who lists 华为 as ORG expects an ORG, even if the model has a label for companies.

        Args:
            ids: int64[T], the ids of these spans; they are not modified.
            labelled: (start, end, label) of words with a label.

        Returns:
            int64[T], ids of tag sets.
        """
        vague = [s for s in spans if len(of := self._allowed.get(s.label, ())) > 1 and s.label in of]
        exact = [s for s in vague if (s.start, s.end, s.label) in labelled]
        if not exact:
            return ids
        narrowed = ids.copy()
        for k, tag in enumerate(spans_to_tags(len(ids), exact, self._scheme)):
            if tag != "O":
                narrowed[k] = self.sets.id_of([tag])
        return narrowed


def _edge_weight(prefix: str, odds: float) -> float:
    """The contribution of the tag with this prefix to the weight `odds` of an entity: its square root at each edge."""
    return odds if prefix == "S" else sqrt(odds) if prefix in "BE" else 1.0
