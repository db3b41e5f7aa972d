"""Parsing: what has too much of something is refused before Python objects are made of it, and odd numbers by name."""

from __future__ import annotations

import gzip
import json
import tracemalloc

import pytest
import tiny
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st

from cige.api import NER
from cige.serving.app import create_app
from cige.serving.parsing import parse
from cige.serving.refusals import CODES, MOST_SHOWN, Refused
from cige.serving.settings import Limits, Settings

MANY = 8 << 20
JSON = {"content-type": "application/json"}


@pytest.fixture(scope="module")
def client():
    settings = Settings(limits=Limits(body_bytes=MANY, texts=8, words=8))
    with TestClient(create_app(NER(tiny.model()), settings), raise_server_exceptions=False) as made:
        yield made


def repeated(before: bytes, item: bytes, after: bytes) -> bytes:
    n = (MANY - len(before) - len(after)) // (len(item) + 1)
    return before + b",".join([item] * n) + after


def refused(content: bytes, most: int = 100) -> Refused:
    with pytest.raises(Refused) as found:
        parse(content, most_values=most)
    return found.value


BODIES = {  # made where they are needed, since every process that runs tests imports this
    "numbers": lambda: repeated(b'{"texts":[', b"1", b"]}"),
    "empty strings": lambda: repeated(b'{"texts":[', b'""', b"]}"),
    "empty lists": lambda: repeated(b'{"words":[', b"[]", b"]}"),
    "empty objects": lambda: repeated(b'{"words":[', b"{}", b"]}"),
    "lists in lists": lambda: b"[" * MANY,
    "objects in objects": lambda: b'{"a":' * (MANY // 5),
    "keys": lambda: b"{" + b",".join(b'"%d":1' % k for k in range(500_000)) + b"}",
    "strings without end": lambda: b'["' + b'\\"' * (MANY // 2 - 1),
}


@pytest.mark.parametrize("name", BODIES)
def test_many_values_are_refused_in_little_memory(name):
    """Python objects of 8 MiB of JSON would take up to 360 MB, and mistakes in them several gigabytes."""
    body = BODIES[name]()
    tracemalloc.start()
    try:
        assert refused(body).status_code in (400, 413)
        assert tracemalloc.get_traced_memory()[1] < 5 * MANY
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("path", ["entities", "lattice", "lexicon", "lexicon/remove"])
@pytest.mark.parametrize("name", ["numbers", "empty objects"])
def test_they_are_refused_on_every_path_compressed_or_not(client, path, name):
    body = BODIES[name]()
    for content, headers in ((body, {}), (gzip.compress(body, 1), {"content-encoding": "gzip"})):
        answer = client.post(f"/v1/{path}", content=content, headers=JSON | headers)
        assert answer.status_code == 413 and answer.json()["error"]["code"] == "too_many_values"


STRINGS = st.text(st.characters(codec="utf-8") | st.sampled_from('",:[]{}\\'), max_size=20)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | STRINGS,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(STRINGS, inner, max_size=5),
    max_leaves=20,
)


@given(VALUES, st.booleans())
def test_what_is_within_the_limit_is_what_json_says(value, escaped):
    content = json.dumps(value, ensure_ascii=escaped).encode()
    assert parse(content, most_values=1_000) == value
    assert parse(content, most_values=max(_n_structure(value), content.count(b'"'))) == value, "strings do not count"


def _n_structure(value) -> int:
    """The commas, colons and opening brackets of its JSON outside strings."""
    if not isinstance(value, list | dict):
        return 0
    items = value if isinstance(value, list) else list(value.values())
    colons = len(items) if isinstance(value, dict) else 0
    return 1 + max(0, len(items) - 1) + colons + sum(map(_n_structure, items))


def test_a_text_may_be_full_of_commas_and_quotes(client):
    text = '[{",:\\' * 3_000
    answer = client.post("/v1/entities", json={"text": text})
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize(
    ("content", "field", "given"),
    [
        (b'{"min_score": NaN}', "min_score", "NaN"),
        (b'{"min_score": -1e999}', "min_score", "-1e999"),
        (b'{"text": "a", "words": ["b", {"text": Infinity}]}', "words.1.text", "Infinity"),
        (b"-Infinity", "the body", "-Infinity"),
        (b"[" + b"1" * 5_000 + b"]", "the body", "a number of thousands of digits"),
    ],
)
def test_numbers_that_are_not_finite_are_refused_by_name(client, content, field, given):
    error = refused(content)
    assert (error.code, error.params) == ("not_finite", {"field": field, "given": given})
    assert f"{field}: given {given}; expected" in error.message
    answer = client.post("/v1/entities", content=content, headers=JSON)
    assert answer.status_code == 422 and answer.json()["error"]["code"] == "not_finite"


@pytest.mark.parametrize("content", [b"{", b"\xff", b'"\xc0\xee"', "{}".encode("utf-16"), b"", b"[" * 90_000])
def test_what_is_no_json_is_told(content):
    error = refused(content, most=100_000)
    assert error.code == "not_json" and error.status_code == 400


@pytest.mark.parametrize(("name", "most"), [("texts", 8), ("words", 8), ("labels", 256)])
def test_the_length_of_a_list_is_checked_before_its_items(client, name, most):
    body = {"text": "甲"} if name != "texts" else {}
    answer = client.post("/v1/entities", json=body | {name: [1] * (most + 1)})
    assert answer.status_code == 413
    error = answer.json()["error"]
    assert error["code"] == f"too_many_{name}" and error["params"] == {"given": most + 1, "most": most}
    assert error["message"].startswith(f"given {most + 1:,} {name}; at most {most:,} may be in a request")


@pytest.mark.parametrize(
    "body",
    [
        {"k" * 100_000: 1},
        {"text": "a"} | {f"unknown {k}": k for k in range(500)},
        {"text": "a", "words": [{f"unknown {k}": 1 for k in range(9)}] * 8},
        {"text": "a", "words": ["长" * 100_000]},
        {"text": "a", "words": [{"text": "甲甲", "label": "L" * 100_000}]},
        {"text": "a", "model": "M" * 100_000},
        {"text": "a", "labels": ["L" * 60] * 256},
    ],
)
def test_messages_have_the_first_mistakes_and_are_short(client, body):
    answer = client.post("/v1/entities", json=body)
    assert answer.status_code == 422
    error = answer.json()["error"]
    assert error["code"] in CODES and len(error["message"]) <= MOST_SHOWN
    assert error["message"].count("Extra inputs") <= 5 and all(len(str(x)) <= 500 for x in error["params"].values())


@pytest.mark.parametrize("value", [False, True, "0.5", None, [0.5]])
def test_min_score_is_a_number(client, value):
    answer = client.post("/v1/entities", json={"text": "甲", "min_score": value})
    assert (
        answer.status_code == 422 and "min_score: Input should be a valid number" in answer.json()["error"]["message"]
    )
    assert client.post("/v1/entities", json={"text": "甲", "min_score": 1}).status_code == 200


def test_an_empty_word_is_refused_and_the_schema_says_so(client):
    schemas = client.get("/openapi.json").json()["components"]["schemas"]
    of_words = [schemas["EntitiesIn"]["properties"]["words"]["items"]["anyOf"][1]]
    of_words += [schemas["RemoveIn"]["properties"]["words"]["items"]]
    of_words += [schemas["WordIn"]["properties"][name]["anyOf"][0] for name in ("text", "word")]
    assert of_words == [{"type": "string", "minLength": 1}] * 4
    for word in ("", {"text": ""}, {"word": ""}):
        answer = client.post("/v1/entities", json={"text": "甲", "words": [word]})
        assert answer.status_code == 422 and answer.json()["error"]["code"] == "word_empty"


def test_a_word_may_be_called_word_as_in_word_lists_of_json_lines(client):
    def found(word):
        answer = client.post("/v1/lattice", json={"text": "很好的甲乙丙", "words": [word]})
        assert answer.status_code == 200, answer.text
        return answer.json()["words"]

    assert found({"word": "甲乙", "label": "X"}) == found({"text": "甲乙", "label": "X"}) != found("乙丙")
    for word in ({"word": "甲乙", "text": "甲乙"}, {"label": "X"}, {}):
        answer = client.post("/v1/entities", json={"text": "甲", "words": [word]})
        assert answer.status_code == 422
        assert answer.json()["error"]["message"] == "words.0: expected either text or word, a string"


@pytest.mark.parametrize("given", ["小米", {"小米": "COMPANY"}, {"text": "小米"}, 5, None])
def test_what_is_no_list_of_words_is_told_what_is_expected(client, given):
    for path in ("/v1/entities", "/v1/lattice", "/v1/lexicon", "/v1/lexicon/remove"):
        body = {"words": given} | ({} if "lexicon" in path else {"text": "甲"})
        answer = client.post(path, json=body)
        expected = (
            'words: expected a list, such as ["小米"], or of words with labels [{"text": "小米", "label": "COMPANY"}]'
        )
        assert (answer.status_code, answer.json()["error"]["message"]) == (422, expected)


def test_what_else_is_no_list_is_told_what_is_expected(client):
    for body, expected in (
        ({"texts": "甲"}, 'texts: expected a list of strings; one string is given as "text"'),
        ({"text": "甲", "labels": "LOC"}, 'labels: expected a list of labels, such as ["COMPANY"]'),
        ({"text": "甲", "words": [{"小米": "X"}]}, "words.0.小米: no field of a word; expected text, label and mode"),
    ):
        answer = client.post("/v1/entities", json=body)
        assert (answer.status_code, answer.json()["error"]["message"]) == (422, expected)
