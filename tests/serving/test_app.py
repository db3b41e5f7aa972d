"""The API: what is answered, with which offsets and errors, and what a change of the lexicon does."""

import json
import logging
import re
from itertools import pairwise

import pytest
import tiny
import tiny_grid
from fastapi.testclient import TestClient
from hypothesis import given, settings
from hypothesis import strategies as st
from served import TEXT, client_of, entities, pairs

from cige.api import NER
from cige.errors import ModelError
from cige.lexicon.report import WordListWarning
from cige.serving import schemas
from cige.serving.app import create_app
from cige.serving.model import named_models
from cige.serving.settings import Settings


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
    with pytest.warns(WordListWarning, match="label oRg, which is .*; if ORG is meant"):
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
