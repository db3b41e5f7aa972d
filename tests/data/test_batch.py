"""Padding."""

from __future__ import annotations

import numpy as np
import torch

from cige.data.batch import collate
from cige.data.vocabulary import PAD, EncodedLattice


def encoded(n_chars: int, n_words: int = 0, *, first: int = 3) -> EncodedLattice:
    return EncodedLattice(
        chars=np.arange(first, first + n_chars),
        bigrams=np.arange(first + 100, first + 100 + n_chars),
        words=np.arange(first + 200, first + 200 + n_words),
        starts=np.arange(n_words),
        ends=np.arange(n_words) + 2,
        counts=np.arange(n_words) + 1,
        groups=np.ones(n_words, int),
        text="x" * n_chars,
    )


def test_collate_pads_to_the_longest():
    batch = collate(
        [encoded(3, 1), encoded(0), encoded(5, 2)], [np.array([1, 2, 3]), np.zeros(0, int), np.ones(5, int)]
    )
    assert batch.n_chars.tolist() == [3, 0, 5] and batch.n_words.tolist() == [1, 0, 2]
    assert batch.chars.tolist() == [[3, 4, 5, 0, 0], [0] * 5, [3, 4, 5, 6, 7]]
    assert batch.bigrams.tolist() == [[103, 104, 105, 0, 0], [0] * 5, [103, 104, 105, 106, 107]]
    assert batch.words.tolist() == [[203, 0], [0, 0], [203, 204]]
    assert batch.word_starts.tolist() == [[0, 0], [0, 0], [0, 1]] and batch.word_ends.tolist() == [
        [2, 0],
        [0, 0],
        [2, 3],
    ]
    assert batch.tags.tolist() == [[1, 2, 3, 0, 0], [0] * 5, [1] * 5]
    assert batch.texts == ("xxx", "", "xxxxx") and len(batch) == 3
    assert batch.char_mask.tolist() == [[True] * 3 + [False] * 2, [False] * 5, [True] * 5]
    assert batch.word_mask.tolist() == [[True, False], [False, False], [True, True]]
    assert all(x.dtype == torch.int64 for x in (batch.chars, batch.bigrams, batch.words, batch.tags, batch.n_chars))


def test_collate_of_sentences_without_words_or_characters_keeps_one_column():
    batch = collate([encoded(0), encoded(0)])
    for part in (batch.chars, batch.bigrams, batch.words, batch.word_starts, batch.word_ends):
        assert part.tolist() == [[PAD], [PAD]]
    assert not batch.char_mask.any() and not batch.word_mask.any() and batch.tags is None
    assert collate([encoded(4)]).words.shape == (1, 1)


def test_collate_of_no_sentence():
    batch = collate([], [])
    assert len(batch) == 0 and batch.chars.shape == (0, 1) and batch.tags.shape == (0, 1)


def test_moving_a_batch_moves_all_tensors():
    batch = collate([encoded(2, 1)], [np.array([1, 2])]).to("meta")
    assert {x.device.type for x in vars(batch).values() if isinstance(x, torch.Tensor)} == {"meta"}
    assert batch.texts == ("xx",)
    assert collate([encoded(2, 1)]).to("meta").tags is None
