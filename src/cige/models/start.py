"""Start a new tagger from a trained one: its lexicon and vocabulary, its vectors and its encoder.

A trained tagger is a good initial model for other labels and other text, and no vector files are needed. Rows that
occur in the new training text come first, as in `models.build`, so that they are trained.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch

from cige.data.vocabulary import N_SPECIAL, CodeTable, rows_of_words, seen_first
from cige.errors import ModelError
from cige.lattice.lattice import Lattice
from cige.models.build import InputTables
from cige.models.model import LatticeModel
from cige.models.tagger import Tagger
from cige.nn.embeddings import SplitEmbedding

_LABELS = "encoder.word_labels.weight"


def tables_of(source: LatticeModel, lattices: Sequence[Lattice]) -> InputTables:
    """The vocabulary and vectors of a trained model, with the rows of the training `lattices` first.

    Special rows, such as those of unknown words and user words, keep their trained values.
    """
    vocabulary, embeddings = source.vocabulary, source.tagger.encoder.embeddings
    seen_chars, seen_bigrams, seen_words = seen_first(lattices, len(source.lexicon))
    chars, char_rows, n_chars = _seen_first(vocabulary.chars.codes, vocabulary.chars.rows, seen_chars)
    bigrams, bigram_rows, n_bigrams = _seen_first(vocabulary.bigrams.codes, vocabulary.bigrams.rows, seen_bigrams)
    with_row = np.flatnonzero(vocabulary.word_rows >= N_SPECIAL)
    words, word_rows, n_words = _seen_first(with_row, vocabulary.word_rows[with_row], seen_words)
    return InputTables(
        vocabulary=replace(
            vocabulary,
            chars=CodeTable.from_ordered(chars),
            bigrams=CodeTable.from_ordered(bigrams),
            word_rows=rows_of_words(words, len(vocabulary.word_rows)),
            n_tuned=(n_chars, n_bigrams, n_words),
            n_rows=(len(char_rows), len(bigram_rows), len(word_rows)),
        ),
        matrices=(
            _vectors(embeddings.char, char_rows),
            _vectors(embeddings.bigram, bigram_rows),
            _vectors(embeddings.word, word_rows),
        ),
        char_words=_vectors(embeddings.char_word, char_rows),
    )


def copy_weights(tagger: Tagger, source: LatticeModel, *, word_labels: Sequence[str] = ()) -> None:
    """Copy the weights of a trained tagger, except its tables, into a new one.

    If the two share labels, the scores of the tags of these labels are copied too, so that a model that is trained on
    an additional type still finds the others.

    Args:
        word_labels: the labels of user words that the new tagger knows. The vectors of labels that `source` knows are
            copied, and the others are zero at first (all of them if `source` reads no labels).

    Raises:
        ModelError: the two networks have different parts or shapes.
    """
    theirs, ours = without_tables(source.tagger), without_tables(tagger)
    if _LABELS in ours:
        theirs[_LABELS] = _copied_label_vectors(ours[_LABELS], theirs.get(_LABELS), source, word_labels)
    if tagger.tags != source.tags:
        theirs = {k: v for k, v in theirs.items() if k.startswith("encoder.")}
        ours = {k: v for k, v in ours.items() if k.startswith("encoder.")}
        _copy_tag_scores(tagger, source.tagger)
    for name in sorted(theirs.keys() | ours.keys()):
        there, here = (list(state[name].shape) if name in state else "none" for state in (theirs, ours))
        if there != here:
            raise ModelError(
                f"the weight {name} is {there} in the model to start from and {here} in the recipe's network; "
                "settings that decide shapes must be that model's: leave them out of the recipe"
            )
    tagger.load_state_dict(theirs, strict=False)


@torch.no_grad()
def _copy_tag_scores(tagger: Tagger, source: Tagger) -> None:
    """Copy the output rows and the CRF's scores of the tags that both taggers have, if there is one besides "O"."""
    shared = [tag for tag in tagger.tags if tag in source.tags]
    if len(shared) < 2 or tagger.output.weight.shape[1] != source.output.weight.shape[1]:
        return
    here = torch.tensor([tagger.tags.index(tag) for tag in shared])
    there = torch.tensor([source.tags.index(tag) for tag in shared])
    for ours, theirs in (
        (tagger.output.weight, source.output.weight),
        (tagger.output.bias, source.output.bias),
        (tagger.crf.start, source.crf.start),
        (tagger.crf.end, source.crf.end),
    ):
        ours[here] = theirs[there]
    tagger.crf.transitions[here[:, None], here] = source.crf.transitions[there[:, None], there]


def _copied_label_vectors(
    ours: torch.Tensor, theirs: torch.Tensor | None, source: LatticeModel, word_labels: Sequence[str]
) -> torch.Tensor:
    """float[K + 2, D] of the new tagger: the vectors of no label, of its K labels, and of unknown labels."""
    if theirs is not None and theirs.shape[1] != ours.shape[1]:
        return theirs  # which is then refused because of its shape
    taken = torch.zeros_like(ours)
    if theirs is not None:
        rows = {label: k for k, label in enumerate(source.vocabulary.word_labels, start=1)}
        taken[-1] = theirs[-1]
        for k, label in enumerate(word_labels, start=1):
            if label in rows:
                taken[k] = theirs[rows[label]]
    return taken


def _seen_first(numbers: np.ndarray, rows: np.ndarray, seen: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """The numbers (codes, or words) that have these rows, those in `seen` first; the old row of each new row, and how
    many rows are special or seen."""
    is_seen = np.isin(numbers, seen)
    order = np.lexsort((rows, ~is_seen))  # otherwise in their old order
    return numbers[order], np.concatenate([np.arange(N_SPECIAL), rows[order]]), N_SPECIAL + int(is_seen.sum())


@torch.no_grad()
def _vectors(table: SplitEmbedding | None, rows: np.ndarray) -> np.ndarray:
    """float32[n, width]: some rows of a table; the width is 0 if the model does not have this table."""
    if table is None:
        return np.zeros((len(rows), 0), np.float32)
    return table(torch.from_numpy(rows.astype(np.int64))).float().numpy()


def without_tables(tagger: Tagger) -> dict[str, torch.Tensor]:
    """The weights of a tagger, except those of its tables."""
    tables = tuple(f"{name}." for name, module in tagger.named_modules() if isinstance(module, SplitEmbedding))
    return {k: v for k, v in tagger.state_dict().items() if not k.startswith(tables)}
