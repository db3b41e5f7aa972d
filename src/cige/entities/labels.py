"""Labels: the type names of a data set told in those of a model."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from cige.data.sentence import Span
from cige.errors import DataError


def parse_label_map(text: str) -> dict[str, str]:
    """Read "NR=PER,NS=LOC" (data label = model label) as a dict; "" is an empty one.

    Raises DataError for an item without a name on both sides of "=", and for a label that is given two names.
    """
    mapping: dict[str, str] = {}
    for item in filter(str.strip, text.split(",")):
        source, equals, target = (part.strip() for part in item.partition("="))
        if not (source and equals and target):
            raise DataError(f"label map item {item!r}: expected DATA=MODEL, such as NR=PER")
        if mapping.setdefault(source, target) != target:
            raise DataError(f"label {source} is mapped to both {mapping[source]} and {target}")
    return mapping


def map_labels(
    spans: Iterable[Iterable[Span]], mapping: Mapping[str, str], *, model_labels: Collection[str]
) -> list[list[Span]]:
    """The spans of each sentence with the model's labels; a label that the model has too may stay unmapped.

    Raises DataError, listing the labels of both sides, if one of the data has no counterpart in `model_labels`.
    """
    sentences = [list(sentence) for sentence in spans]
    data_labels = {span.label for sentence in sentences for span in sentence}
    known = {label: mapping.get(label, label) for label in data_labels}
    unmapped = {label for label, target in known.items() if target not in model_labels}
    unmapped |= {target for target in mapping.values() if target not in model_labels and target not in known.values()}
    if unmapped:
        ours, theirs = (", ".join(sorted(labels)) or "none" for labels in (data_labels, model_labels))
        raise DataError(
            f"no label of the model for {', '.join(sorted(unmapped))}; the data has {ours}, the model {theirs}; "
            "map them with --labels DATA=MODEL,..."
        )
    return [[Span(s.start, s.end, known[s.label]) for s in sentence] for sentence in sentences]
