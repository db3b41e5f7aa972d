"""Packed data whose author means harm is refused with a DataError before anything is cut out of it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import crafted_folders as crafted
import numpy as np
import pytest

from cige.errors import CigeError, DataError
from cige.folders.manifest import MANIFEST, sha256
from cige.lattice_bert.pretraining.data import open_data
from cige.lattice_bert.pretraining.shards import open_shard

SHARD = "shard-00000"


@pytest.fixture
def folder(data_folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(data_folder, tmp_path / "data"))


def sign(folder: Path, change: Callable[[dict[str, Any]], Any] = lambda facts: None) -> None:
    """Write the checksums of a shard and of the data, whose facts `change` may change."""
    crafted.sign(folder / SHARD)
    facts = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    facts["shards"][SHARD]["sha256"] = sha256(folder / SHARD / MANIFEST)
    changed = change(facts)
    (folder / MANIFEST).write_text(json.dumps(facts if changed is None else changed), encoding="utf-8")


def test_the_data_themselves_are_read(folder: Path) -> None:
    sign(folder)
    assert len(open_data(folder).train[0].ids)


def of_last(number: int) -> Callable[[np.ndarray], np.ndarray]:
    def change(x: np.ndarray) -> np.ndarray:
        made = x.copy()
        made[-1] = number
        return made

    return change


def of_middle(number: int) -> Callable[[np.ndarray], np.ndarray]:
    def change(x: np.ndarray) -> np.ndarray:
        made = x.copy()
        made[len(x) // 2] = number
        return made

    return change


ARRAYS: dict[str, tuple[str, Callable[[np.ndarray], np.ndarray]]] = {
    "an id beyond the last": ("ids", of_last(2**31 - 1)),
    "a negative id": ("ids", of_last(-1)),
    "few ids": ("ids", lambda x: x[:-1]),
    "ids as fractions": ("ids", lambda x: x.astype(np.float32)),
    "ids in rows": ("ids", lambda x: x[None]),
    "a start beyond the end": ("starts", of_last(2**31 - 1)),
    "a start before its line": ("starts", of_last(0)),
    "a negative start": ("starts", of_last(-7)),
    "few starts": ("starts", lambda x: x[:3]),
    "a long token": ("lengths", of_last(65535)),
    "an empty token": ("lengths", of_middle(0)),
    "lengths in 32 bits": ("lengths", lambda x: x.astype(np.int32)),
    "a line that ends before it begins": ("line_tokens", of_middle(0)),
    "lines that end too early": ("line_tokens", lambda x: x[:-1]),
    "lines beyond the end": ("line_tokens", of_last(2**62)),
    "negative lines": ("line_pieces", of_middle(-(2**62))),
    "pieces that end too early": ("line_pieces", of_last(3)),
    "no documents": ("document_lines", lambda x: x[:0]),
    "documents out of order": ("document_lines", lambda x: x[::-1]),
    "a document beyond the last line": ("document_lines", of_last(10**9)),
    "few pieces": ("word_starts", lambda x: x[:5]),
    "pieces as bytes": ("word_starts", lambda x: x.astype(np.uint8)),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays(folder: Path, name: str) -> None:
    file, change = ARRAYS[name]
    path = folder / SHARD / f"{file}.npy"
    np.save(path, np.ascontiguousarray(change(np.load(path))))
    sign(folder)
    with pytest.raises(DataError, match="cannot be read"):
        open_data(folder).train[0]


def test_an_archive_is_no_array(folder: Path) -> None:
    with open(folder / SHARD / "ids.npy", "wb") as file:
        np.savez(file, a=np.arange(3))
    with pytest.raises(DataError, match="cannot be read"):
        open_shard(folder / SHARD)


FACTS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "no shards": lambda facts: facts.pop("shards") and None,
    "shards as a list": lambda facts: facts | {"shards": [1]},
    "a shard elsewhere": lambda facts: facts | {"shards": {"../data/shard-00000": facts["shards"][SHARD]}},
    "a shard without counts": lambda facts: facts | {"shards": {SHARD: {}}},
    "a shard that is none": lambda facts: facts | {"shards": {SHARD: 7}},
    "counts as text": lambda facts: facts["shards"][SHARD].update(n_tokens="7"),
    "held out as a list": lambda facts: facts["shards"][SHARD].update(held_out=[1]),
    "more held out than there are": lambda facts: facts["shards"][SHARD].update(held_out={"n_documents": 10**9}),
    "fewer than none held out": lambda facts: facts["shards"][SHARD].update(held_out={"n_documents": -1}),
    "no vocabulary": lambda facts: facts.pop("vocabulary") and None,
    "no settings": lambda facts: facts.pop("settings") and None,
}


@pytest.mark.parametrize("name", FACTS)
def test_facts(folder: Path, name: str) -> None:
    sign(folder, FACTS[name])
    with pytest.raises(CigeError):
        open_data(folder).train[0]


def test_a_vocabulary_that_is_no_text(folder: Path) -> None:
    (folder / "vocabulary/words.txt").write_bytes(b"\xff\xfe\n")
    crafted.sign(folder / "vocabulary")
    with pytest.raises(CigeError):
        open_data(folder)
