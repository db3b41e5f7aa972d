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


def test_merging_keeps_the_entity_that_starts_in_the_core_and_is_more_probable():
    text = "甲乙丙丁戊己庚辛"
    left = (Window(0, 6, 0, 4), [ScoredSpan(0, 2, "A", 0.9), ScoredSpan(3, 5, "A", 0.6), ScoredSpan(5, 6, "A", 0.99)])
    right = (Window(2, 8, 4, 8), [ScoredSpan(1, 2, "A", 0.99), ScoredSpan(2, 4, "B", 0.8), ScoredSpan(4, 6, "B", 0.7)])
    merged = merge_windows(text, [left, right])
    assert [(e.start, e.end, e.label, e.text) for e in merged] == [
        (0, 2, "A", "甲乙"),
        (4, 6, "B", "戊己"),
        (6, 8, "B", "庚辛"),
    ]


def test_an_entity_in_the_gap_of_another_overlaps_it_only_if_they_share_a_character():
    gap = ScoredSpan(0, 9, "A", 0.9, parts=((0, 2), (5, 9)))
    others = [ScoredSpan(1, 3, "B", 0.8), ScoredSpan(2, 5, "B", 0.7), ScoredSpan(5, 6, "B", 0.6)]
    merged = merge_windows(TEXT, [(Window(0, 20, 0, 20), [gap, *others])])
    assert [(e.start, e.end, e.label, e.parts) for e in merged] == [(0, 9, "A", gap.parts), (2, 5, "B", ())]
