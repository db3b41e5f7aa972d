"""The API: what is answered, with which offsets and errors, and what a change of the lexicon does."""

import asyncio
import json
import logging
import re
import threading
from itertools import pairwise
from types import SimpleNamespace

import pytest
import tiny
import tiny_grid
from fastapi.testclient import TestClient
from hypothesis import given, settings
from hypothesis import strategies as st

import cige
from cige.api import NER
from cige.errors import ModelError
from cige.lexicon.report import WordListWarning
from cige.serving import schemas
from cige.serving.app import create_app
from cige.serving.batcher import Batcher
from cige.serving.model import named_models
from cige.serving.settings import Limits, Settings
from cige.serving.work import Reader

TEXT = "昨天阿拉善贺兰草宣布了新的计划。"
SOON = 60


@pytest.fixture(scope="module")
def ner():
    return cige.load()


def client_of(ner, *, token=None, **settings):
    return TestClient(create_app(ner, Settings(**settings), token=token), raise_server_exceptions=False)


@pytest.fixture(scope="module")
def client(ner):
    with client_of(ner) as made:
        yield made


@pytest.fixture
def own(ner, tmp_path):
    """One whose lexicon a test may change."""
    with client_of(ner, lexicon_file=str(tmp_path / "words.json")) as made:
        yield made


def entities(client, text, **options):
    response = client.post("/v1/entities", json={"text": text} | options)
    assert response.status_code == 200, response.text
    body = response.json()
    schemas.EntitiesOut.model_validate(body)
    (result,) = body["results"]
    return result["entities"]


def pairs(found):
    return [(entity["text"], entity["label"]) for entity in found]


def test_entities_are_those_of_the_library(client, ner):
    texts = [TEXT, "", "林晓岚从巴塞尔飞抵南京市长江大桥。" * 40, "　\n"]
    body = client.post("/v1/entities", json={"texts": texts}).json()
    assert body["offsets"] == "code_points" and body["lexicon_version"] == 0
    for text, result in zip(texts, body["results"], strict=True):
        expected = [entity.to_dict() for entity in ner(text)]
        assert [e | {"score": 0} for e in result["entities"]] == [e | {"score": 0} for e in expected]
        scores = [e["score"] for e in expected]
        assert [e["score"] for e in result["entities"]] == pytest.approx(scores, abs=1e-4)


def test_a_label_that_differs_from_one_of_the_model_by_case_alone_is_told_in_the_log(client):
    with pytest.warns(WordListWarning, match="label oRg, which is .*the model's is ORG"):
        assert pairs(entities(client, "小红来了。", words=[{"text": "小红", "label": "oRg", "mode": "force"}]))


def test_options(client, ner):
    text = "罗氏公司总裁林晓岚从巴塞尔飞抵南京市长江大桥。"
    assert pairs(entities(client, text, labels=["PER"])) == [("林晓岚", "PER")]
    assert pairs(entities(client, text, types="coarse")) == [(e.text, e.label) for e in ner(text, types="coarse")]
    assert entities(client, text, min_score=1) == []


def test_words_of_a_request_count_for_it_alone(client):
    assert pairs(entities(client, TEXT)) == [("昨天", "TIME"), ("阿拉善贺兰", "LOC")]
    company = {"text": "阿拉善贺兰草", "label": "COMPANY"}
    assert pairs(entities(client, TEXT, words=[company])) == [("昨天", "TIME"), ("阿拉善贺兰草", "COMPANY")]
    force, block = ({"text": word, "mode": mode} for word, mode in (("计划", "force"), ("阿拉善", "block")))
    found = entities(client, TEXT, words=["贺兰草", force | {"label": "PLAN"}, block])
    assert ("计划", "PLAN") in pairs(found) and found[-1]["forced"] and ("阿拉善", "LOC") not in pairs(found)
    assert pairs(entities(client, TEXT)) == [("昨天", "TIME"), ("阿拉善贺兰", "LOC")]
    assert client.get("/v1/lexicon").json()["words"] == []


