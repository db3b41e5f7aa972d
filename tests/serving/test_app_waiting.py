"""Requests that wait: too many, too late, and of clients that left."""

import asyncio
import json
import threading
from types import SimpleNamespace

import pytest
import tiny
from fastapi.testclient import TestClient
from served import TEXT, client_of, entities, pairs

from cige.api import NER
from cige.serving.app import create_app
from cige.serving.batcher import Batcher
from cige.serving.settings import Limits, Settings
from cige.serving.work import Reader

SOON = 60


def test_requests_for_several_models_that_wait_together_are_each_read_by_theirs(ner, gate):
    other = NER(tiny.model())
    with TestClient(create_app({"news": ner, "tiny": other}, Settings())) as client:
        answers = {}

        def ask(model, k):
            answers[model, k] = client.post("/v1/entities", json={"text": TEXT, "model": model}).json()

        threads = [threading.Thread(target=ask, args=(model, k)) for k in range(3) for model in ("news", "tiny")]
        for thread in threads:
            thread.start()
        gate.open.set()
        for thread in threads:
            thread.join(SOON)
        for (model, _), body in answers.items():
            expected = {"news": ner, "tiny": other}[model](TEXT)
            assert pairs(body["results"][0]["entities"]) == [(e.text, e.label) for e in expected]
        assert len(answers) == 6


# ---- when requests wait


@pytest.fixture
def gate(monkeypatch):
    """The batcher's thread waits at `open` before it prepares a request; `entered` says that it does."""
    state = SimpleNamespace(open=threading.Event(), entered=threading.Event(), texts=0)
    usual = Reader.with_words

    def waiting(reader, words):
        state.entered.set()
        assert state.open.wait(SOON)
        state.texts += 1
        return usual(reader, words)

    monkeypatch.setattr(Reader, "with_words", waiting)
    return state


def in_thread(client, answers, **body):
    thread = threading.Thread(target=lambda: answers.append(client.post("/v1/entities", json=body)))
    thread.start()
    return thread


def test_too_much_waiting_is_refused_with_429_and_what_was_taken_is_answered(ner, gate):
    with client_of(ner, limits=Limits(waiting_chars=1)) as client:
        answers = []
        thread = in_thread(client, answers, text=TEXT)
        assert gate.entered.wait(SOON)
        refused = client.post("/v1/entities", json={"text": TEXT})
        assert refused.status_code == 429 and int(refused.headers["retry-after"]) >= 1
        gate.open.set()
        thread.join(SOON)
        assert answers[0].status_code == 200 and entities(client, TEXT)


def test_where_there_is_no_room_a_request_is_refused_before_it_is_parsed(ner, monkeypatch):
    with client_of(ner) as client:
        monkeypatch.setattr(Batcher, "busy_for", 3)
        for path in ("/v1/entities", "/v1/lattice"):
            refused = client.post(path, content=b"no JSON")
            assert refused.status_code == 429 and refused.headers["retry-after"] == "3"
        assert client.get("/v1/model").status_code == 200
        assert 'cige_requests_total{path="/v1/entities",status="429"} 1.0' in client.get("/metrics").text


def test_a_deadline_is_answered_with_504_and_the_request_is_not_read(ner, gate):
    with client_of(ner) as client:
        answers = []
        thread = in_thread(client, answers, text=TEXT)
        assert gate.entered.wait(SOON)
        late = client.post("/v1/entities", json={"text": "李明", "deadline_ms": 1})
        assert late.status_code == 504 and "within 1 ms" in late.json()["error"]["message"]
        gate.open.set()
        thread.join(SOON)
        assert entities(client, TEXT) and gate.texts == 2, "the late one was not read"


def test_a_client_that_leaves_takes_its_request_out(ner, gate):
    app = create_app(ner, Settings())
    body = json.dumps({"text": TEXT}).encode()
    scope = {"type": "http", "method": "POST", "path": "/v1/entities", "raw_path": b"", "query_string": b""}
    scope |= {"headers": [(b"content-type", b"application/json")], "http_version": "1.1", "scheme": "http"}
    scope |= {"server": ("t", 80), "client": ("t", 1), "root_path": "", "asgi": {"version": "3.0"}}

    async def call(leaves):
        messages = [{"type": "http.request", "body": body, "more_body": False}]
        sent = []

        async def receive():
            if messages:
                return messages.pop()
            await leaves.wait()
            return {"type": "http.disconnect"}

        async def send(message):
            sent.append(message)

        await app(dict(scope), receive, send)
        return sent[0]["status"]

    async def main():
        async with app.router.lifespan_context(app):
            stays, leaves = asyncio.Event(), asyncio.Event()
            first = asyncio.create_task(call(stays))
            assert await asyncio.to_thread(gate.entered.wait, SOON)
            second = asyncio.create_task(call(leaves))
            await asyncio.sleep(0)
            leaves.set()
            status = await second
            gate.open.set()
            return await first, status

    assert asyncio.run(main()) == (200, 499)
    assert gate.texts == 1, "what nobody waits for is not read"
