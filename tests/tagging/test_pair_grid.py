"""Scores of pairs of characters become entities, with the marks at their edges taken off."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

from cige.data.gold_spans import N_RELATIONS, NEXT, NONE
from cige.entities.label_facts import LabelFacts
from cige.lattice.lattice import Lattice
from cige.lexicon.rules import ForcedSpan, Rules
from cige.tagging.pair_grid import decode_grid, decode_relations
from cige.tagging.selection import Selection

LABELS = ["X", "Y"]


def lattice(text: str) -> Lattice:
    return Lattice(text=text, words=np.zeros((0, 3), np.int32), n_base=0)


def test_an_entity_has_the_lowest_probability_of_its_relations():
    reach = 2
    scores = np.full((4, 2 * reach + 1, N_RELATIONS + 2), -40.0)
    scores[..., NONE] = 0
    scores[0, 1 + reach, NEXT] = np.log(4)  # 0.8
    scores[1, 1 + reach, NEXT] = np.log(9)  # 0.9
    scores[2, -2 + reach, N_RELATIONS + 1] = np.log(1.5)  # 0.6
    scores[1, reach, N_RELATIONS] = np.log(3)  # 0.75: one character
    one, two = decode_relations(scores, lattice("甲乙丙丁"), LABELS)
    assert (one.start, one.end, one.label, one.parts) == (0, 3, "Y", ())
    assert (two.start, two.end, two.label, two.parts) == (1, 2, "X", ())
    assert [one.score, two.score] == pytest.approx([0.6, 0.75])


@pytest.mark.parametrize("seed", range(5))
def test_relations_to_what_is_beyond_the_text_change_nothing(seed):
    rng = np.random.default_rng(seed)
    n_chars, reach = 6, 4
    scores = rng.normal(0, 2, (n_chars, 2 * reach + 1, N_RELATIONS + 2))
    second = np.arange(n_chars)[:, None] + np.arange(2 * reach + 1) - reach
    beyond = (second < 0) | (second >= n_chars)
    found = []
    for number in range(scores.shape[-1]):
        scores[beyond] = 0
        scores[beyond, number] = 50
        found.append(decode_relations(scores, lattice("甲乙丙丁戊己"), LABELS))
    assert found[NONE] and all(spans == found[NONE] for spans in found)


@pytest.mark.parametrize("threshold", [None, 0.4])
def test_marks_at_the_edges_of_spans_are_taken_off(threshold):
    model = grid_of("spans")
    scores = np.full((1, 6, 6, 2), -9.0)
    scores[0, 0, 2, 0], scores[0, 0, 1, 0] = 2.0, 1.0  # 甲乙， and 甲乙
    scores[0, 2, 3, 1] = 3.0  # ，丙丁。
    scores[0, 5, 0, 0] = 5.0  # 。
    thresholds = None if threshold is None else dict.fromkeys(LABELS, threshold)
    chosen = Selection({"X": "X", "Y": "Y"}, thresholds=thresholds, nested=True)
    (found,) = decode_grid(model, scores, [lattice("甲乙，丙丁。")], chosen)
    assert [(span.start, span.end, span.label) for span in found] == [(0, 2, "X"), (3, 5, "Y")]
    assert [span.score for span in found] == pytest.approx(1 / (1 + np.exp([-2.0, -3.0])))
    blocked = replace(lattice("甲乙，丙丁。"), rules=Rules(blocked=((0, 2),)))
    (found,) = decode_grid(model, scores, [blocked], chosen)
    assert [(span.start, span.end) for span in found] == [(3, 5)]


@pytest.mark.parametrize("scored", ["spans", "relations"])
@pytest.mark.parametrize(
    ("closed", "rules", "end"), [((), Rules(), 6), (((5, 6),), Rules(), 5), ((), Rules(blocked=((4, 6),)), 5)]
)
def test_a_bracket_whose_counterpart_is_inside_is_added(scored, closed, rules, end):
    text, reach = "甲（乙丙丁）", 6
    if scored == "spans":
        scores = np.full((1, 6, 6, 2), -9.0)
        scores[0, 0, 4, 0] = scores[0, 2, 2, 1] = 2.0  # 甲（乙丙丁 and 乙丙丁
    else:
        scores = relations(range(5))
        scores[0, 4, 2 - 4 + reach, N_RELATIONS + 1] = 3
    ruled = replace(lattice(text), closed=closed, rules=rules)
    (found,) = decode_grid(grid_of(scored), scores, [ruled], Selection({"X": "X", "Y": "Y"}, nested=True))
    assert [(span.start, span.end, span.label) for span in found] == [(0, end, "X"), (2, 5, "Y")]


def test_marks_at_the_edges_of_entities_with_gaps_are_taken_off():
    reach, text = 6, "头，和背部痛。"
    scores = np.full((1, len(text), 2 * reach + 1, N_RELATIONS + 2), -40.0)
    scores[..., NONE] = 0
    for first, second in ((0, 1), (1, 5), (5, 6)):  # 头，…痛。
        scores[0, first, second - first + reach, NEXT] = 4
    scores[0, 6, -6 + reach, N_RELATIONS] = 3
    (found,) = decode_grid(grid_of("relations"), scores, [lattice(text)], Selection({"X": "X"}, nested=True))
    assert [(span.start, span.end, span.parts) for span in found] == [(0, 6, ((0, 2), (5, 6)))]


def grid_of(scores: str) -> SimpleNamespace:
    return SimpleNamespace(
        tags=LABELS, labels=LABELS, label_facts=LabelFacts(nested=True), pair_grid=SimpleNamespace(scores=scores)
    )


GAPPED = "头痛和背部痛"
REACH = len(GAPPED)


def relations(*entities: tuple[int, ...]) -> np.ndarray:
    """Scores with which these characters are entities X."""
    scores = np.full((1, REACH, 2 * REACH + 1, N_RELATIONS + 2), -40.0)
    scores[..., NONE] = 0
    for characters in entities:
        for first, second in pairwise(characters):
            scores[0, first, second - first + REACH, NEXT] = 4
        scores[0, characters[-1], characters[0] - characters[-1] + REACH, N_RELATIONS] = 3
    return scores


def found_with(rules: Rules, *entities: tuple[int, ...]) -> list[tuple[int, int, str, tuple[tuple[int, int], ...]]]:
    chosen = Selection({"X": "X"}, nested=True)
    ruled = replace(lattice(GAPPED), rules=rules)
    (found,) = decode_grid(grid_of("relations"), relations(*entities), [ruled], chosen)
    return [(span.start, span.end, span.label, span.parts) for span in found]


BROKEN = (0, 6, "X", ((0, 1), (4, 6)))  # 头…部痛


@pytest.mark.parametrize(
    ("start", "end", "is_kept"),
    [(1, 3, True), (4, 6, True), (4, 5, True), (3, 5, False), (0, 2, False), (0, 6, False), (2, 6, False)],
)
def test_entities_with_gaps_stay_around_forced_stretches_within_a_part_or_the_gap(start, end, is_kept):
    found = found_with(Rules(forced=(ForcedSpan(start, end, "Y"),)), (0, 4, 5))
    assert (start, end, "Y", ()) in found
    assert (BROKEN in found) == is_kept


def test_a_typed_word_is_no_entity_with_a_gap_of_the_same_edges():
    typed = Rules(typed=(ForcedSpan(0, 6, "Y"),))
    assert found_with(typed, (0, 4, 5)) == [BROKEN]
    assert set(found_with(typed, (0, 4, 5), (0, 1, 2, 3, 4, 5))) == {BROKEN, (0, 6, "Y", ())}
    assert found_with(typed, (0, 1, 2, 3, 4, 5)) == [(0, 6, "Y", ())]


def test_nothing_in_a_blocked_word_is_an_entity_with_a_gap():
    inside = tuple((a, b) for a in range(6) for b in range(a + 1, 7))
    assert found_with(Rules(blocked=inside), (0, 4, 5)) == []
    assert found_with(Rules(blocked=((0, 6),)), (0, 4, 5)) == [BROKEN]  # mode block_exact
    assert found_with(Rules(blocked=((0, 1), (4, 6))), (0, 4, 5)) == [BROKEN]  # two words that are blocked
