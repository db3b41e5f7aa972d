"""Relations of characters become entities with the lowest probability of their relations."""

from __future__ import annotations

import numpy as np
import pytest

from cige.data.gold_spans import N_RELATIONS, NEXT, NONE
from cige.lattice.lattice import Lattice
from cige.tagging.pair_grid import decode_relations

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
