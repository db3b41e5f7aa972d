"""Requests as they are read: texts that are read again with the names that were found in them."""

import threading

import pytest
from fastapi.testclient import TestClient

from cige.serving import batcher, schemas
from cige.serving.app import create_app
from cige.serving.settings import Settings

TEXT = "著名演员杜鹃在北京出席了发布会。随后杜鹃说，明年再来。很多人喜欢杜鹃。"
TEXTS = ["很多人喜欢杜鹃。", TEXT, "", f"{'今天天气很好。' * 30}\n{TEXT}" * 2]
SOON = 60


def results(client, texts, **options):
    response = client.post("/v1/entities", json={"texts": texts} | options)
    assert response.status_code == 200, response.text
    schemas.EntitiesOut.model_validate(response.json())
    return response.json()["results"]


def spans(entities):
    return [(e["start"], e["end"], e["label"]) for e in entities]


def expected(entities):
    return [(e.start, e.end, e.label) for e in entities]


def test_consistent_entities_are_those_of_the_library(client, ner):
    once, again = results(client, TEXTS), results(client, TEXTS, consistent=True)
    assert [spans(r["entities"]) for r in once] == [expected(found) for found in ner(TEXTS)]
    assert [spans(r["entities"]) for r in again] == [expected(found) for found in ner(TEXTS, consistent=True)]
    found = [sum(e["text"] == "杜鹃" for e in r["entities"]) for r in (once[1], again[1])]
    assert found == [2, 3]
    assert spans(again[0]["entities"]) == spans(once[0]["entities"]), "texts share no names"
    assert client.get("/v1/lexicon").json()["words"] == []


def test_options_and_words_hold_the_second_time_too(client):
    (of_persons,) = results(client, [TEXT], consistent=True, labels=["PER"])
    assert {e["label"] for e in of_persons["entities"]} == {"PER"}
    (blocked,) = results(client, [TEXT], consistent=True, words=[{"text": "杜鹃", "mode": "block"}])
    assert blocked["entities"] and "杜鹃" not in [e["text"] for e in blocked["entities"]]
    (moved,) = results(client, ["😀" + TEXT], consistent=True, offsets="utf16")
    units = ("😀" + TEXT).encode("utf-16-le")
    assert all(units[2 * e["start"] : 2 * e["end"]].decode("utf-16-le") == e["text"] for e in moved["entities"])
    assert [e["text"] for e in moved["entities"]].count("杜鹃") == 3


def test_the_names_are_words_of_the_lattice_that_is_explained(client):
    body = client.post("/v1/lattice", json={"text": TEXT, "consistent": True}).json()
    schemas.LatticeOut.model_validate(body)
    assert [e["text"] for e in body["entities"]].count("杜鹃") == 3
    own = [word for word in body["words"] if word["is_user"]]
    assert [(word["text"], word["label"]) for word in own] == [("杜鹃", "PER")] * 3
    plain = client.post("/v1/lattice", json={"text": TEXT}).json()
    assert [e["text"] for e in plain["entities"]].count("杜鹃") == 2 and not any(w["is_user"] for w in plain["words"])
    explained = results(client, ["很多人喜欢杜鹃。", TEXT], consistent=True, explain=True, n_words=2)
    assert [e["text"] for e in explained[1]["entities"]].count("杜鹃") == 3 and explained[1]["n_tried"] > 0
    assert not any(word["is_user"] for word in explained[0]["words"])


def test_a_consistent_request_whose_deadline_ends_between_its_readings_is_not_read_again(ner, monkeypatch):
    entered, gate, read = threading.Event(), threading.Event(), []
    usual = batcher.predict_spans

    def predict(model, lattices, *options, **more):
        read.append([lattice.text for lattice in lattices])
        entered.set()
        assert gate.wait(SOON)
        return usual(model, lattices, *options, **more)

    monkeypatch.setattr(batcher, "predict_spans", predict)
    with TestClient(create_app(ner, Settings())) as client:
        asked = {"text": TEXT, "consistent": True, "deadline_ms": 1000}
        answers = []
        thread = threading.Thread(target=lambda: answers.append(client.post("/v1/entities", json=asked)))
        thread.start()
        assert entered.wait(SOON)
        thread.join(SOON)  # answered at its deadline, while it is read
        assert answers[0].status_code == 504
        gate.set()
        assert len(results(client, ["今天天气很好。"])) == 1
    assert read == [[TEXT], ["今天天气很好。"]]


@pytest.mark.parametrize("value", ["yes", 1, None])
def test_consistent_is_true_or_false(client, value):
    response = client.post("/v1/entities", json={"text": TEXT, "consistent": value})
    assert (
        response.status_code == 422
        and "consistent: Input should be a valid boolean" in response.json()["error"]["message"]
    )
    fields = client.get("/openapi.json").json()["components"]["schemas"]
    for name in ("EntitiesIn", "LatticeIn"):
        assert fields[name]["properties"]["consistent"]["default"] is False


def test_the_queue_counts_a_consistent_request_twice(client, monkeypatch):
    counted = []
    submit = batcher.Batcher.submit

    def noted(self, work, *, deadline):
        with self._wake:  # nothing is read until the request was counted
            before = self._load
            future = submit(self, work, deadline=deadline)
            counted.append(self._load - before)
        return future

    monkeypatch.setattr(batcher.Batcher, "submit", noted)
    for consistent in (False, True):
        results(client, [TEXT], consistent=consistent)
    assert counted == [len(TEXT), 2 * len(TEXT)]
