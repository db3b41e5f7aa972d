"""Labels: map the labels of a data set to those of a model."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from cige.data.sentence import Span
from cige.errors import DataError

DROPPED = ""
"""The target of labels whose entities are left out."""


def parse_label_map(items: str | Iterable[str], *, may_drop: bool = False) -> dict[str, str]:
    """Parse "NR=PER,NS=LOC" (data label = model label), or several such strings, as a dict. Raises a DataError if an
    item does not have a name on both sides of "=", or a label is mapped to two names.

    Args:
        may_drop: whether "PER.NOM=" maps a label to DROPPED.
    """
    mapping: dict[str, str] = {}
    text = items if isinstance(items, str) else ",".join(items)
    for item in filter(str.strip, text.split(",")):
        source, equals, target = (part.strip() for part in item.partition("="))
        if not (source and equals and (target or may_drop)):
            drop = ", or PER.NOM= to leave a label out" if may_drop else ""
            raise DataError(f"label map item {item!r}: expected DATA=MODEL, such as NR=PER{drop}")
        if mapping.setdefault(source, target) != target:
            raise DataError(
                f"label {source} is mapped to both {mapping[source] or 'nothing'} and {target or 'nothing'}"
            )
    return mapping


def map_labels(
    spans: Iterable[Iterable[Span]], mapping: Mapping[str, str], *, model_labels: Collection[str]
) -> list[list[Span]]:
    """The spans of each sentence with the model's labels; labels that the model also has need no mapping.

    Spans whose label is mapped to DROPPED are left out. Raises a DataError if the mapping has a label that the model
    does not have, or a label of the data has no counterpart in `model_labels`; the message lists the labels of both
    sides.
    """
    ours = ", ".join(sorted(model_labels)) or "none"
    targets = {*model_labels, DROPPED}
    unknown = sorted({f"{source}={target}" for source, target in mapping.items() if target not in targets})
    if unknown:
        names = ", ".join(sorted({item.rpartition("=")[2] for item in unknown}))
        raise DataError(f"the model has no label {names}, to which {', '.join(unknown)} maps; it has {ours}")
    sentences = [list(sentence) for sentence in spans]
    data_labels = {span.label for sentence in sentences for span in sentence}
    known = {label: mapping.get(label, label) for label in data_labels}
    unmapped = sorted(label for label, target in known.items() if target not in targets)
    if unmapped:
        raise DataError(
            f"no label of the model for {', '.join(unmapped)}; the data has {', '.join(sorted(data_labels))}, the "
            f"model {ours}; map them with --labels DATA=MODEL, or leave them out with DATA="
        )
    return [[replace(s, label=known[s.label]) for s in sentence if known[s.label] != DROPPED] for sentence in sentences]


def not_in_data(mapping: Mapping[str, str], spans: Iterable[Iterable[Span]]) -> list[str]:
    """The labels of a mapping that no span has, sorted."""
    return sorted(set(mapping) - {span.label for sentence in spans for span in sentence})
