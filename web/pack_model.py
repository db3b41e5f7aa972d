"""The arrays of a model in the order in which gzip makes least of them; `web/packed.js` puts them back.

Nothing is rounded. Weights hardly compress as they are stored, row by row, because a row is scaled to use all values of
a byte. The numbers of one column, however, have a distribution of their own, and so has one byte of each of many
numbers. A file stays a .safetensors file, whose metadata says how each array is coded:

columns  int8[n, width] as [width, n]
planes   the first byte of every number, then the second of every number, and so on
steps    the differences of neighbouring whole numbers, modulo 2^32 or 2^64, in planes

Rows of the tables of bigrams and words are put into the order in which the vocabulary names them, so that their numbers
go up by one nearly everywhere.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save

COLUMNS, PLANES, STEPS = "columns", "planes", "steps"
TABLES = {"encoder.embeddings.bigram": "bigrams.rows", "encoder.embeddings.word": "word_rows"}
WEIGHTS, VOCABULARY, TRIE = "model.safetensors", "vocabulary.safetensors", "trie.safetensors"
GZIP_LEVEL = 9


def write_packed_model(folder: Path, out: Path) -> None:
    """Write the weights and the vocabulary of a model folder, and its trie to `out`/lexicon, all as .gz files."""
    weights, vocabulary = load_file(folder / WEIGHTS), load_file(folder / VOCABULARY)
    for table, rows in TABLES.items():
        if f"{table}.fixed" in weights:
            order_rows(weights, table, vocabulary, rows)
    trie = {name: np.load(folder / "lexicon" / f"trie_{name}.npy") for name in ("keys", "numbers")}
    write_gzip(out / WEIGHTS, packed(weights))
    write_gzip(out / VOCABULARY, packed(vocabulary))
    write_gzip(out / "lexicon" / TRIE, packed(trie))


def write_gzip(path: Path, content: bytes) -> None:
    """Write `path`.gz; the same content gives the same file."""
    path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(content, GZIP_LEVEL, mtime=0))


def order_rows(weights: dict[str, np.ndarray], table: str, vocabulary: dict[str, np.ndarray], rows: str) -> None:
    """Put the fixed rows of a table into the order in which vocabulary[rows] first names them; others come last."""
    n_tuned, fixed = len(weights[f"{table}.tuned"]), weights[f"{table}.fixed"]
    named = vocabulary[rows]
    distinct, first = np.unique(named[named >= n_tuned], return_index=True)
    in_order = distinct[np.argsort(first)] - n_tuned
    order = np.concatenate([in_order, np.setdiff1d(np.arange(len(fixed)), in_order)])
    place = np.empty(len(fixed), named.dtype)
    place[order] = np.arange(n_tuned, n_tuned + len(fixed))
    weights[f"{table}.fixed"] = fixed[order]
    if len(weights[f"{table}.scale"]):
        weights[f"{table}.scale"] = weights[f"{table}.scale"][order]
    is_fixed = named >= n_tuned
    vocabulary[rows] = named.copy()
    vocabulary[rows][is_fixed] = place[named[is_fixed] - n_tuned]


def packed(arrays: Mapping[str, np.ndarray]) -> bytes:
    """A .safetensors file of the arrays, coded."""
    codings = {name: _coding(array) for name, array in arrays.items()}
    coded = {name: _coded(array, codings[name]) for name, array in arrays.items()}
    return save(coded, metadata={"codings": json.dumps(codings)})


def _coding(array: np.ndarray) -> str:
    if array.dtype == np.int8 and array.ndim == 2:
        return COLUMNS
    return STEPS if array.dtype in (np.int32, np.int64) and array.ndim == 1 else PLANES


def _coded(array: np.ndarray, coding: str) -> np.ndarray:
    """The same shape and type, whose bytes are coded."""
    array = np.ascontiguousarray(array)
    if coding == COLUMNS:
        return np.ascontiguousarray(array.T).reshape(array.shape)
    if coding == STEPS:
        unsigned = array.view(np.dtype(f"u{array.itemsize}"))
        array = np.diff(unsigned, prepend=unsigned.dtype.type(0)).view(array.dtype)
    of_bytes = np.ascontiguousarray(array.reshape(-1).view(np.uint8).reshape(array.size, array.itemsize).T)
    return of_bytes.reshape(-1).view(array.dtype).reshape(array.shape)
