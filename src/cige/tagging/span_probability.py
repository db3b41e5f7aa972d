"""The probability of an entity, from the marginals of the tags of its sentence."""

from __future__ import annotations

from collections.abc import Mapping

from cige.data.sentence import Span
from cige.data.tags import spans_to_tags
from cige.nn.crf_numpy import SegmentMarginals


def span_probability(
    marginals: SegmentMarginals, row: int, span: Span, n_chars: int, *, tag_ids: Mapping[str, int], scheme: str
) -> float:
    """The probability, 0..1, that sentence `row` of `n_chars` characters has exactly this entity.

    Args:
        tag_ids: tag name -> index of the tag, in `scheme`.
    """
    length = span.end - span.start
    tags = [tag_ids[tag] for tag in spans_to_tags(length, [Span(0, length, span.label)], scheme)]
    probability = marginals.probability(row, span.start, tags)
    if scheme == "BIO" and span.end < n_chars:  # without a closing tag, longer entities share the prefix
        longer = marginals.probability(row, span.start, [*tags, tag_ids[f"I-{span.label}"]])
        probability = max(0.0, probability - longer)
    return probability
