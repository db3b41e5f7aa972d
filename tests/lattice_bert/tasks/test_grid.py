"""The search for a learning rate skips what appendix C.2 of the Lattice-BERT paper skips, and nothing else."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cige.errors import CigeError, RecipeError
from cige.lattice_bert.tasks import grid
from cige.lattice_bert.tasks.config import LEARNING_RATES, TuningConfig
from cige.lattice_bert.tasks.grid import RESULTS, GridResult, climb
from cige.lattice_bert.tasks.registry import get_task
from cige.lattice_bert.tasks.task_data import TaskData

RATES = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]


def search(rates, scores):
    """(best rate, rates in the order in which they were measured)."""
    asked = []

    def measure(rate):
        asked.append(rate)
        return scores[rates.index(rate)]

    best, tried = climb(rates, measure)
    assert list(tried) == asked and tried == {rate: scores[rates.index(rate)] for rate in asked}
    return best, asked


@pytest.mark.parametrize(
    "scores, best, asked",
    [
        ([1, 2, 3, 9, 3, 2, 1], 4.0, [4.0, 5.0, 3.0, 6.0, 2.0]),
        ([1, 2, 3, 4, 5, 6, 7], 7.0, [4.0, 5.0, 3.0, 6.0, 7.0]),  # three rise: none below them is tried
        ([9, 8, 7, 6, 5, 4, 3], 1.0, [4.0, 5.0, 3.0, 2.0, 1.0]),
        ([5, 5, 5, 5, 5, 5, 5], 4.0, [4.0, 5.0, 3.0, 6.0, 2.0, 7.0, 1.0]),  # equal scores rule nothing out
        ([0, 0, 0, 1, 0, 0, 9], 7.0, [4.0, 5.0, 3.0, 6.0, 2.0, 7.0, 1.0]),
    ],
)
def test_what_is_tried(scores, best, asked):
    assert search(RATES, scores) == (best, asked)


def test_the_example_of_the_appendix():
    scores = [0.9, 0.9, 0.9, 0.5, 0.6, 0.7, 0.6, 0.6, 0.6]  # 2e-5, 3e-5 and 5e-5 rise
    best, asked = search(list(LEARNING_RATES), scores)
    assert best == 5e-5 and sorted(asked) == [2e-5, 3e-5, 5e-5, 8e-5, 1e-4, 1.5e-4]


def test_a_dip_beside_the_middle_does_not_end_the_search():
    scores = [0.60, 0.60, 0.60, 0.69, 0.70, 0.69, 0.75, 0.74, 0.70]
    best, asked = search(list(LEARNING_RATES), scores)
    assert best == 8e-5 and sorted(asked) == [1.5e-5, 2e-5, 3e-5, 5e-5, 8e-5, 1e-4, 1.5e-4]


def test_few_rates():
    assert search([3.0], [1]) == (3.0, [3.0])
    assert search([1.0, 2.0], [5, 1]) == (1.0, [2.0, 1.0])
    assert search([1.0, 2.0, 3.0], [1, 2, 3]) == (3.0, [2.0, 3.0, 1.0])
    assert climb([2.0, 1.0, 2.0], lambda rate: -rate) == (1.0, {2.0: -2.0, 1.0: -1.0})
    with pytest.raises(CigeError, match="no learning rate"):
        climb([], len)


def test_a_rate_out_of_range_is_refused_before_any_is_tried(tmp_path, monkeypatch):
    tried = []
    monkeypatch.setattr(grid, "finetune", lambda *_, **options: tried.append(options["config"]))
    data = TaskData(get_task("tnews"), [], [], [], tmp_path)
    with pytest.raises(RecipeError, match="learning_rate"):
        grid.tune_task(data, "model", tmp_path, config=TuningConfig(), rates=[-1.0, 1e-4], n_runs=1)
    assert not tried


@given(st.lists(st.integers(0, 6), min_size=1, max_size=11))
def test_only_what_three_monotone_neighbours_rule_out_is_skipped(scores):
    rates = [float(k) for k in range(len(scores))]
    best, asked = search(rates, scores)
    assert scores[int(best)] == max(scores[int(rate)] for rate in asked)
    assert best == next(rate for rate in asked if scores[int(rate)] == scores[int(best)])
    places = {int(rate) for rate in asked}
    threes = [k for k in range(len(scores) - 2) if {k, k + 1, k + 2} <= places]
    rising = [k for k in threes if scores[k] < scores[k + 1] < scores[k + 2]]
    falling = [k + 2 for k in threes if scores[k] > scores[k + 1] > scores[k + 2]]
    for place in set(range(len(scores))) - places:
        assert any(place < k for k in rising) or any(place > k for k in falling)


@given(st.lists(st.integers(), min_size=1, max_size=12, unique=True), st.data())
def test_one_peak_is_always_found(values, data):
    top = data.draw(st.integers(0, len(values) - 1))
    values = sorted(values)
    scores = values[:top] + values[-1:] + values[top:-1][::-1]  # strictly up to the peak, strictly down after it
    rates = [float(k) for k in range(len(scores))]
    assert scores[int(search(rates, scores)[0])] == max(scores)


def test_damaged_results_are_refused(tmp_path):
    rows = [{"task": "tnews", "tried": []}]
    (tmp_path / RESULTS).write_text(json.dumps({"name": "x", "rows": rows, "origin": []}), encoding="utf-8")
    with pytest.raises(CigeError, match="not the results of"):
        GridResult.read(tmp_path)


def test_the_folder_of_one_task_has_no_such_results(tmp_path):
    with pytest.raises(
        CigeError, match=r"no results\.json in it; expected the output folder of `cige lattice-bert fine"
    ):
        GridResult.read(tmp_path)
