"""Requests of every form: paths, methods, bodies, tokens and origins."""

import asyncio
import os

import pytest
from fastapi.testclient import TestClient
from served import TEXT, client_of, entities

from cige.serving.app import create_app
from cige.serving.settings import Limits, Settings


@pytest.mark.parametrize("content", [b"", b"{", b'{"text": "\xc0\xee"}', b'"x"', b"null"])
def test_what_is_no_json_object(client, content):
    response = client.post("/v1/entities", content=content, headers={"content-type": "application/json"})
    status, said = (400, "not JSON in UTF-8") if content.startswith(b"{") else (422, "expected a JSON object")
    assert response.status_code == status and said in response.json()["error"]["message"]


def test_a_form_of_another_site_is_not_read(own):
    """A browser sends text/plain anywhere without asking, so such a request must change nothing."""
    for kind in ("text/plain", "application/x-www-form-urlencoded"):
        response = own.post("/v1/lexicon", content=b'{"words": ["hello"]}', headers={"content-type": kind})
        assert response.status_code == 422 and "Content-Type: application/json" in response.json()["error"]["message"]
    assert own.get("/v1/lexicon").json()["version"] == 0


def test_paths_and_methods_that_are_not_there(client):
    assert client.get("/v2").status_code == 404 and client.get("/v1/entities").status_code == 405
    assert client.get("/v2").json()["error"]["code"] == "not_found"
    # A redirect would lead to http, with the token, also where a proxy has TLS.
    slash = client.post("/v1/entities/", json={"text": TEXT}, follow_redirects=False)
    assert slash.status_code == 404 and slash.json()["error"]["code"] == "not_found"
    wrong = client.get("/v1/entities")
    assert wrong.json()["error"] == {
        "code": "wrong_method",
        "message": "given GET; expected one of OPTIONS, POST",
        "params": {"methods": "OPTIONS, POST"},
    }
    assert wrong.headers["allow"] == "OPTIONS, POST"


def test_a_body_that_is_too_long(ner):
    with client_of(ner, limits=Limits(body_bytes=100)) as client:
        assert entities(client, "短") == []
        assert client.post("/v1/entities", json={"text": "x" * 100}).status_code == 413
        in_pieces = iter([b'{"text": "', b"x" * 200, b'"}'])  # its length is not announced
        response = client.post("/v1/entities", content=in_pieces, headers={"content-type": "application/json"})
        assert response.status_code == 413 and "longer than 100 bytes" in response.json()["error"]["message"]


def test_the_token(ner):
    with client_of(ner, token="geheim€") as client:
        for path in ("/v1/lexicon", "/v1/model", "/metrics", "/v1/nothing"):
            assert client.get(path).status_code == 401
        for given in ("Bearer geheim", "geheim€", "Basic geheim€", "Bearer", ""):
            response = client.get("/v1/model", headers={"authorization": given.encode()})
            assert response.status_code == 401 and response.headers["www-authenticate"] == "Bearer"
        assert client.get("/v1/model", headers={"authorization": "bearer geheim€".encode()}).status_code == 200
        for path in ("/", "/docs", "/openapi.json", "/healthz", "/readyz"):
            assert client.get(path).status_code == 200


def test_a_token_that_is_not_utf_8(ner):
    """As in an environment variable that a shell with another encoding set; every request failed."""
    app, sent = create_app(ner, Settings(), token=os.fsdecode("geheim€".encode("cp1252"))), []

    async def send(message):
        sent.append(message.get("status"))

    def status(given):  # the client of other tests sends headers in UTF-8 alone
        scope = {
            "type": "http",
            "method": "GET",
            "path": "/v1/nothing",
            "raw_path": b"/v1/nothing",
            "query_string": b"",
        }
        sent.clear()
        asyncio.run(app({**scope, "headers": [(b"authorization", given)]}, None, send))
        return sent[0]

    assert status(b"Bearer geheim\x80") == 404  # there is no such path
    assert status("Bearer geheim€".encode()) == status(b"Bearer geheim") == 401


