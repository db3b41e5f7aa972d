"""The lexicon adapter of LEBERT: adds to the hidden vector of a character the words that it attends to."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from cige.nn.dropout import Dropout
from cige.nn.embeddings import no_word_vector
from cige.nn.masked_attention import masked_attention

Residual = Literal["normalised", "plain"]
EPS, INITIAL_SD = 1e-12, 0.02  # as in BERT


class LexiconAdapter(nn.Module):
    """v = W2 tanh(W1 e + b1) + b2 for each word,  a = softmax(h^T Wa v) over the words of a character,  h + sum of a v.

    Args:
        width, word_width: D of the hidden vectors h, and E of the word vectors e.
        dropout_prob: dropout on v, and on the sum before it is normalised.
        residual: "normalised" normalises the sum (the paper). "plain" (ours) does not, and W2 and b2 are 0 at first, so
            that training starts with the hidden vectors as they are.
        no_word: whether a vector with no word reads a trained word of its own (the released code, where it is that of
            padding) rather than nothing.
    """

    def __init__(self, *, width: int, word_width: int, dropout_prob: float, residual: Residual, no_word: bool):
        super().__init__()
        self.word_in, self.word_out = nn.Linear(word_width, width), nn.Linear(width, width)  # W1, W2
        self.bilinear = nn.Linear(width, width, bias=False)  # h^T Wa
        for linear in (self.word_in, self.word_out, self.bilinear):
            nn.init.normal_(linear.weight, std=INITIAL_SD)
            if linear.bias is not None:
                nn.init.zeros_(linear.bias)
        self.norm = nn.LayerNorm(width, eps=EPS) if residual == "normalised" else None
        if self.norm is None:
            nn.init.zeros_(self.word_out.weight)
        self.no_word = no_word_vector(word_width) if no_word else None
        self.dropout = Dropout(dropout_prob)

    def values(self, words: Tensor) -> Tensor:
        """float[B, K, D], v of the words float[B, W, E]; K is W, or W + 1 with "no word" last."""
        if self.no_word is not None:
            words = torch.cat([words, self.no_word.to(words).expand(len(words), 1, -1)], 1)
        out: Tensor = self.dropout(self.word_out(torch.tanh(self.word_in(words))))
        return out

    def forward(self, hidden: Tensor, values: Tensor, chosen: Tensor) -> tuple[Tensor, Tensor]:
        """Add words to `hidden` float[R, L, D]: float[R, L, D], and the probabilities float[R, L, W] (no gradient).

        Args:
            values: float[R, K, D], as `values` returns them.
            chosen: bool[R, L, W], the words that each hidden vector reads.
        """
        n_words = chosen.shape[2]
        if self.no_word is not None:
            chosen = torch.cat([chosen, ~chosen.any(2, keepdim=True)], 2)
        query = self.bilinear(hidden)[:, None]  # one head
        mixed, probabilities = masked_attention(query, values[:, None], values[:, None], chosen)
        probabilities = probabilities[:, 0, :, :n_words]
        if self.norm is None:
            return hidden + self.dropout(mixed).to(hidden.dtype), probabilities
        return self.norm(self.dropout(hidden + mixed)).to(hidden.dtype), probabilities
