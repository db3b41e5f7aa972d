"""Learning curves: how much less has to be labelled."""

from dataclasses import replace

import pytest

from benchmarks.accuracy import suggest
from cige.data.registry import dataset_file
from cige.errors import CigeError

POINTS = [{"sentences": 100, "characters": 900, "f1": 0.5}, {"sentences": 400, "characters": 3600, "f1": 0.7}]


def test_the_goal_lies_between_two_points_on_a_logarithmic_axis():
    assert suggest.needed(POINTS, 0.6) == pytest.approx(200)
    assert suggest.needed(POINTS, 0.6, "characters") == pytest.approx(1800)
    assert suggest.needed(POINTS, 0.4) == 100 and suggest.needed(POINTS, 0.7) == pytest.approx(400)
    assert suggest.needed(POINTS, 0.71) is None


def test_shares_compare_curves_of_a_seed():
    better = [{"sentences": 50, "characters": 800, "f1": 0.5}, {"sentences": 200, "characters": 1600, "f1": 0.7}]
    curves = {"random": {"1": POINTS, "2": POINTS}, "both": {"1": better, "2": better[:1]}}
    rows = suggest.summary({"sets": {"x": {"full": {"1": 0.6 / 0.95}, "curves": curves}}})
    random, both = rows
    assert random["sentences"] == pytest.approx(200) and random["sentences_of_random"] == pytest.approx(1)
    assert both["reached"] == 1 and both["seeds"] == 2 and both["goal_f1"] == pytest.approx(60)
    assert both["sentences_of_random"] == pytest.approx((100 / 200 + 50 / 200) / 2)


def test_a_curve_is_measured_by_the_labels_of_the_data(monkeypatch, tmp_path, shared_data):
    case = suggest.Case("test", 60, (10, 20, 30), 100, (2, 3))
    pool = suggest.pool_of("resume", case, shared_data)
    assert len({s.text for s in pool}) == 60
    trained_on = []

    def scored(sentences, dev, case, start, folder, seed):
        trained_on.append([s.text for s in sentences])
        assert all(s in pool for s in sentences)  # with their own labels
        return len(sentences) / 40

    monkeypatch.setattr(suggest, "trained", scored)
    dev = dataset_file("resume", "test", data_dir=shared_data)
    points = suggest.curve(pool, dev, case, "random", per="sentence", start=tmp_path, goal=0.5, seed=1)
    assert [p["sentences"] for p in points] == [10, 20]  # it stops where the goal is reached
    assert trained_on[1][:10] == trained_on[0] and len(set(trained_on[1])) == 20
    assert suggest.n_epochs(case, 10) == 3 and suggest.n_epochs(case, 1000) == 2


def test_another_pool_and_other_sizes():
    case = suggest.case_of("cluener", None, None)
    assert case == suggest.CASES["cluener"]
    assert suggest.case_of("cluener", "all", [5, 9]) == replace(case, n_pool=None, sizes=(5, 9))
    assert suggest.case_of("cluener", "300", None) == replace(case, n_pool=300)


@pytest.mark.parametrize(("pool", "sizes"), [("some", None), ("0", None), (None, [5, 5]), (None, [0, 5])])
def test_a_pool_or_sizes_that_make_no_sense_are_told(pool, sizes):
    with pytest.raises(CigeError, match=r"--(pool|sizes) .*: expected"):
        suggest.case_of("cluener", pool, sizes)
