"""Groups of blocked spans: which of them share copies of the tags, and how few sets of copies there are.

That the tags and their probabilities are exact is tested in test_blocking_readings.py, for few spans; here there are
many.
"""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from cige.tagging.blocking import groups_of, n_slots_of

SPANS = st.tuples(st.integers(0, 25), st.integers(1, 7)).map(lambda span: (span[0], sum(span)))


@given(st.sets(SPANS, max_size=12))
def test_overlapping_groups_have_different_sets_and_there_are_no_more_than_overlap_anywhere(blocked):
    groups, single = groups_of(sorted(blocked))
    used = Counter((group.slot, place) for group in groups for place in range(group.starts[0], group.last))
    assert not used or max(used.values()) == 1
    overlapping = Counter(place for group in groups for place in range(group.starts[0], group.last))
    assert n_slots_of(groups) == max(overlapping.values(), default=0)
    covered = {(start, group.last) for group in groups for start in group.starts}
    covered |= {
        (start, end)
        for group in groups
        for start in group.starts
        for end in range(start + 2, group.last)
        if end not in group.open_ends
    }
    assert covered | {(start, start + 1) for start in single} == blocked


def test_a_set_is_used_again_only_from_where_its_last_group_ends():
    groups, _ = groups_of([(0, 5), (2, 8), (5, 9), (6, 11)])
    assert [(group.starts, group.last, group.slot) for group in groups] == [
        ((0,), 5, 0),
        ((2,), 8, 1),
        ((5,), 9, 0),
        ((6,), 11, 2),  # both others are in use here
    ]
