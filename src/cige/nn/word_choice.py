"""Choose at most M words for each character among those that contain it, as a lexicon adapter reads them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

WordChoice = Literal["longest", "left"]


@dataclass(frozen=True)
class PlacedWords:
    """The words over B sentences of at most T characters, in any order, padded to W.

    Attributes:
        starts, ends: int64[B, W], half-open [start, end) in characters.
        is_word: bool[B, W], False for padding.
        is_user: bool[B, W], the user's words.
        n_chars: T.
    """

    starts: Tensor
    ends: Tensor
    is_word: Tensor
    is_user: Tensor
    n_chars: int

    def inside(self) -> Tensor:
        """bool[B, T, W]: whether word w contains character t."""
        place = torch.arange(self.n_chars, device=self.starts.device)[:, None]  # [T, 1]
        return (self.starts[:, None] <= place) & (place < self.ends[:, None]) & self.is_word[:, None]


def choose_words(words: PlacedWords, *, max_words: int, choice: WordChoice) -> Tensor:
    """bool[B, T, W]: whether character t reads word w, of which no character reads more than `max_words`.

    Args:
        choice: "longest" chooses for each character on its own: the user's words, then longer words, then earlier ones.
            "left" is the rule of the released LEBERT: from left to right and from short to long, each word is read by
            all of its characters, or by none if its first character has no room left; a word of one character is read
            only where there is no other.
    """
    return (_longest if choice == "longest" else _from_left)(words, words.inside(), max_words)


def _longest(words: PlacedWords, inside: Tensor, max_words: int) -> Tensor:
    limit = words.n_chars + 1  # larger than any place or length
    shortness = limit - (words.ends - words.starts)
    key = (~words.is_user * limit + shortness) * limit + words.starts
    order = key.argsort(dim=1, stable=True)[:, None].expand_as(inside)
    ranked = inside.gather(2, order)
    chosen = ranked & (ranked.cumsum(2) <= max_words)
    return torch.zeros_like(inside).scatter(2, order, chosen)


def _from_left(words: PlacedWords, inside: Tensor, max_words: int) -> Tensor:
    is_long = words.ends - words.starts > 1
    n_read = inside.new_zeros(inside.shape[:2], dtype=torch.long)  # [B, T], words that each character reads so far
    taken = torch.zeros_like(words.is_word)
    order = (words.starts * (words.n_chars + 1) + words.ends).argsort(dim=1, stable=True)
    for word in order.T[:, :, None]:  # [B, 1], one word of each sentence
        has_room = n_read.gather(1, words.starts.gather(1, word)) < max_words
        fits = has_room & (is_long & words.is_word).gather(1, word)  # [B, 1]
        taken = taken.scatter(1, word, fits)
        n_read = n_read + (inside.gather(2, word[:, None].expand(-1, inside.shape[1], -1))[:, :, 0] & fits)
    alone = inside & ~is_long[:, None] & (n_read == 0)[:, :, None]
    alone = alone & (alone.cumsum(2) <= max_words)  # a user may list a character that the lexicon has too
    return (inside & taken[:, None]) | alone