PIECES = ["林晓岚", "在南京市", "😀", "𠮷", "\ud83d", "\ude00", "e\u0301", "\0", "\r\n", "台灣", "ＡＢＣ", " ", "<b>"]


@settings(max_examples=60)
@given(st.lists(st.sampled_from(PIECES), max_size=8).map("".join), st.booleans())
def test_offsets_are_those_of_the_users_own_string(client, text, utf16):
    content = json.dumps({"text": text, "offsets": "utf16" if utf16 else "code_points", "words": ["晓岚😀"]})
    response = client.post("/v1/entities", content=content, headers={"content-type": "application/json"})
    assert response.status_code == 200
    text = json.loads(json.dumps(text))  # in JSON, two halves of a pair that meet are one character
    units = text.encode("utf-16-le", "surrogatepass")
    for entity in response.json()["results"][0]["entities"]:
        start, end = entity["start"], entity["end"]
        cut = units[2 * start : 2 * end].decode("utf-16-le", "surrogatepass") if utf16 else text[start:end]
        assert cut == entity["text"]


def test_explanations_and_lattices(client):
    body = client.post("/v1/entities", json={"texts": [TEXT, ""], "explain": True, "n_words": 2}).json()
    schemas.EntitiesOut.model_validate(body)
    first, empty = body["results"]
    assert len(first["entities"][0]["words"]) == 2 and first["n_tried"] > 0 and first["removals"]
    assert empty["entities"] == empty["words"] == []
    asked = {"text": "😀" + TEXT, "offsets": "utf16", "words": ["贺兰草宣布"], "svg_width": 400}
    lattice = client.post("/v1/lattice", json=asked).json()
    schemas.LatticeOut.model_validate(lattice)
    assert {"start": 7, "end": 12, "text": "贺兰草宣布", "is_user": True} in lattice["words"]
    assert lattice["svg"].startswith("<svg") and 'width="400"' in lattice["svg"] and "removals" not in lattice


@pytest.mark.parametrize(
    ("path", "body", "status", "error"),
    [
        ("entities", {}, 422, "expected either text"),
        ("entities", {"text": "a", "texts": ["b"]}, 422, "expected either text"),
        ("entities", {"text": 3}, 422, "text: "),
        ("entities", {"text": "秘密", "offsets": "bytes"}, 422, "offsets: Input should be 'code_points' or 'utf16'"),
        ("entities", {"text": "秘密", "wrods": []}, 422, "wrods: Extra inputs are not permitted"),
        ("entities", {"text": "秘密", "labels": ["PRE"]}, 422, "no label PRE; .* did you mean PER"),
        ("entities", {"text": "秘密", "min_score": 2}, 422, "min_score: "),
        ("entities", {"text": "秘密", "model": "other"}, 422, "none of that name; expected one of default"),
        ("entities", {"text": "秘密", "words": ["好"]}, 422, "'好' \\(single character\\)"),
        ("entities", {"text": "秘密", "words": [{"text": "好的", "mode": "force"}]}, 422, "without a label"),
        ("entities", {"texts": ["a"] * 513}, 413, "given 513 texts; at most 512"),
        ("entities", {"text": "秘" * 100_001}, 413, "given 100,001 characters"),
        ("entities", {"text": "秘密", "words": ["甲甲"] * 1001}, 413, "given 1,001 words"),
        ("entities", {"text": "秘" * 4001, "explain": True}, 413, "characters to explain"),
        ("lattice", {"text": "秘" * 4001}, 413, "characters to explain"),
        ("lexicon", {"words": [{"text": "甲甲", "label": "A B"}]}, 422, "not a label"),
        ("lexicon/remove", {"words": ["没有的词"]}, 422, "not in the lexicon"),
        ("lexicon", {"words": ["甲甲"], "version": 7}, 409, "made for version 7"),
    ],
)
def test_mistakes_are_told_without_the_text(client, path, body, status, error):
    response = client.post(f"/v1/{path}", json=body)
    assert response.status_code == status
    told = response.json()["error"]["message"]
    assert re.search(error, told) and "秘密" not in told


