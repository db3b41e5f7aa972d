"""Explanations and lattices: their limits, and that they hold up nobody else, whatever they take."""

import threading
import time

import pytest
import tiny
from fastapi.testclient import TestClient

from cige.api import NER
from cige.serving import aside, explained
from cige.serving.app import STUCK_S, create_app
from cige.serving.batcher import Batcher
from cige.serving.settings import Settings

SOON = 60
NESTED = ["啊" * n for n in range(2, 65)]


@pytest.fixture(scope="module")
def client():
    with TestClient(create_app(NER(tiny.model()), Settings()), raise_server_exceptions=False) as made:
        yield made


def test_words_within_words_are_limited_by_their_nodes(client):
    for path, more in (("lattice", {}), ("entities", {"explain": True})):
        answer = client.post(f"/v1/{path}", json={"text": "啊" * 2_500, "words": NESTED} | more)
        assert answer.status_code == 413
        error = answer.json()["error"]
        assert error["code"] == "too_many_nodes" and error["params"]["most"] == explained.MOST_NODES
        assert error["params"]["given"] > explained.MOST_NODES
        assert client.post(f"/v1/{path}", json={"text": "啊" * 2_500} | more).status_code == 200


@pytest.mark.parametrize(
    ("path", "body"),
    [("lattice", {"text": "甲乙丙"}), ("entities", {"texts": ["甲乙丙", "甲乙丙丁"], "explain": True})],
)
def test_as_many_nodes_as_there_may_be_are_explained(client, monkeypatch, path, body):
    body = body | {"words": ["甲乙"]}
    monkeypatch.setattr(explained, "MOST_NODES", 0)
    n_nodes = client.post(f"/v1/{path}", json=body).json()["error"]["params"]["given"]
    assert n_nodes > sum(map(len, body.get("texts", [body.get("text", "")])))
    monkeypatch.setattr(explained, "MOST_NODES", n_nodes)
    assert client.post(f"/v1/{path}", json=body).status_code == 200
    monkeypatch.setattr(explained, "MOST_NODES", n_nodes - 1)
    assert client.post(f"/v1/{path}", json=body).status_code == 413


def test_a_drawing_is_limited_by_the_bars_that_share_rows(client):
    body = {"text": "啊" * 1_000, "words": NESTED, "svg_width": 160}
    answer = client.post("/v1/lattice", json=body)
    assert answer.status_code == 413 and answer.json()["error"]["code"] == "drawing_too_large"
    assert client.post("/v1/lattice", json=body | {"svg_width": None}).status_code == 200
    few = client.post("/v1/lattice", json=body | {"words": NESTED[:5], "svg_width": 1_000})
    assert few.status_code == 200 and few.json()["svg"].startswith("<svg")


@pytest.mark.parametrize("text", ["", "\n", "甲\n乙😀a b", "a" * 300])
@pytest.mark.parametrize("width", [160, 4_000])
def test_any_text_that_is_not_too_large_is_drawn(client, text, width):
    answer = client.post("/v1/lattice", json={"text": text, "words": ["aa", "甲乙"], "svg_width": width})
    assert answer.status_code == 200 and answer.json()["svg"].startswith("<svg")


@pytest.fixture
def held(monkeypatch):
    """Explanations wait at `gate`, looking at the time as the model's batches do; `entered` and `left` say so."""
    gate, entered, left = threading.Event(), threading.Event(), threading.Event()
    usual = explained.explain

    def explain(model, text, **options):
        entered.set()
        try:
            while not gate.wait(0.001):
                _ = model.labels  # checks the time
            return usual(model, text, **options)
        finally:
            left.set()

    monkeypatch.setattr(explained, "explain", explain)
    yield gate, entered, left
    gate.set()


@pytest.mark.parametrize("path", ["lattice", "entities"])
def test_others_are_answered_while_a_text_is_explained(client, held, path):
    gate, entered, _ = held
    more = {"explain": True} if path == "entities" else {}
    answers = []
    body = {"text": "甲乙丙"} | more
    thread = threading.Thread(target=lambda: answers.append(client.post(f"/v1/{path}", json=body)))
    thread.start()
    assert entered.wait(SOON)
    assert client.post("/v1/entities", json={"text": "甲乙丙"}).status_code == 200
    ready = client.get("/readyz")
    assert ready.status_code == 200 and ready.json()["waiting"] == 1 and not answers
    gate.set()
    thread.join(SOON)
    assert answers[0].status_code == 200


def test_an_explanation_ends_with_its_deadline(client, held):
    _, _, left = held
    answer = client.post("/v1/lattice", json={"text": "甲乙丙", "deadline_ms": 50})
    assert answer.status_code == 504 and answer.json()["error"]["params"] == {"milliseconds": 50}
    assert left.wait(SOON), "the work goes on"
    while client.get("/readyz").json()["waiting"]:
        time.sleep(0.001)


def test_not_ready_where_work_is_stuck(client, monkeypatch):
    for of in (Batcher, aside.Aside):
        with monkeypatch.context() as stuck:
            stuck.setattr(of, "stuck_for", STUCK_S + 1)
            answer = client.get("/readyz")
            assert answer.status_code == 503 and answer.json()["error"]["code"] == "stuck"
            assert answer.json()["error"]["params"] == {"seconds": STUCK_S + 1}
    assert client.get("/readyz").status_code == 200


def test_a_long_text_is_prepared_apart_from_others_and_ends_with_its_deadline(monkeypatch):
    from cige.serving import work

    entered, left = threading.Event(), threading.Event()
    usual = work.windows

    def windows(text, snapshot, facts, check):
        if len(text) < 5_000:
            yield from usual(text, snapshot, facts, check)
            return
        entered.set()
        try:
            while True:
                check()
                time.sleep(0.001)
        finally:
            left.set()

    monkeypatch.setattr(work, "windows", windows)
    with TestClient(create_app(NER(tiny.model()), Settings()), raise_server_exceptions=False) as client:
        answers = []
        body = {"text": "甲" * 5_000, "deadline_ms": 2_000}
        thread = threading.Thread(target=lambda: answers.append(client.post("/v1/entities", json=body)))
        thread.start()
        assert entered.wait(SOON)
        assert client.post("/v1/entities", json={"text": "甲"}).status_code == 200
        thread.join(SOON)
        assert answers[0].status_code == 504 and left.wait(SOON)


def test_labels_of_clients_are_one_series(client):
    for k in range(20):
        words = [{"text": "甲乙", "label": f"L{k}", "mode": "force"}]
        assert client.post("/v1/entities", json={"text": "甲乙", "words": words}).status_code == 200
        assert client.post("/v1/lattice", json={"text": "甲乙", "words": words}).status_code == 200
    page = client.get("/metrics").text
    assert 'cige_entities_total{label="other",model="default"} 40.0' in page and 'label="L' not in page
