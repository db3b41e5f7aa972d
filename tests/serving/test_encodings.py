"""Compressed bodies: they are read as if they were not, within the same limit, and what is damaged is told."""

from __future__ import annotations

import gzip
import json
import random
import tracemalloc
import zlib

import pytest
import tiny
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st

from cige.api import NER
from cige.serving.app import create_app
from cige.serving.encodings import Body
from cige.serving.refusals import Refused
from cige.serving.settings import Limits, Settings

GZIP = {"content-type": "application/json", "content-encoding": "gzip"}
ASKED = {"text": "欧阳修在巴塞尔。"}


def zeros(n_bytes: int) -> bytes:
    """So many zeros, compressed to a thousandth."""
    packer = zlib.compressobj(9, wbits=31)
    return b"".join(packer.compress(bytes(1 << 20)) for _ in range(n_bytes >> 20)) + packer.flush()


@pytest.fixture(scope="module")
def ner():
    return NER(tiny.trained_model())


@pytest.fixture(scope="module")
def client(ner):
    with TestClient(create_app(ner, Settings(limits=Limits(body_bytes=10_000)))) as made:
        yield made


@pytest.mark.parametrize("name", ["gzip", "GZIP", "x-gzip"])
@pytest.mark.parametrize("path", ["entities", "lattice"])
def test_compressed_bodies_are_read_like_others(client, name, path):
    plain = client.post(f"/v1/{path}", json=ASKED)
    packed = gzip.compress(json.dumps(ASKED).encode())
    answer = client.post(f"/v1/{path}", content=packed, headers=GZIP | {"content-encoding": name})
    assert answer.status_code == 200 and answer.json() == plain.json()
    in_pieces = client.post(f"/v1/{path}", content=(packed[n : n + 1] for n in range(len(packed))), headers=GZIP)
    assert in_pieces.json() == plain.json()


def test_words_are_added_and_removed_by_compressed_bodies(ner):
    with TestClient(create_app(ner, Settings())) as client:
        for path, n_words in (("/v1/lexicon", 1), ("/v1/lexicon/remove", 0)):
            answer = client.post(path, content=gzip.compress(b'{"words": ["AB"]}'), headers=GZIP)
            assert answer.json()["n_words"] == n_words


@pytest.mark.parametrize("name", ["br", "deflate", "zstd", "gzip, gzip", "g\\zip"])
def test_other_encodings_are_refused_with_what_is_supported(client, name):
    answer = client.post("/v1/entities", content=b"x", headers=GZIP | {"content-encoding": name})
    assert answer.status_code == 415 and answer.headers["accept-encoding"] == "gzip"
    assert (
        answer.json()["error"]["message"]
        == f"given Content-Encoding: {name}; expected gzip, or a body that is not compressed"
    )


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda packed: packed[:-1], "it ends too early"),
        (lambda packed: b"", "it ends too early"),
        (lambda packed: packed + b"x", "it ends too early"),
        (lambda packed: packed + b"more", "incorrect header check"),
        (lambda packed: json.dumps(ASKED).encode(), "incorrect header check"),
        (lambda packed: packed[:-6] + bytes(6), "incorrect data check"),
    ],
)
def test_damaged_gzip_is_told(client, damage, reason):
    packed = gzip.compress(json.dumps(ASKED).encode())
    answer = client.post("/v1/entities", content=damage(packed), headers=GZIP)
    assert answer.status_code == 400
    told = answer.json()["error"]["message"]
    assert told.startswith("the body is not gzip, as Content-Encoding says, or is damaged (") and reason in told


def test_what_is_in_the_gzip_is_checked_as_ever(client):
    for content, status in ((b"{", 400), (b'{"text": 3}', 422), (b"null", 422)):
        assert client.post("/v1/entities", content=gzip.compress(content), headers=GZIP).status_code == status


def test_the_limit_is_that_of_the_content(client):
    for n_chars, status in ((9_000, 200), (9_990, 413)):
        packed = gzip.compress(json.dumps({"text": "x" * n_chars}).encode())
        assert len(packed) < 200
        answer = client.post("/v1/entities", content=packed, headers=GZIP)
        assert answer.status_code == status
    assert answer.json()["error"]["message"].startswith(
        "the body is longer than 10,000 bytes, decompressed or not; send fewer"
    )
    noise = gzip.compress(random.Random(1).randbytes(10_000))  # longer than its content
    assert client.post("/v1/entities", content=iter([noise]), headers=GZIP).status_code == 413
    assert client.post("/v1/entities", content=noise, headers=GZIP).status_code == 413


def test_a_bomb_is_not_unpacked():
    bomb = zeros(1 << 28)
    assert len(bomb) < 1 << 19
    tracemalloc.start()
    try:
        body = Body({b"content-encoding": b"gzip"}, 4 << 20)
        with pytest.raises(Refused) as refused:
            body.read(bomb, is_last=True)
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()
    assert refused.value.status_code == 413


def test_a_bomb_in_many_members_is_not_unpacked():
    body = Body({b"content-encoding": b"gzip"}, 4 << 20)
    with pytest.raises(Refused, match="longer than 4,194,304 bytes"):
        body.read(zeros(1 << 20) * 1_000, is_last=True)


def test_a_server_answers_a_bomb_with_413_and_goes_on(client):
    bomb = zeros(5 << 20)
    assert len(bomb) < 10_000
    assert client.post("/v1/entities", content=bomb, headers=GZIP).status_code == 413
    assert client.post("/v1/lexicon", content=iter([bomb[:100], bomb[100:]]), headers=GZIP).status_code == 413
    assert client.post("/v1/entities", json=ASKED).status_code == 200


@given(st.lists(st.binary(max_size=1_000), min_size=1, max_size=4), st.integers(1, 100), st.integers(0, 3_000))
def test_members_and_pieces_of_any_size_give_the_content_or_413(members, size, most):
    content, packed = b"".join(members), b"".join(map(gzip.compress, members))
    pieces = [packed[n : n + size] for n in range(0, len(packed), size)]
    body, found = Body({b"content-encoding": b"gzip"}, most), b""
    try:
        for number, piece in enumerate(pieces, 1):
            found += body.read(piece, is_last=number == len(pieces))
    except Refused as refused:
        assert refused.status_code == 413 and max(len(content), len(packed)) > most
    else:
        assert found == content and max(len(content), len(packed)) <= most


def test_no_token_is_told_before_anything_is_read(ner):
    with TestClient(create_app(ner, Settings(), token="t")) as client:
        for name in ("br", "gzip"):
            answer = client.post("/v1/entities", content=b"x", headers=GZIP | {"content-encoding": name})
            assert answer.status_code == 401


def test_a_request_without_a_body_may_name_any_encoding(client):
    assert client.get("/v1/model", headers={"content-encoding": "br"}).status_code == 200