@pytest.mark.parametrize("content", [b"", b"{", b'{"text": "\xc0\xee"}', b'"x"', b"null"])
def test_what_is_no_json_object(client, content):
    response = client.post("/v1/entities", content=content, headers={"content-type": "application/json"})
    status, said = (400, "not JSON in UTF-8") if content.startswith(b"{") else (422, "expected a JSON object")
    assert response.status_code == status and said in response.json()["error"]["message"]


def test_wrong_words_are_told_in_terms_of_json(client):
    """A word has two forms, of which pydantic lists every failure."""
    for word, said in [
        (
            {"text": "甲甲", "mode": "must"},
            "words.0.mode: Input should be 'evidence', 'type', 'force', 'block' or 'block_exact'",
        ),
        (3, "words.0: Input should be a string, or an object with text, label and mode"),
    ]:
        response = client.post("/v1/entities", json={"text": "甲甲", "words": [word]})
        assert response.status_code == 422 and response.json()["error"]["message"] == said
    assert client.post("/v1/entities", json={"text": 3}).json()["error"]["message"] == "text: Input should be a string"


def test_a_form_of_another_site_is_not_read(own):
    """A browser sends text/plain anywhere without asking, so such a request must change nothing."""
    for kind in ("text/plain", "application/x-www-form-urlencoded"):
        response = own.post("/v1/lexicon", content=b'{"words": ["hello"]}', headers={"content-type": kind})
        assert response.status_code == 422 and "Content-Type: application/json" in response.json()["error"]["message"]
    assert own.get("/v1/lexicon").json()["version"] == 0


def test_paths_and_methods_that_are_not_there(client):
    assert client.get("/v2").status_code == 404 and client.get("/v1/entities").status_code == 405
    assert client.get("/v2").json()["error"]["code"] == "not_found"
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


def test_the_lexicon_is_changed_at_once_and_kept(own, ner, tmp_path):
    added = own.post("/v1/lexicon", json={"words": [{"text": "阿拉善贺兰草", "label": "COMPANY"}, "甲甲"]})
    assert added.json() == {"version": 1, "n_words": 2}
    assert pairs(entities(own, TEXT)) == [("昨天", "TIME"), ("阿拉善贺兰草", "COMPANY")]
    with client_of(ner, lexicon_file=str(tmp_path / "words.json")) as other:
        assert pairs(entities(other, TEXT)) == [("昨天", "TIME"), ("阿拉善贺兰草", "COMPANY")]
        assert other.post("/v1/lexicon/remove", json={"words": ["阿拉善贺兰草", "昨天"]}).json()["version"] == 2
    assert ("阿拉善贺兰草", "COMPANY") not in pairs(entities(own, TEXT))
    listed = own.get("/v1/lexicon", params={"offset": 0, "limit": 1}).json()
    schemas.LexiconOut.model_validate(listed)
    assert listed["words"] == [{"text": "甲甲", "label": None, "mode": "evidence"}] and listed["removed"] == ["昨天"]
    assert ner.lexicon.user_words == () and "昨天" in ner.lexicon


