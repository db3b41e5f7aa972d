"""Which of the entities of overlapping windows remain."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cige.tagging.merging import merge_windows
from cige.tagging.prediction_model import ScoredSpan
from cige.text.windows import Window

TEXT = "0123456789abcdefghij"
SPANS = st.lists(
    st.builds(
        lambda start, n, score, forced: ScoredSpan(start, start + n, "X", 1.0 if forced else score / 10, forced),
        st.integers(0, 9),
        st.integers(1, 4),
        st.integers(1, 9),
        st.booleans(),
    ),
    max_size=4,
)


def greedy(spans: list[ScoredSpan]) -> list[tuple[int, int]]:
    """The forced ones, then the most probable ones, that overlap none before them; offsets are those of the text."""
    remaining: list[ScoredSpan] = []
    for span in sorted(spans, key=lambda span: (not span.forced, -span.score, span.start)):
        if all(span.end <= other.start or other.end <= span.start for other in remaining):
            remaining.append(span)
    return sorted((span.start, span.end) for span in remaining)


@given(SPANS, SPANS)
def test_the_most_probable_of_overlapping_entities_remain(first, second):
    windows = [Window(0, 14, 0, 8), Window(6, 20, 8, 20)]
    merged = merge_windows(TEXT, zip(windows, (first, second), strict=True))
    shifted = [span._replace(start=span.start + 6, end=span.end + 6) for span in second]
    in_core = [span for span in first if span.start < 8] + [span for span in shifted if span.start >= 8]
    assert [(entity.start, entity.end) for entity in merged] == greedy(in_core)
    assert all(entity.text == TEXT[entity.start : entity.end] for entity in merged)
