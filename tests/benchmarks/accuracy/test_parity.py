"""Forms of the runtime side by side."""

import tiny

from benchmarks.accuracy import parity, precision
from cige.api import NER
from cige.runtime import native
from cige.runtime import precision as precisions
from cige.runtime.native_model import NativeModel


def test_precisions_take_turns(tmp_path):
    tiny.model().save(tmp_path / "model")
    ners = {
        form: NER(NativeModel.load(tmp_path / "model", precision=form)) for form in precisions.available(native.load())
    }
    found = precision.speeds(ners, ["李明在北京。", "好"], batch_size=2, n_rounds=1)
    assert list(found) == [*ners, *(f"{form} ratio" for form in list(ners)[1:])] and all(x > 0 for x in found.values())


def test_differences_between_two_forms():
    same, apart = {0: 0.5, 3: 0.7}, {0: 0.75, 5: 0.9}
    answers = [({}, {}), (same, same), (same, apart), ({1: 0.5}, {1: 0.6})]
    assert parity.differences(answers[3:], tolerance=0.05)["texts_that_differ"] == 1
    found = parity.differences(answers[:3])
    assert found == {
        "texts": 3,
        "entities": 4,
        "texts_that_differ": 1,
        "largest_score_difference": 0.25,
        "highest_of_one": 0.9,
    }
