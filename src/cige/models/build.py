"""Build an untrained model: vocabulary and vectors from the training text, then the network."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from cige.data.tags import tag_set
from cige.data.vocabulary import N_SPECIAL, UNK, CodeTable, Vocabulary, code_of, seen_first, split_bigram
from cige.lattice.lattice import Lattice
from cige.lexicon.lexicon import Lexicon
from cige.lexicon.vectors import VectorTable
from cige.models.flat import FlatConfig, FlatEncoder
from cige.models.tagger import Tagger
from cige.nn.bert import BertFeatures
from cige.nn.embeddings import LatticeEmbeddings


@dataclass(frozen=True)
class Vectors:
    """Pre-trained vectors of characters, character bigrams and words."""

    char: VectorTable
    bigram: VectorTable
    word: VectorTable


@dataclass(frozen=True)
class InputTables:
    """A vocabulary and the float32 matrices its rows start from: char, bigram, word [n_rows, width] each."""

    vocabulary: Vocabulary
    matrices: tuple[np.ndarray, np.ndarray, np.ndarray]


def input_tables(
    lattices: Sequence[Lattice],
    lexicon: Lexicon,
    vectors: Vectors,
    *,
    seed: int,
    keep_word: Callable[[str], bool] | None = None,
    keep_bigram: Callable[[str], bool] | None = None,
) -> InputTables:
    """Rows for everything in the training `lattices`, then for whatever else has a vector.

    Vectors are scaled to unit length, as in the released FLAT. Whatever has no vector shares row UNK, in training as
    later: a random row of its own (what the released code gives it) would be learnt by heart in training while its
    like in new text falls on a row that training never used.

    Args:
        keep_word, keep_bigram: which of the rows *not* seen in training to keep; None keeps all (a smaller model
            keeps fewer).
    """
    rng = np.random.default_rng(seed)
    seen_chars, seen_bigrams, seen_words = seen_first(lattices, len(lexicon))
    chars = _coded(vectors.char, seen_chars, rng, lambda token: True)
    bigrams = _coded(vectors.bigram, seen_bigrams, rng, keep_bigram or (lambda token: True))

    base = [lexicon.word(k) for k in range(len(lexicon))]
    row_in_file = vectors.word.rows(base)
    seen_words = seen_words[row_in_file[seen_words] >= 0]
    is_seen = np.zeros(len(base), bool)
    is_seen[seen_words] = True
    kept = (row_in_file >= 0) & ~is_seen
    if keep_word is not None:
        kept &= np.fromiter((keep_word(w) for w in base), bool, len(base))
    order = np.concatenate([seen_words, np.flatnonzero(kept)])
    word_rows = np.full(len(base), UNK, np.int32)
    word_rows[order] = np.arange(N_SPECIAL, N_SPECIAL + len(order))
    words = _matrix(vectors.word, row_in_file[order], rng)

    vocabulary = Vocabulary(
        chars=chars[0],
        bigrams=bigrams[0],
        word_rows=word_rows,
        n_tuned=(chars[2], bigrams[2], N_SPECIAL + len(seen_words)),
        n_rows=(len(chars[1]), len(bigrams[1]), len(words)),
    )
    return InputTables(vocabulary, (chars[1], bigrams[1], words))


def _coded(
    table: VectorTable, seen: np.ndarray, rng: np.random.Generator, keep: Callable[[str], bool]
) -> tuple[CodeTable, np.ndarray, int]:
    """The code table of characters or bigrams (seen ones first), its matrix and how many rows are trained."""
    row_of_code = {}
    for row, token in enumerate(table.words):
        code = code_of(token)
        if code is not None:
            row_of_code[code] = row
    # In the order of the file, which is that of frequency, so that a trimmed model keeps the frequent ones.
    seen = np.array(sorted((c for c in seen.tolist() if c in row_of_code), key=row_of_code.__getitem__), np.int64)
    seen_set = set(seen.tolist())
    others = [c for c, row in row_of_code.items() if c not in seen_set and keep(table.words[row])]
    order = np.concatenate([seen, np.array(others, np.int64)])
    rows = np.fromiter((row_of_code[c] for c in order.tolist()), np.int64, len(order))
    return CodeTable.from_ordered(order), _matrix(table, rows, rng), N_SPECIAL + len(seen)


def _matrix(table: VectorTable, rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """float32[N_SPECIAL + n, width]: special rows (PAD zero, the others random), then rows of the file, unit length."""
    special = rng.uniform(-1, 1, (N_SPECIAL, table.width))
    matrix = np.concatenate([special, table.vectors[rows]]).astype(np.float32)
    matrix /= np.maximum(np.linalg.norm(matrix, axis=1, keepdims=True), 1e-12)
    matrix[0] = 0
    return matrix


def build_flat(
    config: FlatConfig,
    tables: InputTables,
    labels: Sequence[str],
    *,
    scheme: str = "BMES",
    features: BertFeatures | None = None,
) -> Tagger:
    """An untrained FLAT tagger whose input tables hold the given vectors. Seed torch before for reproducible weights.

    Args:
        features: what `config.bert` names, loaded; None where it names nothing.
    """
    tagger = flat_network(config, tables.vocabulary, tag_set(labels, scheme), _widths(tables), features)
    embeddings = input_embeddings(tagger)
    for table, matrix in zip((embeddings.char, embeddings.bigram, embeddings.word), tables.matrices, strict=True):
        table.load_vectors(torch.from_numpy(matrix))
    if embeddings.backoff is not None:
        _fit_backoff(embeddings.backoff, tables)
    return tagger


@torch.no_grad()
def _fit_backoff(backoff: torch.nn.Linear, tables: InputTables) -> None:
    """Ridge regression of bigram vectors on those of their two characters (cosine 0.78 on rare bigrams held out)."""
    vocabulary = tables.vocabulary
    first, second = split_bigram(vocabulary.bigrams.codes)
    rows = [vocabulary.chars.look_up(first), vocabulary.chars.look_up(second)]
    known = (rows[0] != UNK) & (rows[1] != UNK)
    char, bigram, _ = tables.matrices
    inputs = np.concatenate([char[rows[0][known]], char[rows[1][known]], np.ones((known.sum(), 1), np.float32)], 1)
    targets = bigram[vocabulary.bigrams.rows[known]]
    solution = np.linalg.solve(inputs.T @ inputs + 0.01 * np.eye(inputs.shape[1]), inputs.T @ targets)
    backoff.weight.copy_(torch.from_numpy(solution[:-1].T))
    backoff.bias.copy_(torch.from_numpy(solution[-1]))


def flat_network(
    config: FlatConfig,
    vocabulary: Vocabulary,
    tags: list[str],
    widths: tuple[int, int, int],
    features: BertFeatures | None = None,
) -> Tagger:
    """The network alone, its tables empty."""
    if (config.bert is None) != (features is None):
        raise ValueError(f"config.bert is {config.bert!r}, but features are {type(features).__name__}")
    embeddings = LatticeEmbeddings(
        n_rows=vocabulary.n_rows,
        n_tuned=vocabulary.n_tuned,
        widths=widths,
        out_width=config.width,
        dropout_prob=config.embed_dropout_prob,
        word_dropout_prob=config.word_dropout_prob,
        extra_width=features.width if features is not None else 0,
        bigram_backoff=config.bigram_backoff,
    )
    return Tagger(
        encoder=FlatEncoder(config=config, embeddings=embeddings, features=features),
        tags=tags,
        output_dropout_prob=config.output_dropout_prob,
        constrained=config.constrained,
        boundary_scores=config.boundary_scores,
    )


def input_embeddings(tagger: Tagger) -> LatticeEmbeddings:
    """The tables that a tagger reads."""
    embeddings = tagger.encoder.embeddings
    assert isinstance(embeddings, LatticeEmbeddings)
    return embeddings


def _widths(tables: InputTables) -> tuple[int, int, int]:
    char, bigram, word = (m.shape[1] for m in tables.matrices)
    return char, bigram, word
