"""Components of characters and gazetteers of words in the runtimes: rows of tables that are computed at loading.

A text then costs what it does without them. The vector of a character's components depends on the character alone. It
is appended to the character's row, and the runtimes read a model without components whose character vectors are wider.
A character without a row that has components gets one, with the vectors of the row UNK; such characters share a row if
they have the same components.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

import numpy as np

from cige.data.components import NO_SEQUENCE, ComponentTable
from cige.data.vocabulary import PAD, UNK, CodeTable, Vocabulary
from cige.models.config import ModelConfig
from cige.models.flat_config import FlatConfig
from cige.runtime.embedding_table import EmbeddingTable

PREFIX = "encoder.components."
_TABLES = "encoder.embeddings."
LABELS, GAZETTEERS = "encoder.word_labels.weight", "encoder.gazetteers.weight"
C = TypeVar("C", bound=ModelConfig)


def with_component_rows(
    config: C, weights: Mapping[str, np.ndarray], vocabulary: Vocabulary
) -> tuple[C, dict[str, np.ndarray], Vocabulary]:
    """The settings, weights and vocabulary of an equal FLAT or SoftLexicon that reads no components.

    A model that reads none is returned unchanged.
    """
    table = vocabulary.components
    if config.components is None or table is None:
        return config, dict(weights), vocabulary
    chars, sequences = _with_rows_for(table, vocabulary)
    vectors = component_vectors(table, weights)[sequences]
    vectors[PAD] = 0
    own = EmbeddingTable.of(weights, f"{_TABLES}char")
    source = np.arange(len(sequences))  # the old row of each new row
    source[len(own) :] = UNK
    changed = {name: x for name, x in weights.items() if not name.startswith(PREFIX)}
    changed |= _plain_table("char", np.concatenate([own.rows(source), vectors], 1))
    if f"{_TABLES}char_word.tuned" in weights:
        changed |= _plain_table("char_word", EmbeddingTable.of(weights, f"{_TABLES}char_word").rows(source))
    n_bigram = weights[f"{_TABLES}bigram.tuned"].shape[1] if config.use_bigrams else 0
    of_lstm = [f"encoder.lstm.{side}_layers.0.weight_ih_l0" for side in ("forward", "backward")]
    for name in ["encoder.char_projection.weight"] if isinstance(config, FlatConfig) else of_lstm:
        changed[name] = _moved(weights[name], own.width, n_bigram, vectors.shape[1])
    backoff = weights.get(f"{_TABLES}backoff.weight")
    if backoff is not None:  # it reads the vectors of two characters, and not their components
        halves = (np.pad(half, ((0, 0), (0, vectors.shape[1]))) for half in np.split(backoff, 2, axis=1))
        changed[f"{_TABLES}backoff.weight"] = np.concatenate(list(halves), 1)
    return (
        replace(config, components=None),
        changed,
        replace(vocabulary, chars=chars, n_rows=(len(sequences), *vocabulary.n_rows[1:]), components=None),
    )


def component_vectors(table: ComponentTable, weights: Mapping[str, np.ndarray]) -> np.ndarray:
    """float32[S, D]: the vector of every sequence, as `nn.components` computes it."""
    names = ("embedding.weight", "convolution.weight", "convolution.bias", "output.weight", "output.bias")
    embedding, kernel, kernel_bias, output, bias = (weights[PREFIX + name].astype(np.float32) for name in names)
    starts = table.ends - table.lengths
    # All sequences one after the other, with a zero before, between and after them, so that none reads another.
    place = np.arange(len(table.parts)) + 1 + np.repeat(np.arange(len(table)), table.lengths)
    x = np.zeros((len(table.parts) + len(table) + 1, embedding.shape[1]), np.float32)
    x[place] = embedding[table.parts]
    read = kernel_bias + sum(x[place + k - 1] @ kernel[:, :, k].T for k in range(3))
    largest = np.maximum.reduceat(np.maximum(read, 0), starts)
    vectors: np.ndarray = largest @ output.T + bias
    return vectors


def _with_rows_for(table: ComponentTable, vocabulary: Vocabulary) -> tuple[CodeTable, np.ndarray]:
    """The rows of characters, with new ones at the end, and int64[rows], the number of the sequence of each row."""
    chars, n_rows = vocabulary.chars, vocabulary.n_rows[0]
    is_new = chars.look_up(table.codes) == UNK
    new = table.sequences[is_new]
    has_row = np.zeros(len(table), bool)
    has_row[new] = True
    distinct = np.flatnonzero(has_row)
    rows = (n_rows + np.cumsum(has_row) - 1)[new].astype(np.int32)
    codes = np.concatenate([chars.codes, table.codes[is_new]])
    order = np.argsort(codes, kind="stable")
    sequences = np.full(n_rows + len(distinct), NO_SEQUENCE, np.int64)
    sequences[chars.rows] = table.look_up(chars.codes)
    sequences[n_rows:] = distinct
    return CodeTable(codes[order], np.concatenate([chars.rows, rows])[order]), sequences


def _plain_table(name: str, vectors: np.ndarray) -> dict[str, np.ndarray]:
    """The parts of an EmbeddingTable with these rows, of which none is stored in fewer bits."""
    return {
        f"{_TABLES}{name}.tuned": vectors,
        f"{_TABLES}{name}.fixed": np.zeros((0, vectors.shape[1]), np.float16),
        f"{_TABLES}{name}.scale": np.zeros((0, 1), np.float16),
    }


def _moved(weight: np.ndarray, n_char: int, n_bigram: int, n_components: int) -> np.ndarray:
    """A weight whose columns begin with those of characters, bigrams and components, with bigrams after components."""
    ends = np.cumsum([n_char, n_bigram, n_components])
    char, bigram, components, rest = np.split(weight, ends, axis=1)
    return np.ascontiguousarray(np.concatenate([char, components, bigram, rest], 1))


def with_gazetteer_rows(weights: Mapping[str, np.ndarray], vocabulary: Vocabulary) -> dict[str, np.ndarray]:
    """The weights of a FLAT, whose table of labels has a row for each set of gazetteers after those of the labels.

    The rows are those of `Vocabulary.label_and_set_ids`: a word of the lexicon has no label, and a user word is in no
    gazetteer, so a word needs one row only. Weights without gazetteers are returned unchanged.
    """
    if GAZETTEERS not in weights:
        return dict(weights)
    vectors = weights[GAZETTEERS].astype(np.float32)  # [D, G]
    labels = weights.get(LABELS)
    if labels is None:
        labels = np.zeros((len(vocabulary.word_labels) + 2, len(vectors)), np.float32)
    of_sets = vocabulary.gazetteer_sets[1:].astype(np.float32) @ vectors.T  # [C - 1, D]
    return {**weights, LABELS: np.concatenate([labels, of_sets])}
