"""The estimator, with scikit-learn's own tools and pandas columns."""

from __future__ import annotations

import pickle

import pandas as pd
import pytest
import tiny
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.utils.validation import check_is_fitted

from cige import Entity, load
from cige.errors import DataError
from cige.integrations.sklearn import EntityRecognizer

QUICK = {"training.n_epochs": 1}


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    made = tiny.sentences(40, seed=1)
    entities = [[(x.start, x.end, x.label) for x in s.spans] for s in made]
    return pd.DataFrame({"text": [s.text for s in made], "entities": entities})


@pytest.fixture(scope="module")
def fitted(frame) -> EntityRecognizer:
    return EntityRecognizer(settings=QUICK, device="cpu").fit(frame["text"], frame["entities"])


def test_it_learns_columns(frame, fitted):
    assert fitted.classes_ == tiny.LABELS
    assert fitted.score(frame["text"], frame["entities"]) > 0.5
    found = fitted.predict(frame["text"][:3])
    assert len(found) == 3 and all(isinstance(x, tuple) for spans in found for x in spans)
    assert fitted.result_.dev_f1 > 0
    check_is_fitted(fitted)


def test_a_pickle_needs_no_other_file(frame, fitted):
    fitted.ner_.lexicon.add("轩辕")
    copy = pickle.loads(pickle.dumps(fitted))
    assert copy.predict(frame["text"][:5]) == fitted.predict(frame["text"][:5])
    assert "轩辕" in copy.ner_.lexicon.user_words and copy.ner_.model.folder != fitted.ner_.model.folder


def test_params_and_clones(fitted):
    params = fitted.get_params()
    assert params["settings"] == QUICK and params["seed"] == 1
    copy = clone(fitted).set_params(seed=2)
    assert copy.seed == 2 and not hasattr(copy, "ner_")
    with pytest.raises(NotFittedError, match="call fit, or give a model"):
        copy.predict(["李明"])
    with pytest.raises(NotFittedError):
        check_is_fitted(copy)


def test_a_model_that_is_there_needs_no_fit_and_takes_part_in_cross_validation(frame):
    own = EntityRecognizer(model="bundled")
    text = "李明在北京。"
    assert own.predict([text]) == [[(e.start, e.end, e.label) for e in load()(text)]]
    assert own.predict_entities([text]) == [load()(text)]
    assert own.score([text], [[(0, 2, "PER"), (3, 5, "LOC")]]) == 1.0
    assert own.score([text], [[(0, 2, "PER")]]) == pytest.approx(2 / 3)
    assert EntityRecognizer(model="bundled", min_score=1.0).predict([text]) == [[]]


def test_cross_validation(frame, monkeypatch):
    """scikit-learn divides texts and entities, and each part is fitted and scored."""
    learnt = []

    def fit(self, X, y):
        learnt.append(len(list(X)))
        self.model = "bundled"
        return self

    monkeypatch.setattr(EntityRecognizer, "fit", fit)
    scores = cross_val_score(EntityRecognizer(), list(frame["text"][:9]), list(frame["entities"][:9]), cv=3)
    assert learnt == [6, 6, 6] and all(0 <= score <= 1 for score in scores)


@pytest.mark.parametrize(
    ("texts", "entities", "message"),
    [
        ("李明", [[]], "X is one str"),
        (["李明", None], [[], []], r"X\[1\] is NoneType"),
        (pd.DataFrame({"text": ["李明"]}), [[]], r"X is DataFrame; expected a list or one column .* df\['text'\]"),
        (3, [[]], "X is int"),
        (["李明"], [None], r"y\[0\] is None; expected a list"),
        (["李明"], [], "1 texts and entities of 0"),
        (["李明"], [[(0, 3, "PER")]], r"y\[0\]: \(0, 3, 'PER'\) is no span"),
        (["李明"], [["PER"]], r"y\[0\] has 'PER'; expected"),
        (["李明"], [[(0, 2, None)]], r"y\[0\] has \(0, 2, None\); expected"),
        (["李明"], [[(0, 2, "PER"), (1, 2, "LOC")]], "overlap"),
        (["第一和口腔医院"], [[Entity(0, 7, "ORG", "第一医院", 1.0, parts=((0, 2), (5, 7)))]], "gaps; expected flat"),
        (
            ["第一和口腔医院"],
            [[{"start": 0, "end": 7, "label": "ORG", "parts": [[0, 2], [5, 7]]}]],
            "gaps; expected flat",
        ),
        (["李明"], [[(0, 2, "PER")]], "leaves texts to learn from"),
    ],
)
def test_wrong_data_is_refused(texts, entities, message):
    with pytest.raises(DataError, match=message):
        EntityRecognizer().fit(texts, entities)


def test_entities_may_be_given_in_several_forms():
    own, text = EntityRecognizer(model="bundled"), "李明在北京。"
    forms = [{"start": 0, "end": 2, "label": "PER"}, Entity(3, 5, "LOC", "北京", 1.0)]
    assert own.score([text], [forms]) == 1.0