def test_several_models_answer_by_name_and_share_the_words_that_are_added(ner):
    other = NER(tiny.model())
    with TestClient(create_app({"news": ner, "tiny": other}, Settings())) as client:
        listed = client.get("/v1/models").json()["models"]
        assert [(model["name"], model["labels"]) for model in listed] == [("news", ner.labels), ("tiny", tiny.LABELS)]
        schemas.ModelsOut.model_validate({"models": listed})
        assert client.get("/v1/model").json()["name"] == "news"
        for model, expected in (("news", ner), ("tiny", other)):
            body = client.post("/v1/entities", json={"text": TEXT, "model": model}).json()
            assert body["model"] == model
            assert pairs(body["results"][0]["entities"]) == [(e.text, e.label) for e in expected(TEXT)]
            lattice = client.post("/v1/lattice", json={"text": TEXT, "model": model}).json()
            assert [w["text"] for w in lattice["words"]] == [w.text for w in expected.analyze(TEXT).words]
        assert pairs(entities(client, TEXT)) == [(e.text, e.label) for e in ner(TEXT)]
        client.post("/v1/lexicon", json={"words": [{"text": "阿拉善贺兰草", "label": "COMPANY", "mode": "force"}]})
        for model in ("news", "tiny"):
            assert ("阿拉善贺兰草", "COMPANY") in pairs(entities(client, TEXT, model=model))
        page = client.get("/metrics").text
        assert f'cige_characters_total{{model="tiny"}} {2 * 2 * len(TEXT) - len(TEXT):.1f}' in page
    with pytest.raises(ModelError, match="no model to serve"):
        create_app({}, Settings())


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


def test_names_of_models(tmp_path, monkeypatch):
    assert named_models([]) == {"bundled": "bundled"} and named_models(["a/b", "own=runs/x"]) == {
        "a/b": "a/b",
        "own": "runs/x",
    }
    assert named_models(["news=bundled", "bundled"]) == {"news": "bundled", "bundled": "bundled"}
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rate=0.1").mkdir()
    assert named_models(["rate=0.1", "runs/rate=0.1"]) == {"rate=0.1": "rate=0.1", "runs/rate=0.1": "runs/rate=0.1"}
    with pytest.raises(ModelError, match="two models are called own; give them names: --model NAME=c"):
        named_models(["own=b", "own=c"])


def test_a_lexicon_that_cannot_be_read_is_told(own, tmp_path):
    assert own.get("/readyz").status_code == 200
    (tmp_path / "words.json").write_text("{")
    assert own.get("/readyz").status_code == own.post("/v1/lexicon", json={"words": ["甲甲"]}).status_code == 503
    assert entities(own, TEXT)


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


def test_texts_are_in_no_log_unless_asked_for(ner, caplog):
    caplog.set_level(logging.DEBUG)
    with client_of(ner) as client:
        entities(client, "林晓岚在南京市")
        client.post("/v1/entities", json={"text": "林晓岚", "labels": ["林晓岚"]})
    assert "/v1/entities 200" in caplog.text and "林晓岚" not in caplog.text and "\\u6797" not in caplog.text
    with client_of(ner, log_text=True) as client:
        entities(client, "林晓岚在南京市")
    assert json.dumps("林晓岚在南京市") in caplog.text


def test_metrics(ner):
    with client_of(ner) as client:
        entities(client, TEXT)
        client.get("/no/such/path")
        page = client.get("/metrics").text
    assert 'cige_requests_total{path="/v1/entities",status="200"} 1.0' in page
    assert 'cige_requests_total{path="other",status="404"} 1.0' in page, "paths of strangers make no new series"
    assert f'cige_characters_total{{model="default"}} {len(TEXT):.1f}' in page
    assert 'cige_entities_total{label="LOC",model="default"} 1.0' in page
    assert "cige_batch_windows_count 1.0" in page


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


def test_nested_entities_cannot_be_made_consistent():
    with client_of(NER(tiny_grid.model())) as made:
        response = made.post("/v1/entities", json={"text": "李明在北京", "consistent": True})
        assert response.status_code == 422 and response.json()["error"]["code"] == "not_possible"
        assert "this model finds nested entities" in response.json()["error"]["message"]
        nested, flat = (entities(made, "李明在北京", nested=choice) for choice in (True, False))
        assert nested == entities(made, "李明在北京") and len(flat) < len(nested)
        assert all(entity in nested for entity in flat)
        flat.sort(key=lambda entity: entity["start"])
        assert all(a["end"] <= b["start"] for a, b in pairwise(flat))
        assert entities(made, "李明在北京", nested=False, consistent=True)
