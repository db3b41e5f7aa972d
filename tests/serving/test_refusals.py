"""Refusals: every error has the same form, a code with one status, and no more than it needs to say."""

import re
from pathlib import Path

import pytest
import tiny
from fastapi.testclient import TestClient

import cige.serving
from cige.api import NER
from cige.serving import schemas
from cige.serving.app import create_app
from cige.serving.refusals import CODES, MOST_SHOWN, WORD_CODES, Refused, shown
from cige.serving.settings import Settings

SOURCES = "".join(path.read_text(encoding="utf-8") for path in Path(cige.serving.__file__).parent.glob("*.py"))


@pytest.fixture(scope="module")
def client():
    with TestClient(create_app(NER(tiny.model()), Settings()), raise_server_exceptions=False) as made:
        yield made


def test_every_code_that_is_raised_has_a_status_and_every_status_is_raised():
    raised = set(re.findall(r'(?:Refused\(|too_many\(|code, todo = )\s*"(\w+)"', SOURCES))
    raised |= (
        {f"too_many_{name}" for name in ("texts", "words", "labels")} | set(WORD_CODES.values()) | {"word_refused"}
    )
    raised |= {"lexicon_file", "lexicon_full", "version_conflict", "unknown_word", "not_possible"}
    assert raised == set(CODES)


def test_a_refusal_is_json_of_code_message_and_params():
    error = Refused("too_many_texts", "given 3\ud83d", given=3)
    assert error.body == b'{"error": {"code": "too_many_texts", "message": "given 3\\ud83d", "params": {"given": 3}}}'
    assert len(Refused("invalid", "x" * 100_000).message) == MOST_SHOWN and shown("x" * 65) == "x" * 63 + "…"


def test_all_errors_have_that_form(client, monkeypatch):
    def fail(*_args, **_options):
        raise RuntimeError("秘密")

    answers = [
        client.get("/no/such/path"),
        client.get("/v1/entities"),
        client.get("/v1/lexicon", params={"limit": -1}),
        client.post("/v1/entities", json={}),
        client.post("/v1/entities", content=b"{", headers={"content-type": "application/json"}),
        client.post("/v1/lexicon/remove", json={"words": ["没有"]}),
        client.post("/v1/lexicon", json={"words": [], "version": 3}),
    ]
    monkeypatch.setattr("cige.serving.word_store.WordStore.current", fail)
    answers.append(client.get("/v1/lexicon"))
    codes = ["not_found", "wrong_method", "invalid", "text_or_texts", "not_json", "unknown_word", "version_conflict"]
    assert [answer.json()["error"]["code"] for answer in answers] == [*codes, "failed"]
    for answer in answers:
        error = schemas.ErrorOut.model_validate(answer.json()).error
        assert answer.status_code == CODES[error.code] and "秘密" not in answer.text
        assert answer.headers["content-type"] == "application/json"


def test_figures_are_params(client):
    remove = client.post("/v1/lexicon/remove", json={"words": ["没有", "也没有"]}).json()["error"]
    assert remove["params"] == {"words": "没有, 也没有", "n_words": 2}
    version = client.post("/v1/lexicon", json={"words": [], "version": 3}).json()["error"]
    assert version["params"] == {"given": 3, "version": 0}
    word = client.post("/v1/lexicon", json={"words": [{"text": "甲甲", "label": "A B"}]}).json()["error"]
    assert word["code"] == "word_bad_label" and word["params"]["word"] == "甲甲"


@pytest.mark.parametrize(
    ("path", "methods"),
    [
        ("/v1/entities", "OPTIONS, POST"),
        ("/v1/lexicon", "GET, HEAD, OPTIONS, POST"),
        ("/healthz", "GET, HEAD, OPTIONS"),
    ],
)
def test_options_lists_the_methods_of_a_path(client, path, methods):
    answer = client.options(path)
    assert (answer.status_code, answer.content, answer.headers["allow"]) == (204, b"", methods)
    other = client.delete(path)
    assert other.status_code == 405 and other.headers["allow"] == methods
    assert client.options("/no/such/path").status_code == 404
