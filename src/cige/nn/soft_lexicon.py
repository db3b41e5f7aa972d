"""Soft lexicon: one vector for the words that begin at a character, contain it, end at it, or consist of it.

Ma, Peng, Zhang, Wei, Huang: "Simplify the Usage of Lexicon in Chinese NER", ACL 2020, §3.2; DCSAN Eq. 3-6.

    花  开  公  司      words 花开, 开公司, 公司
    B {花开}  {开公司}  {公司}    {}
    M {}      {}        {开公司}  {}
    E {}      {花开}    {}        {开公司, 公司}
    S {花}    {开}      {公}      {司}            the character as a word

The vector of a set is the weighted sum of the vectors of its words, and those of the four sets are concatenated. The
weight of a word is its count z in the training text (see vocabulary.count_words), or `user_count` for user words. The
character in S, and the special word NONE of an empty set, have a count of 1. Weights are divided by Z, their sum over
the four sets of a character. There are two forms:

    "smoothed"   (z(w) + b) / Z, DCSAN Eq. 4-5
    "counts"     4 z(w) / Z; if all words of a set have z = 0, each has z = 1. Ma et al., both released codes
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from cige.data.batch import LatticeBatch
from cige.data.vocabulary import N_SPECIAL, USER
from cige.nn.embeddings import LatticeVectors

SETS = ("B", "M", "E", "S")
Weighting = Literal["smoothed", "counts"]


@dataclass(frozen=True)
class SetWord:
    """A member of one of a character's sets.

    Attributes:
        word: its row of `Lattice.words`, or None for the character itself in S.
        weight: its share, 0..1, of the total weight of all four sets.
    """

    word: int | None
    weight: float


@dataclass(frozen=True)
class WordSets:
    """The four sets of each character. Weights sum to 1 over all members of a character's sets.

    Attributes:
        members: bool[B, T, 4, W], which words are in each set.
        words: float[B, T, 4, W], the weights of words; with "counts", 0 for an unused word in a set with used words.
        own: float[B, T], the weight of the character in S.
        none: float[B, T, 3], the weight of NONE in B, M and E; 0 if the set has words (S is never empty).
    """

    members: Tensor
    words: Tensor
    own: Tensor
    none: Tensor

    @property
    def shares(self) -> Tensor:
        """float[B, T, W]: the total weight of each word in the sets of a character."""
        return self.words.sum(2)

    def listed(self, sentence: int, n_chars: int) -> list[dict[str, list[SetWord]]]:
        """For each character of a sentence: set name -> members, the largest weight first; an empty list means NONE."""
        weights = self.words[sentence, :n_chars].detach().cpu()
        sets: list[dict[str, list[SetWord]]] = [{name: [] for name in SETS} for _ in range(n_chars)]
        for place, k, word in self.members[sentence, :n_chars].nonzero().tolist():
            sets[place][SETS[k]].append(SetWord(word, float(weights[place, k, word])))
        for place, weight in enumerate(self.own[sentence, :n_chars].tolist()):
            sets[place]["S"].append(SetWord(None, weight))
        for of_char in sets:
            for members in of_char.values():
                members.sort(key=lambda member: -member.weight)
        return sets


class SoftLexicon(nn.Module):
    """Computes the concatenated vectors of the four sets of each character of a lattice batch.

    Args:
        weighting, smoothing: the form of the weights, and b of the form "smoothed".
        tuned: False stops the gradient of all word vectors except special ones (released codes).
    """

    def __init__(
        self, *, word_width: int, user_count: int, weighting: Weighting, smoothing: float = 1.0, tuned: bool = True
    ):
        super().__init__()
        self.user_count, self.weighting, self.smoothing, self.tuned = user_count, weighting, smoothing, tuned
        self.width = len(SETS) * word_width
        bound = (3 / word_width) ** 0.5  # vectors of about unit length, like those of words
        self.none = nn.Parameter(torch.empty(word_width).uniform_(-bound, bound))

    def forward(self, batch: LatticeBatch, embeddings: LatticeVectors) -> tuple[Tensor, WordSets]:
        """float[B, T, 4E], and the sets; `embeddings` must have char_words."""
        words = self._cut(embeddings.words(batch), batch.words)
        chars = self._cut(embeddings.char_words(batch), batch.chars)
        sets = self.sets(batch)
        n_chars = chars.shape[1]  # T
        pooled = (sets.words.to(words).flatten(1, 2) @ words).unflatten(1, (n_chars, len(SETS)))  # [B, T, 4, E]
        none, char = sets.none.to(chars)[..., None] * self.none, sets.own.to(chars)[..., None] * chars
        others = torch.cat([none, char[:, :, None]], 2)
        scale = len(SETS) if self.weighting == "counts" else 1
        return ((pooled + others) * scale).flatten(2), sets

    def sets(self, batch: LatticeBatch) -> WordSets:
        """The sets of each character."""
        return word_sets(batch, user_count=self.user_count, weighting=self.weighting, smoothing=self.smoothing)

    def _cut(self, vectors: Tensor, rows: Tensor) -> Tensor:
        if self.tuned:
            return vectors
        return torch.where((rows < N_SPECIAL)[..., None], vectors, vectors.detach())


def word_sets(batch: LatticeBatch, *, user_count: int, weighting: Weighting, smoothing: float = 1.0) -> WordSets:
    """The sets of every character of a batch; those of padding contain only the character and NONE."""
    counts = torch.where(batch.words == USER, user_count, batch.word_counts)[:, None, None].float()  # [B, 1, 1, W]
    members = set_members(batch)  # [B, T, 4, W]
    if weighting == "smoothed":
        words, once = members * (counts + smoothing), 1 + smoothing
    else:
        words, once = members * counts, 1.0
        words = words + members * (words.sum(3, keepdim=True) == 0)
    none = once * ~members[:, :, :3].any(3)  # [B, T, 3]
    char = torch.full(batch.chars.shape, once, device=words.device)
    total = words.sum((2, 3)) + none.sum(2) + char  # Z, [B, T]
    return WordSets(members, words / total[:, :, None, None], char / total, none / total[:, :, None])


def set_members(batch: LatticeBatch) -> Tensor:
    """bool[B, T, 4, W]: which words are in each set of each character."""
    place = torch.arange(batch.chars.shape[1], device=batch.chars.device)[:, None]  # [T, 1]
    first, last = batch.word_starts[:, None], batch.word_ends[:, None] - 1  # [B, 1, W]
    is_word = batch.word_mask[:, None]
    begins, ends = is_word & (place == first), is_word & (place == last)
    inside = is_word & (first < place) & (place < last)
    return torch.stack([begins & ~ends, inside, ends & ~begins, begins & ends], 2)
