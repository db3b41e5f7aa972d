"""Input of a lattice model: character, bigram and word vectors, each projected to the model's width."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from cige.data.batch import LatticeBatch
from cige.data.vocabulary import N_SPECIAL, PAD, UNK
from cige.nn.dropout import Dropout


class SplitEmbedding(nn.Module):
    """A table whose first rows are trained and whose other rows stay as given.

    Rows that training never reads would get no gradient anyway; keeping them as a float16 buffer spares the
    optimiser (and its memory) hundreds of thousands of rows and changes nothing else. A folder saved for prediction
    holds int8 rows with a scale each, or float16 rows, behind the special rows alone (`compact`).
    """

    def __init__(self, *, n_rows: int, n_tuned: int, width: int):
        super().__init__()
        self.width = width
        self.sparse_gradient = False  # True: the gradient of `tuned` lists only the rows that a batch read
        self.tuned = nn.Parameter(torch.zeros(n_tuned, width))
        self.register_buffer("fixed", torch.zeros(n_rows - n_tuned, width, dtype=torch.float16))
        self.register_buffer("scale", torch.zeros(0, 1, dtype=torch.float16))  # a row each when `fixed` is int8
        self.fixed: Tensor
        self.scale: Tensor

    @torch.no_grad()
    def load_vectors(self, vectors: Tensor) -> None:
        """Copy float[n_rows, width] in."""
        self.tuned.copy_(vectors[: len(self.tuned)])
        self.fixed.copy_(vectors[len(self.tuned) :])

    def forward(self, rows: Tensor) -> Tensor:
        """int64[...] -> float[..., width]."""
        n_tuned = len(self.tuned)
        is_fixed = rows >= n_tuned
        own = rows.masked_fill(is_fixed, PAD)  # PAD takes no gradient
        out = F.embedding(own, self.tuned, padding_idx=PAD, sparse=self.sparse_gradient)
        if len(self.fixed) and bool(is_fixed.any()):
            fixed = self._fixed_rows((rows - n_tuned).clamp(min=0)).to(out.dtype)
            out = torch.where(is_fixed[..., None], fixed, out)
        return out

    def _load_from_state_dict(self, state_dict: dict[str, Tensor], prefix: str, *args: Any) -> None:
        if len(state_dict.get(f"{prefix}scale", ())) == len(self.fixed):  # rows in int8
            self.scale = self.scale.new_zeros(len(self.fixed), 1)
        super()._load_from_state_dict(state_dict, prefix, *args)

    def _fixed_rows(self, rows: Tensor) -> Tensor:
        vectors = self.fixed[rows].float()
        return vectors * self.scale[rows].float() if len(self.scale) else vectors

    @torch.no_grad()
    def compact(self, dtype: str) -> dict[str, Tensor]:
        """State with only the special rows trainable and all others in "float16" or "int8" (scaled row by row)."""
        rows = torch.cat([self.tuned[N_SPECIAL:], self._fixed_rows(torch.arange(len(self.fixed)))]).cpu()
        state = {"tuned": self.tuned[:N_SPECIAL].detach().cpu().clone()}
        if dtype == "float16":
            return state | {"fixed": rows.half(), "scale": torch.zeros(0, 1, dtype=torch.float16)}
        if dtype == "int8":
            scale = (rows.abs().amax(1, keepdim=True) / 127).clamp(min=1e-6).half()
            return state | {"fixed": (rows / scale.float()).round().clamp(-127, 127).to(torch.int8), "scale": scale}
        raise ValueError(f'table dtype {dtype!r}; expected "float16" or "int8"')


class LatticeEmbeddings(nn.Module):
    """Characters from [char; bigram; extra features], words from their own vectors; separate projections with bias.

    With `bigram_backoff` a bigram that has no vector gets a linear function of its two characters' vectors: a quarter
    of the bigrams of a Weibo post are rarer than any vector file reaches. `models.build` fits the function to the
    bigrams that do have vectors; training goes on from there.

    Dropout is elementwise on the vectors, before the projections (what the released FLAT does: specs §0.1.16).
    """

    def __init__(
        self,
        *,
        n_rows: tuple[int, int, int],
        n_tuned: tuple[int, int, int],
        widths: tuple[int, int, int],
        out_width: int,
        dropout_prob: float,
        word_dropout_prob: float,
        extra_width: int = 0,
        bigram_backoff: bool = False,
    ):
        super().__init__()
        self.char, self.bigram, self.word = (
            SplitEmbedding(n_rows=r, n_tuned=t, width=w) for r, t, w in zip(n_rows, n_tuned, widths, strict=True)
        )
        self.char_projection = nn.Linear(widths[0] + widths[1] + extra_width, out_width)
        self.word_projection = nn.Linear(widths[2], out_width)
        self.backoff = nn.Linear(2 * widths[0], widths[1]) if bigram_backoff else None
        self.dropout = Dropout(dropout_prob)
        self.word_dropout = Dropout(word_dropout_prob)
        for projection in (self.char_projection, self.word_projection):
            nn.init.xavier_uniform_(projection.weight)

    def forward(self, batch: LatticeBatch, extra: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Characters float[B, T, D] and words float[B, W, D]; `extra` is float[B, T, extra_width]."""
        char_vectors = self.char(batch.chars)
        bigram_vectors = self._bigrams(batch, char_vectors)
        parts = [self.dropout(torch.cat([char_vectors, bigram_vectors], -1))]
        if extra is not None:
            parts.append(extra)
        chars = self.char_projection(torch.cat(parts, -1))
        words = self.word_projection(self.word_dropout(self.word(batch.words)))
        return chars, words

    def _bigrams(self, batch: LatticeBatch, char_vectors: Tensor) -> Tensor:
        """float[B, T, bigram width]; one without a row is made from its two characters, if so chosen."""
        vectors = self.bigram(batch.bigrams)
        if self.backoff is None:
            return vectors
        following = F.pad(char_vectors[:, 1:], (0, 0, 0, 1))  # zero after the last character
        composed = self.backoff(torch.cat([char_vectors, following], -1))
        return torch.where((batch.bigrams == UNK)[..., None], composed, vectors)
