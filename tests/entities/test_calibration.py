"""Calibration: scores that are as often right as they say, thresholds that find as much as they promise."""

import json
from itertools import pairwise
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cige.entities import calibration as calibration_module
from cige.entities.calibration import (
    MIN_OF_LABEL,
    Calibration,
    conformal_thresholds,
    expected_calibration_error,
    fit,
    fit_knots,
    reliability,
)

POINTS = st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=300)


@given(POINTS, st.sampled_from([1, 3, calibration_module.MIN_IN_KNOT]))
def test_knots_rise(points, min_in_knot):
    with mock.patch.object(calibration_module, "MIN_IN_KNOT", min_in_knot):  # else few points have a single knot
        knots = fit_knots(points)
    assert knots and all(a[0] < b[0] and a[1] <= b[1] for a, b in pairwise(knots))
    calibration = Calibration(knots)
    assert Calibration.from_dict(json.loads(json.dumps(calibration.to_dict()))) == calibration
    scores = [calibration.score(p) for p in np.linspace(0, 1, 21)]
    assert scores == sorted(scores) and scores[0] >= 0 and scores[-1] <= 1


def test_overconfident_scores_become_honest():
    rng = np.random.default_rng(0)
    points = [(p, bool(rng.random() < p**3)) for p in rng.random(8000)]
    calibration = fit(points[:4000], [("A", 0.5)])
    before = expected_calibration_error(points[4000:])
    after = expected_calibration_error([(calibration.score(p), right) for p, right in points[4000:]])
    assert before > 0.2 and after < 0.02
    assert calibration.score(0.5) == pytest.approx(0.125, abs=0.05)


def test_expected_calibration_error_is_the_mean_distance():
    points = [(0.95, True), (0.95, False), (0.05, False), (0.05, False)]
    assert expected_calibration_error(points) == pytest.approx((2 * 0.45 + 2 * 0.05) / 4)
    assert [(b.n, b.right) for b in reliability(points)] == [(2, 0.0), (2, 0.5)]
    assert expected_calibration_error([]) == 0.0
    assert reliability([(1.0, True)])[0].n == 1


def test_thresholds_are_order_statistics():
    probabilities = [k / 100 for k in range(1, 100)]
    assert conformal_thresholds(probabilities, [0.9, 0.95, 0.99, 0.999]) == {0.9: 0.1, 0.95: 0.05, 0.99: 0.01}
    assert conformal_thresholds([0.0, 0.0, 0.5, 0.9], [0.4, 0.8]) == {0.4: 0.5}  # 0: no candidate
    assert conformal_thresholds([], [0.5]) == {}


def test_thresholds_cover_as_they_promise():
    """Over many draws the mean share at or above the threshold is the level or just above."""
    rng = np.random.default_rng(0)
    covered = []
    for _ in range(400):
        drawn = rng.beta(5, 1, 400)
        threshold = conformal_thresholds(drawn[:200].tolist(), [0.9])[0.9]
        covered.append((drawn[200:] >= threshold).mean())
    assert np.mean(covered) + 0.003 >= 0.9 and np.mean(covered) <= 0.915


def test_labels_with_many_entities_have_thresholds_of_their_own():
    gold = [("A", 0.9 - k / 1000) for k in range(MIN_OF_LABEL)] + [("B", 0.2)] * 9
    found = fit([(0.5, True)], gold)
    assert set(found.label_thresholds) == {"A"}
    assert found.threshold(0.9, "A") > 0.8 and found.threshold(0.95, "B") == 0.2
    assert found.threshold(0.905, "A") == found.label_thresholds["A"][0.91]  # the next level that is known
    with pytest.raises(ValueError, match="reaches"):
        found.threshold(0.9999, "B")
    assert found.renamed({"A": "甲"}).threshold(0.9, "甲") == found.threshold(0.9, "A")


def test_nothing_found_is_nothing_to_calibrate():
    with pytest.raises(ValueError, match="found nothing"):
        fit([], [("A", 0.0)])


@pytest.mark.parametrize("knots", [None, [], [[0.5, 2]], [[0.5, 0.5], [0.4, 0.6]], [[0.5, 0.4], [0.5, 0.6]]])
def test_what_is_no_calibration_is_refused(knots):
    with pytest.raises(ValueError, match="calibrate the model again"):
        Calibration.from_dict({"knots": knots, "thresholds": [], "label_thresholds": {}})


def test_scores_may_stay_where_probabilities_rise_and_reach_both_ends():
    knots = [[0.0, 0.0], [0.5, 0.5], [0.6, 0.5], [1.0, 1.0]]
    fields = {"knots": knots, "thresholds": [[0.0, 1.0], [1.0, 0.5]], "label_thresholds": {}}
    assert Calibration.from_dict(fields).score(0.55) == 0.5
    for levels in ([[1.1, 0.5]], [[0.5, 0.0]], [[0.5, 1.5]]):
        for other in ({"thresholds": levels}, {"label_thresholds": {"A": levels}}):
            with pytest.raises(ValueError, match="calibrate the model again"):
                Calibration.from_dict(fields | other)


@given(
    st.lists(st.floats(0, 1, width=32), min_size=1, max_size=12, unique=True),
    st.lists(st.floats(0, 1), min_size=12, max_size=12),
    st.floats(0, 1),
)
def test_scores_are_those_of_numpy_interp(places, right, probability):
    knots = tuple(zip(sorted(places), sorted(right), strict=False))
    calibration = Calibration(knots)
    for x in (probability, *places, 0.0, 1.0):
        assert calibration.score(x) == float(np.interp(x, *zip(*knots, strict=True)))
