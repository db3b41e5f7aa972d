"""The soak: its texts, its requests, and that wrong offsets end it."""

import json
import mmap
import os

import pytest

from benchmarks.parts.odd_texts import odd_texts
from benchmarks.stress import soak

ENTITY = {"start": 1, "end": 3, "label": "LOC", "text": "南京"}


def test_texts_are_odd_and_the_same_for_the_same_seed():
    texts = list(odd_texts(soak.NEWS, 200, seed=1))
    assert texts == list(odd_texts(soak.NEWS, 200, seed=1)) != list(odd_texts(soak.NEWS, 200, seed=2))
    assert any("😀" in text for text in texts) and any("\x00" in text for text in texts)
    assert sum(any(ord(char) > 0xFFFF for char in text) for text in texts) > 20
    assert all(json.loads(json.dumps({"text": text}))["text"] == text for text in texts)


def test_offsets_must_give_the_text_of_the_entity():
    assert soak.check("在南京", [ENTITY]) == [(1, 3, "LOC")]
    assert soak.check("😀南京", [ENTITY | {"start": 2, "end": 4}], utf16=True) == [(1, 3, "LOC")]
    for text, moved in (("在南京", {"start": 0, "end": 2}), ("在南京", {"end": 9}), ("😀南京", {"start": 1, "end": 3})):
        with pytest.raises(SystemExit, match="wrong offsets"):
            soak.check(text, [ENTITY | moved], utf16=text[0] == "😀")


def test_requests_are_of_all_kinds():
    bodies = list(map(json.loads, soak.bodies(300, seed=0)))
    assert len(bodies) == 300 and any(body["text"] == 3 for body in bodies)
    assert {name for body in bodies for name in body} == {"text", "words", "offsets", "min_score", "explain"}


def test_memory_is_that_of_a_process():
    before = soak.memory_of(os.getpid())
    pages = mmap.mmap(-1, 40 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)  # malloc may have free memory to give
    for _ in range(40):
        pages.write(b"x" * (1 << 20))
    assert soak.memory_of(os.getpid()) - before > 30
    pages.close()
