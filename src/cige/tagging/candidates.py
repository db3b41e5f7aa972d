"""The probabilities of spans, and all spans whose probability reaches a threshold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from cige.data.sentence import Span
from cige.data.tags import spans_to_tags, split_tag
from cige.nn.crf_numpy import SegmentMarginals


def span_probability(
    marginals: SegmentMarginals, row: int, span: Span, n_chars: int, *, tag_ids: Mapping[str, int], scheme: str
) -> float:
    """The probability, 0..1, that sentence `row` of `n_chars` characters has exactly this entity; `tag_ids` are the
    indices of the tags of `scheme`."""
    length = span.end - span.start
    tags = [tag_ids[tag] for tag in spans_to_tags(length, [Span(0, length, span.label)], scheme)]
    probability = marginals.probability(row, span.start, tags)
    if scheme == "BIO" and span.end < n_chars:  # without a closing tag, longer entities share the prefix
        longer = marginals.probability(row, span.start, [*tags, tag_ids[f"I-{span.label}"]])
        probability = max(0.0, probability - longer)
    return probability


def candidate_spans(
    marginals: SegmentMarginals,
    row: int,
    n_chars: int,
    labels: Sequence[str],
    *,
    threshold: float,
    tags: Sequence[str],
    scheme: str,
    max_lengths: Mapping[str, int],
) -> list[tuple[int, int, float]]:
    """(start, end, probability) of the spans that are an entity of one of `labels` with at least this probability.

    The probability is the sum over the labels. A span needs tags that open, continue and close an entity of one of
    them, so only characters where such tags are probable enough are considered; no span above the threshold is missed.

    Args:
        marginals: the marginals of a batch, whose sentence `row` has `n_chars` characters.
        threshold: the minimum probability; must be greater than 0.
        max_lengths: label -> maximum length in characters; other labels have no limit.
    """
    probabilities = marginals.tag_probabilities(row)[:n_chars]
    parts = [split_tag(tag) for tag in tags]
    has_closing = any(prefix in ("E", "S") for prefix, _ in parts)
    opens, inside, closes = (
        probabilities[:, [label in labels and prefix in wanted for prefix, label in parts]].sum(1)
        for wanted in ("BS", "BMIES", "ES" if has_closing else "BI")
    )
    longest = max(max_lengths.get(label, n_chars) for label in labels)
    tag_ids = {tag: number for number, tag in enumerate(tags)}
    least, spans = threshold * (1 - 1e-9), []  # sums over tags are rounded
    for start in np.flatnonzero(opens >= least).tolist():
        for end in range(start + 1, min(n_chars, start + longest) + 1):
            if inside[end - 1] < least:
                break
            if closes[end - 1] < least:
                continue
            probability = sum(
                span_probability(marginals, row, Span(start, end, label), n_chars, tag_ids=tag_ids, scheme=scheme)
                for label in labels
                if end - start <= max_lengths.get(label, n_chars)
            )
            if probability >= threshold:
                spans.append((start, end, min(1.0, probability)))
    return spans
