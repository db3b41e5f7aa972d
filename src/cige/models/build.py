"""Build an untrained model: vocabulary and vectors from the training text, then the network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
import torch

from cige.data.components import ComponentTable
from cige.data.tags import tag_set
from cige.data.vocabulary import (
    N_SPECIAL,
    PAD,
    UNK,
    CodeTable,
    Vocabulary,
    code_of,
    count_words,
    rows_of_words,
    seen_first,
    split_bigram,
)
from cige.errors import ModelError
from cige.lattice.lattice import Lattice
from cige.lexicon.lexicon import Lexicon
from cige.lexicon.vectors import VectorLength, VectorTable
from cige.models.config import ModelConfig
from cige.models.pair_grid import GridTagger, RelationTagger
from cige.models.pair_grid_config import PairGridConfig
from cige.models.registry import architecture as find_architecture
from cige.models.tagger import Tagger
from cige.nn.char_features import CharFeatures
from cige.nn.embeddings import InputSizes


@dataclass(frozen=True)
class Vectors:
    """Pre-trained vectors of characters, character bigrams and words.

    Attributes:
        length: "own" uses them unchanged; "unit" scales each to length 1, as the released FLAT does.
    """

    char: VectorTable
    bigram: VectorTable
    word: VectorTable
    length: VectorLength = "own"

    def scaled(self, vectors: np.ndarray) -> np.ndarray:
        """Some of these vectors as float32, scaled according to `length`."""
        vectors = vectors.astype(np.float32)
        if self.length == "own":
            return vectors
        return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


@dataclass(frozen=True)
class InputTables:
    """A vocabulary and the initial values of its rows.

    Attributes:
        vocabulary: the rows.
        matrices: float32[n_rows, width] of characters, bigrams and words.
        char_words: float32[n_char_rows, word width], the word vector of each character, or that of UNK if it has none.
    """

    vocabulary: Vocabulary
    matrices: tuple[np.ndarray, np.ndarray, np.ndarray]
    char_words: np.ndarray

    @property
    def widths(self) -> tuple[int, int, int]:
        char, bigram, word = (m.shape[1] for m in self.matrices)
        return char, bigram, word

    def with_word_labels(self, labels: Sequence[str]) -> InputTables:
        """The same tables for a model that knows these labels of user words."""
        return replace(self, vocabulary=replace(self.vocabulary, word_labels=tuple(labels)))

    def with_components(self, components: ComponentTable | None) -> InputTables:
        """The same tables for a model that reads these components of characters, or none."""
        return replace(self, vocabulary=replace(self.vocabulary, components=components))


def input_tables(
    lattices: Sequence[Lattice],
    lexicon: Lexicon,
    vectors: Vectors,
    *,
    seed: int,
    count: bool = False,
    word_groups: np.ndarray | None = None,
    gazetteers: Sequence[str] = (),
) -> InputTables:
    """Rows for everything with a vector, those that occur in the training `lattices` first.

    Everything without a vector shares row UNK, in training as in prediction. With random rows instead (as in the
    released code), training would memorise these rows, while unknown items of new text have a row that training never
    used.

    Args:
        count: whether to count how often each word occurs in the training text, for a model that reads_counts.
        word_groups: int32[n_base], the gazetteers of each word of `lexicon`, one bit per gazetteer; None: only one.
        gazetteers: their names.
    """
    rng = np.random.default_rng(seed)
    seen_chars, seen_bigrams, seen_words = seen_first(lattices, len(lexicon))
    chars, of_chars, n_chars = _coded(vectors.char, seen_chars, vectors, rng)
    bigrams, of_bigrams, n_bigrams = _coded(vectors.bigram, seen_bigrams, vectors, rng)

    base = list(lexicon)
    row_in_file = vectors.word.rows(base)
    seen_words = seen_words[row_in_file[seen_words] >= 0]
    is_seen = np.zeros(len(base), bool)
    is_seen[seen_words] = True
    is_unseen = (row_in_file >= 0) & ~is_seen
    order = np.concatenate([seen_words, np.flatnonzero(is_unseen)])
    of_words = _matrix(vectors.word, row_in_file[order], vectors, rng)

    vocabulary = Vocabulary(
        chars=chars,
        bigrams=bigrams,
        word_rows=rows_of_words(order, len(base)),
        n_tuned=(n_chars, n_bigrams, N_SPECIAL + len(seen_words)),
        n_rows=(len(of_chars), len(of_bigrams), len(of_words)),
        word_counts=count_words(lattices, len(base)) if count else None,
        word_groups=word_groups,
        n_groups=1 + len(gazetteers),
        gazetteers=tuple(gazetteers),
    )
    return InputTables(vocabulary, (of_chars, of_bigrams, of_words), _char_words(vectors, chars, of_words))


def _char_words(vectors: Vectors, chars: CodeTable, words: np.ndarray) -> np.ndarray:
    """float32[n_char_rows, word width]: special rows as in the matrix `words`, then the vectors of the file."""
    table = vectors.word
    matrix = np.repeat(words[UNK][None], len(chars) + N_SPECIAL, axis=0)
    matrix[:N_SPECIAL] = words[:N_SPECIAL]
    rows = table.rows([chr(code) for code in chars.codes.tolist()])
    matrix[chars.rows[rows >= 0]] = vectors.scaled(table.vectors[rows[rows >= 0]])
    return matrix


def _coded(
    table: VectorTable, seen: np.ndarray, vectors: Vectors, rng: np.random.Generator
) -> tuple[CodeTable, np.ndarray, int]:
    """The code table of characters or bigrams (seen ones first), its matrix, and the number of trained rows."""
    codes = map(code_of, table.words)
    row_of_code = {code: row for row, code in enumerate(codes) if code is not None}
    # Sorted as in the file, which is by frequency, so that a trimmed model keeps the frequent ones.
    seen = np.array(sorted((c for c in seen.tolist() if c in row_of_code), key=row_of_code.__getitem__), np.int64)
    seen_set = set(seen.tolist())
    others = [c for c in row_of_code if c not in seen_set]
    order = np.concatenate([seen, np.array(others, np.int64)])
    rows = np.fromiter((row_of_code[c] for c in order.tolist()), np.int64, len(order))
    return CodeTable.from_ordered(order), _matrix(table, rows, vectors, rng), N_SPECIAL + len(seen)


def _matrix(table: VectorTable, rows: np.ndarray, vectors: Vectors, rng: np.random.Generator) -> np.ndarray:
    """float32[N_SPECIAL + n, width]: zeros for PAD, random vectors for other special rows, then `rows`."""
    known = vectors.scaled(table.vectors[rows])
    special = rng.uniform(-1, 1, (N_SPECIAL, table.width)).astype(np.float32)
    length = float(np.linalg.norm(known, axis=1).mean()) if len(known) else 1.0
    special *= length / np.linalg.norm(special, axis=1, keepdims=True)
    special[PAD] = 0
    return np.concatenate([special, known])


def build_tagger(
    config: ModelConfig,
    tables: InputTables,
    labels: Sequence[str],
    *,
    architecture: str = "flat",
    scheme: str = "BMES",
    features: CharFeatures | None = None,
    head: PairGridConfig | None = None,
    fit_backoff: bool = True,
) -> Tagger:
    """An untrained tagger with the given vectors in its tables. Set the seed of torch first for reproducible weights.

    Args:
        architecture: a name of `models.registry`, to whose class `config` belongs.
        features: the loaded features that `config.bert` names; None if it names none.
        head: the settings of a pair grid, whose `max_length` is a number; None for a CRF. The result is a GridTagger
            then, which has the same methods.
        fit_backoff: whether the map from characters to bigrams without a row is fitted to the given vectors; with
            large tables that takes a second, which is wasted if the weights of another tagger are copied afterwards.

    Raises:
        ModelError: the configuration needs word vectors of characters, and the tables have none.
    """
    vocabulary = tables.vocabulary
    tags = tag_set(labels, scheme) if head is None else sorted(labels)
    tagger = build_network(architecture, config, vocabulary, tags, tables.widths, features, head)
    embeddings = tagger.encoder.embeddings
    matrices = (*tables.matrices, tables.char_words)
    if embeddings.char_word is not None and not tables.char_words.size:
        raise ModelError(
            "the recipe's network reads characters as words, and the model to start from has no vectors for them: set "
            "model.char_words to false, and leave model.use_words as it is there"
        )
    for table, matrix in zip(
        (embeddings.char, embeddings.bigram, embeddings.word, embeddings.char_word), matrices, strict=True
    ):
        if table is not None:
            table.load_vectors(torch.from_numpy(matrix))
    if embeddings.backoff is not None and fit_backoff:
        _fit_backoff(embeddings.backoff, tables)
    return tagger


@torch.no_grad()
def _fit_backoff(backoff: torch.nn.Linear, tables: InputTables) -> None:
    """Ridge regression of bigram vectors on those of their characters (cosine 0.78 for rare held-out bigrams)."""
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


def build_network(
    architecture: str,
    config: ModelConfig,
    vocabulary: Vocabulary,
    tags: list[str],
    widths: tuple[int, int, int],
    features: CharFeatures | None = None,
    head: PairGridConfig | None = None,
) -> Tagger:
    """The network with empty tables; with `head`, `tags` are the entity labels, and it is a GridTagger."""
    if (config.bert is None) != (features is None):
        raise ValueError(f"config.bert is {config.bert!r}, but features are {type(features).__name__}")
    if (config.components is None) != (vocabulary.components is None):
        raise ValueError(
            f"config.components is {config.components}, and the vocabulary has "
            f"{'no' if vocabulary.components is None else 'a'} table of components"
        )
    sizes = InputSizes(
        n_rows=vocabulary.n_rows,
        n_tuned=vocabulary.n_tuned,
        widths=widths,
        n_groups=vocabulary.n_groups,
        user_count=vocabulary.user_count,
        n_word_labels=len(vocabulary.word_labels),
        components=vocabulary.components,
    )
    encoder = find_architecture(architecture).make_encoder(config, sizes, features)
    if head is not None:
        make = GridTagger if head.scores == "spans" else RelationTagger
        made = make(encoder=encoder, labels=tags, config=head, output_dropout_prob=config.output_dropout_prob)
        return cast(Tagger, made)  # it has the methods that a Tagger has for training and prediction
    return Tagger(
        encoder=encoder,
        tags=tags,
        output_dropout_prob=config.output_dropout_prob,
        constrained=config.constrained,
        boundary_scores=config.boundary_scores,
    )