def test_other_origins_may_not_call_by_default(client, ner):
    asked = {"origin": "https://example.org", "access-control-request-method": "POST"}
    assert "access-control-allow-origin" not in client.options("/v1/entities", headers=asked).headers
    with client_of(ner, origins=("https://example.org",)) as open_client:
        headers = open_client.options("/v1/entities", headers=asked).headers
        assert headers["access-control-allow-origin"] == "https://example.org"
        other = open_client.options("/v1/entities", headers=asked | {"origin": "https://example.com"}).headers
        assert "access-control-allow-origin" not in other
    with client_of(ner, origins=("https://example.org",), token="geheim") as closed_client:  # refusals are readable too
        refused = closed_client.post("/v1/entities", json={"text": TEXT}, headers={"origin": "https://example.org"})
        assert refused.status_code == 401
        assert refused.headers["access-control-allow-origin"] == "https://example.org"
        assert refused.headers["access-control-expose-headers"] == "retry-after"


def test_the_document_names_every_path_and_the_pages_need_nothing_from_elsewhere(client):
    document = client.get("/openapi.json").json()
    paths = {"/v1/entities", "/v1/lattice", "/v1/lexicon", "/v1/lexicon/remove", "/v1/model", "/v1/models"}
    paths |= {"/healthz", "/readyz"}
    assert set(document["paths"]) == paths | {"/metrics"}
    assert document["components"]["schemas"]["EntitiesIn"]["properties"]["texts"]["anyOf"][0]["type"] == "array"
    for path in ("/", "/docs"):
        page = client.get(path)
        policy = page.headers["content-security-policy"]
        assert len(page.content) < 200_000 and "default-src 'none'" in policy and "unsafe" not in policy
        for outside in ("http://", "https://", "//cdn", "@import"):
            assert outside not in page.text
    assert all(path in client.get("/docs").text for path in paths)


def test_a_page_of_an_allowed_origin_can_read_refusals(ner, monkeypatch):
    app = create_app(ner, Settings(origins=("https://a.example",), limits=Limits(body_bytes=100)), token="词")
    ours, token = {"Origin": "https://a.example"}, {"Authorization": "Bearer 词".encode()}
    with TestClient(app) as client:
        refused = [
            client.post("/v1/entities", json={"text": "甲"}, headers=ours),
            client.post("/v1/entities", json={"text": "甲"}, headers=ours | {"Authorization": b"Bearer \xff"}),
            client.post("/v1/entities", json={"text": "甲" * 200}, headers=ours | token),
        ]
        monkeypatch.setattr("cige.serving.pace.Pace.refuse_for", lambda self, arrived=None: 3)
        refused.append(client.post("/v1/entities", json={"text": "甲"}, headers=ours | token))
        assert [r.status_code for r in refused] == [401, 401, 413, 429]
        assert {r.headers["access-control-allow-origin"] for r in refused} == {"https://a.example"}
        assert "retry-after" in refused[3].headers["access-control-expose-headers"].lower()
        others = client.post("/v1/entities", json={"text": "甲"}, headers={"Origin": "https://b.example"})
        assert others.status_code == 401 and "access-control-allow-origin" not in others.headers


def test_head_is_get_without_the_body(ner):
    with TestClient(create_app(ner, Settings(), token="t")) as client:
        for path in ("/", "/healthz", "/readyz", "/openapi.json"):
            head, get = client.head(path), client.get(path)
            assert (head.status_code, head.content) == (200, b"") and get.content
            assert head.headers["content-length"] == get.headers["content-length"]
        assert client.head("/v1/model").status_code == 401
        assert client.head("/v1/entities", headers={"Authorization": "Bearer t"}).status_code == 405


@pytest.mark.parametrize("kind", [None, "text/plain", "application/x-www-form-urlencoded"])
def test_a_body_that_is_not_declared_as_json(ner, kind):
    with TestClient(create_app(ner, Settings())) as client:
        headers = {} if kind is None else {"Content-Type": kind}
        answer = client.post("/v1/entities", content='{"text": "王毅"}'.encode(), headers=headers)
        assert answer.status_code == 422
        said = "the body: expected a JSON object, and the header Content-Type: application/json"
        assert answer.json() == {"error": {"code": "no_object", "message": said, "params": {}}}
