"""Start a new tagger from a trained one: its lexicon and vocabulary, its vectors and its encoder.

What a tagger has learnt of names carries over to other labels and other text, and whoever starts from a model needs no
vector files. Rows that the new training text reads come first, as `models.build` has them, so that they are trained.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch

from cige.data.vocabulary import N_SPECIAL, CodeTable, rows_of_words, seen_first
from cige.errors import ModelError
from cige.lattice.lattice import Lattice
from cige.models.build import InputTables, input_embeddings
from cige.models.model import LatticeModel
from cige.models.tagger import Tagger
from cige.nn.embeddings import SplitEmbedding


def tables_of(source: LatticeModel, lattices: Sequence[Lattice]) -> InputTables:
    """The vocabulary and vectors of a trained model, rows of the training `lattices` first.

    Special rows keep what they learnt: what an unknown word is like, and how far to trust a user's words.
    """
    vocabulary, own = source.vocabulary, input_embeddings(source.tagger)
    seen_chars, seen_bigrams, seen_words = seen_first(lattices, len(source.lexicon))
    chars, char_rows, n_chars = _seen_first(vocabulary.chars, seen_chars)
    bigrams, bigram_rows, n_bigrams = _seen_first(vocabulary.bigrams, seen_bigrams)
    word_rows, old_word_rows, n_words = _words_seen_first(vocabulary.word_rows, seen_words)
    return InputTables(
        vocabulary=replace(
            vocabulary,
            chars=chars,
            bigrams=bigrams,
            word_rows=word_rows,
            n_tuned=(n_chars, n_bigrams, n_words),
            n_rows=(len(char_rows), len(bigram_rows), len(old_word_rows)),
        ),
        matrices=(
            _vectors(own.char, char_rows),
            _vectors(own.bigram, bigram_rows),
            _vectors(own.word, old_word_rows),
        ),
        char_words=_vectors(own.char_word, char_rows),
    )


def take_over(tagger: Tagger, source: LatticeModel) -> None:
    """Copy the weights of a trained tagger, but for its tables, into a new one; those of its CRF if tags are equal.

    Raises:
        ModelError: the two networks have different parts or shapes.
    """
    theirs, own = _without_tables(source.tagger), _without_tables(tagger)
    if tagger.tags != source.tags:
        theirs = {k: v for k, v in theirs.items() if k.startswith("encoder.")}
        own = {k: v for k, v in own.items() if k.startswith("encoder.")}
    for name in sorted(theirs.keys() | own.keys()):
        there, here = (list(state[name].shape) if name in state else "none" for state in (theirs, own))
        if there != here:
            raise ModelError(
                f"the weight {name} is {there} in the model to start from and {here} in the recipe's network; "
                "settings that decide shapes must be that model's: leave them out of the recipe"
            )
    tagger.load_state_dict(theirs, strict=False)


def _seen_first(table: CodeTable, seen: np.ndarray) -> tuple[CodeTable, np.ndarray, int]:
    """The table with rows of the codes `seen` first, the old row of each new one, and how many are special or seen."""
    is_seen = np.isin(table.codes, seen)
    order = np.lexsort((table.rows, ~is_seen))  # else in the order that they had
    rows = np.concatenate([np.arange(N_SPECIAL), table.rows[order]])
    return CodeTable.from_ordered(table.codes[order]), rows, N_SPECIAL + int(is_seen.sum())


def _words_seen_first(word_rows: np.ndarray, seen: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """The same for the words of a lexicon, of which some have no row of their own."""
    words = np.flatnonzero(word_rows >= N_SPECIAL)
    is_seen = np.isin(words, seen)
    order = words[np.lexsort((word_rows[words], ~is_seen))]
    rows = np.concatenate([np.arange(N_SPECIAL), word_rows[order]])
    return rows_of_words(order, len(word_rows)), rows, N_SPECIAL + int(is_seen.sum())


@torch.no_grad()
def _vectors(table: SplitEmbedding | None, rows: np.ndarray) -> np.ndarray:
    """float32[n, width] of some rows of a table; width 0 for a table that the model does not have."""
    if table is None:
        return np.zeros((len(rows), 0), np.float32)
    return table(torch.from_numpy(rows.astype(np.int64))).float().numpy()


def _without_tables(tagger: Tagger) -> dict[str, torch.Tensor]:
    tables = tuple(f"{name}." for name, module in tagger.named_modules() if isinstance(module, SplitEmbedding))
    return {k: v for k, v in tagger.state_dict().items() if not k.startswith(tables)}
