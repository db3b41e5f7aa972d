"""Model folders whose author means harm: arrays of other shapes, wrong row numbers; their checksums are right."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file, save_file

from cige.folders.manifest import MANIFEST, write_manifest

Arrays = dict[str, np.ndarray]
LAYER = "encoder.layers.0."


def rewrite(folder: Path, name: str, change: Callable[[Arrays], None]) -> None:
    """Change the arrays of a file of a model folder, and list its new checksum."""
    arrays = {key: array.copy() for key, array in load_file(folder / name).items()}
    change(arrays)
    save_file({key: np.ascontiguousarray(array) for key, array in arrays.items()}, folder / name)
    sign(folder)


def sign(folder: Path, **facts: Any) -> None:
    """Write a manifest with the checksums of the files as they are now."""
    written = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    del written["files"]
    (folder / MANIFEST).unlink()
    write_manifest(folder, **(written | facts))


def more_rows(name: str, n: int) -> Callable[[Arrays], None]:
    def change(arrays: Arrays) -> None:
        arrays[name] = np.resize(arrays[name], (n, *arrays[name].shape[1:]))

    return change


def more_columns(name: str, n: int) -> Callable[[Arrays], None]:
    def change(arrays: Arrays) -> None:
        arrays[name] = np.resize(arrays[name], (arrays[name].shape[0], n))

    return change


def value(name: str, number: float) -> Callable[[Arrays], None]:
    def change(arrays: Arrays) -> None:
        arrays[name].reshape(-1)[-1] = number

    return change


def also(name: str, shape: tuple[int, ...]) -> Callable[[Arrays], None]:
    def change(arrays: Arrays) -> None:
        arrays[name] = np.zeros(shape, np.float32)

    return change


def of_type(name: str, dtype: type) -> Callable[[Arrays], None]:
    def change(arrays: Arrays) -> None:
        arrays[name] = arrays[name].astype(dtype)

    return change


def without(name: str) -> Callable[[Arrays], None]:
    def change(arrays: Arrays) -> None:
        del arrays[name]

    return change


WEIGHTS: dict[str, Callable[[Arrays], None]] = {
    "ff_out with 8,192 rows": more_rows(f"{LAYER}ff_out.weight", 8192),
    "ff_in with too many inputs": more_columns(f"{LAYER}ff_in.weight", 4096),
    "ff_out with too many inputs": more_columns(f"{LAYER}ff_out.weight", 4096),
    "output with too many inputs": more_columns("output.weight", 4096),
    "output with few rows": more_rows("output.weight", 2),
    "short u": more_rows(f"{LAYER}attention.u", 1),
    "short v": more_rows(f"{LAYER}attention.v", 1),
    "short norm": more_rows(f"{LAYER}attention_norm.weight", 1),
    "short relation_key": more_rows(f"{LAYER}attention.relation_key.weight", 1),
    "narrow query": more_columns(f"{LAYER}attention.query.weight", 1),
    "few label rows": more_rows("encoder.word_labels.weight", 1),
    "few gazetteers": more_columns("encoder.gazetteers.weight", 1),
    "wide word table": more_columns("encoder.embeddings.word.fixed", 64),
    "empty word table": more_rows("encoder.embeddings.word.fixed", 0),
    "more trained words": more_rows("encoder.embeddings.word.tuned", 500),
    "scales of 16-bit rows": more_rows("encoder.embeddings.bigram.scale", 3),
    "short transitions": more_rows("crf.transitions", 1),
    "short masks": more_rows("crf.allowed", 1),
    "not a number": value(f"{LAYER}ff_in.weight", float("nan")),
    "infinite output": value("output.bias", float("inf")),
    "no word projection": without("encoder.word_projection.weight"),
    "no fixed words": without("encoder.embeddings.word.fixed"),
    "bias of queries that no setting has": also(f"{LAYER}attention.query.bias", (1,)),
    "bias of spans that no setting has": also("encoder.fusion.weight.bias", (3, 1, 32)),
    "layer that no setting has": also("encoder.layers.1.attention.u", (1, 1)),
    "words in 64 bits": of_type("encoder.embeddings.word.fixed", np.float64),
    "words as truth values": of_type("encoder.embeddings.word.fixed", np.bool_),
    "u in 16 bits": of_type(f"{LAYER}attention.u", np.float16),
    "masks as numbers": of_type("crf.allowed", np.float32),
}
"""Changes of model.safetensors."""

VOCABULARY: dict[str, Callable[[Arrays], None]] = {
    "huge word row": value("word_rows", 2**31 - 1),
    "negative word row": value("word_rows", -7),
    "word row of padding": value("word_rows", 0),
    "huge bigram row": value("bigrams.rows", 2**31 - 1),
    "negative bigram row": value("bigrams.rows", -1),
    "short bigram rows": more_rows("bigrams.rows", 3),
    "negative char row": value("chars.rows", -1),
    "huge char row": value("chars.rows", 70_000),
    "codes out of order": value("bigrams.codes", 1),
    "short codes": more_rows("chars.codes", 2),
    "many gazetteers": value("word_groups", 2**30),
    "negative gazetteers": value("word_groups", -1),
    "gazetteers without sign": of_type("word_groups", np.uint8),
    "word rows as fractions": of_type("word_rows", np.float32),
    "codes in 32 bits": of_type("chars.codes", np.int32),
    "no gazetteers": without("word_groups"),
}
"""Changes of vocabulary.safetensors."""

FACTS: dict[str, dict[str, Any]] = {
    "many rows": {"n_rows": [1 << 40, 1 << 40, 1 << 40]},
    "negative rows": {"n_rows": [-1, 100, 100]},
    "rows as text": {"n_rows": ["1", "2", "3"]},
    "two numbers of rows": {"n_rows": [61, 128]},
    "many labels": {"word_labels": ["X"] * 1000},
    "many groups": {"n_groups": 64},
    "groups for terabytes": {"n_groups": 1 << 40},
    "no groups": {"n_groups": 0},
    "groups as text": {"n_groups": "4"},
    "fewer gazetteers": {"gazetteers": ["ORG"]},
    "gazetteers without names": {"gazetteers": [1, 2, 3]},
    "labels without names": {"word_labels": [[], {}, None]},
    "many trained rows": {"n_tuned": [1 << 40, 0, 0]},
    "tags of other labels": {"labels": ["PER"]},
    "scheme of no name": {"scheme": ["BMES"]},
    "architecture of no name": {"architecture": ["flat"]},
    "no settings": {"config": None},
    "settings as a list": {"config": [1]},
    "endless lengths": {"max_lengths": {"LOC": -1}},
    "recall that lets everything in": {
        "calibration": {
            "fine": {"knots": [[0, 0], [1, 1]], "thresholds": [[0.9, 0.0]], "label_thresholds": {}, "n_entities": 1}
        }
    },
    "number of many digits": {
        "calibration": {"fine": {"knots": [[0, 10**400]], "thresholds": [], "label_thresholds": {}}}
    },
}
"""Changes of the manifest."""

CONFIG: dict[str, Any] = {
    "n_heads": 1 << 40,
    "head_width": -8,
    "ff_width": 0,
    "n_layers": 1 << 30,
    "max_distance": "far",
    "position_offset": 1 << 62,
    "distances": ["xx"],
    "position_score": "none",
    "sinusoid": "none",
    "residual": "yes",
    "use_words": 2,
    "key_projection": [],
    "ff_dropout_prob": float("inf"),
    "bert_tuned": None,
}
"""Settings of the network that its arrays do not have, or that no network has."""
