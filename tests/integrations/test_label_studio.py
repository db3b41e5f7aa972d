"""The ML backend, called over HTTP as Label Studio calls it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from starlette.testclient import TestClient

from cige import load
from cige.entities import Entity
from cige.errors import DataError
from cige.integrations.label_studio import Interface, app, create_app, predictions

CONFIG = """<View>
  <!-- people and places -->
  <Labels name="ner" toName="body"><Label value="人物" predicted_values="PER, PERSON"/><Label value="loc"/></Labels>
  <Text name="body" value="$content"/>
</View>"""
TEXT = "😀李明在北京的罗氏公司。"


@pytest.fixture(scope="module")
def client():
    with TestClient(create_app(load(), model_version="v1")) as client:
        yield client


def test_a_session_of_label_studio(client):
    """The calls that Label Studio makes when a backend is added and tasks are opened."""
    assert client.get("/health").json()["status"] == "UP"
    setup = {"project": "3.17", "schema": CONFIG, "hostname": "http://ls", "access_token": "", "extra_params": None}
    assert client.post("/setup", json=setup).json() == {"model_version": "v1"}
    task = {"id": 5, "data": {"content": TEXT, "source": "x"}, "annotations": []}
    body = {
        "tasks": [task, {"id": 6, "data": {"content": ""}}],
        "project": "3.17",
        "label_config": CONFIG,
        "params": {},
    }
    answer = client.post("/predict", json=body).json()
    first, second = answer["results"]
    assert [(r["value"]["labels"], r["value"]["start"], r["value"]["end"]) for r in first["result"]] == [
        (["人物"], 1, 3), (["loc"], 4, 6),
    ]  # fmt: skip
    for region in first["result"]:
        assert (region["from_name"], region["to_name"], region["type"]) == ("ner", "body", "labels")
        assert TEXT[region["value"]["start"] : region["value"]["end"]] == region["value"]["text"]
        assert 0 < region["score"] <= 1
    assert len({r["id"] for r in first["result"]}) == 2
    assert first["score"] == pytest.approx(sum(r["score"] for r in first["result"]) / 2)
    assert second == {"result": [], "score": 1.0, "model_version": "v1"}
    assert client.post("/webhook", json={"action": "ANNOTATION_CREATED"}).status_code == 201


def test_mistakes_are_told(client):
    answer = client.post("/predict", json={"tasks": [{"data": {"text": "x"}}], "label_config": CONFIG})
    assert answer.status_code == 422 and "task 1 has no text in data.content" in answer.json()["error"]
    assert client.post("/predict", json={"tasks": []}).status_code == 422
    assert client.post("/setup", json={"schema": "<View/>"}).status_code == 422


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("no xml", "no XML"),
        ("<View><Text name='t' value='$t'/></View>", "labels no text"),
        ("<View><Labels name='l' toName='i'/><Image name='i' value='$i'/></View>", "labels no text"),
        ("<!DOCTYPE x [<!ENTITY a 'b'>]><View/>", "document type"),
        (CONFIG.replace('toName="body">', 'toName="body" model_score_threshold="2">'), "from 0 to 1"),
    ],
)
def test_interfaces_that_cannot_be_used_are_refused(config, message):
    with pytest.raises(DataError, match=message):
        Interface.parse(config)


def test_the_threshold_of_the_interface_counts():
    strict = CONFIG.replace('toName="body">', 'toName="body" model_score_threshold="1">')
    assert predictions(load(), [{"data": {"content": TEXT}}], strict)[0]["result"] == []


def test_entities_with_gaps_are_no_regions():
    broken = Entity(0, 7, "PER", "第一医院", 0.9, parts=((0, 2), (5, 7)))
    finder = SimpleNamespace(pipe=lambda texts, min_score: [[broken, Entity(3, 7, "PER", "口腔医院", 0.8)]])
    (made,) = predictions(finder, [{"data": {"content": "第一和口腔医院"}}], CONFIG)
    assert [region["value"]["text"] for region in made["result"]] == ["口腔医院"]


def test_the_model_comes_from_the_environment(monkeypatch):
    monkeypatch.delenv("CIGE_MODEL", raising=False)
    assert TestClient(app()).get("/").json()["model_class"] == "NER"
