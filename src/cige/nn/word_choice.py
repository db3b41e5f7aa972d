"""Choose at most M words for each character among those that contain it, as a lexicon adapter reads them."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from cige.data.batch import LatticeBatch
from cige.data.vocabulary import USER

WordChoice = Literal["longest", "left"]


def choose_words(batch: LatticeBatch, *, max_words: int, choice: WordChoice) -> Tensor:
    """bool[B, T, W]: whether character t reads word w, of which no character reads more than `max_words`.

    Args:
        choice: "longest" chooses for each character on its own: the user's words, then longer words, then earlier ones.
            "left" is the rule of the released LEBERT: from left to right and from short to long, each word is read by
            all of its characters, or by none if its first character has no room left; a word of one character is read
            only where there is no other.
    """
    place = torch.arange(batch.chars.shape[1], device=batch.chars.device)[:, None]  # [T, 1]
    inside = (batch.word_starts[:, None] <= place) & (place < batch.word_ends[:, None])  # [B, T, W]
    inside = inside & batch.word_mask[:, None]
    return (_longest if choice == "longest" else _from_left)(batch, inside, max_words)


def _longest(batch: LatticeBatch, inside: Tensor, max_words: int) -> Tensor:
    limit = batch.chars.shape[1] + 1  # larger than any place or length
    shortness = limit - (batch.word_ends - batch.word_starts)
    order = (((batch.words != USER) * limit + shortness) * limit + batch.word_starts).argsort(
        dim=1, stable=True
    )  # [B, W]
    order = order[:, None].expand_as(inside)
    ranked = inside.gather(2, order)
    chosen = ranked & (ranked.cumsum(2) <= max_words)
    return torch.zeros_like(inside).scatter(2, order, chosen)


def _from_left(batch: LatticeBatch, inside: Tensor, max_words: int) -> Tensor:
    starts, ends = batch.word_starts, batch.word_ends
    is_long = ends - starts > 1
    n_read = torch.zeros_like(batch.chars)  # [B, T], words that each character reads so far
    taken = torch.zeros_like(batch.word_mask)
    order = (starts * (batch.chars.shape[1] + 1) + ends).argsort(dim=1, stable=True)  # simulated user words come last
    for word in order.T[:, :, None]:  # [B, 1], one word of each sentence
        has_room = n_read.gather(1, starts.gather(1, word)) < max_words
        fits = has_room & (is_long & batch.word_mask).gather(1, word)  # [B, 1]
        taken = taken.scatter(1, word, fits)
        n_read = n_read + (inside.gather(2, word[:, None].expand(-1, inside.shape[1], -1))[:, :, 0] & fits)
    alone = inside & ~is_long[:, None] & (n_read == 0)[:, :, None]
    alone = alone & (alone.cumsum(2) <= max_words)  # a user may list a character that the lexicon has too
    return (inside & taken[:, None]) | alone
