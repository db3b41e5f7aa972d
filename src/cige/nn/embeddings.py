"""The input of a lattice model: the vectors of characters, character bigrams and words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from cige.data.batch import LatticeBatch
from cige.data.components import ComponentTable
from cige.data.vocabulary import N_SPECIAL, PAD, UNK
from cige.nn.dropout import Dropout


class SplitEmbedding(nn.Module):
    """A table whose first rows are trained and whose other rows are fixed.

    Rows that training never reads would have no gradient anyway. They are a float16 buffer, so that the optimiser does
    not process and store hundreds of thousands of rows. A folder for prediction has only special rows, followed by
    float16 rows or by int8 rows with one scale per row (`compact`).
    """

    def __init__(self, *, n_rows: int, n_tuned: int, width: int):
        super().__init__()
        self.width = width
        self.sparse_gradient = False  # True: the gradient of `tuned` lists only the rows that a batch read
        self.tuned = nn.Parameter(torch.zeros(n_tuned, width))
        self.register_buffer("fixed", torch.zeros(n_rows - n_tuned, width, dtype=torch.float16))
        self.register_buffer("scale", torch.zeros(0, 1, dtype=torch.float16))  # one per int8 row of `fixed`
        self.fixed: Tensor
        self.scale: Tensor

    @torch.no_grad()
    def load_vectors(self, vectors: Tensor) -> None:
        """Set the table to float[n_rows, width]."""
        self.tuned.copy_(vectors[: len(self.tuned)])
        self.fixed.copy_(vectors[len(self.tuned) :])

    def forward(self, rows: Tensor) -> Tensor:
        """int64[...] -> float[..., width]."""
        n_tuned = len(self.tuned)
        is_fixed = rows >= n_tuned
        tuned = rows.masked_fill(is_fixed, PAD)  # PAD has no gradient
        out = F.embedding(tuned, self.tuned, padding_idx=PAD, sparse=self.sparse_gradient)
        if len(self.fixed) and bool(is_fixed.any()):
            fixed = self._fixed_rows((rows - n_tuned).clamp(min=0)).to(out.dtype)
            out = torch.where(is_fixed[..., None], fixed, out)
        return out

    def _load_from_state_dict(self, state_dict: dict[str, Tensor], prefix: str, *args: Any) -> None:
        if len(state_dict.get(f"{prefix}scale", ())) == len(self.fixed):  # the rows are int8
            self.scale = self.scale.new_zeros(len(self.fixed), 1)
        super()._load_from_state_dict(state_dict, prefix, *args)

    def _fixed_rows(self, rows: Tensor) -> Tensor:
        vectors = self.fixed[rows].float()
        return vectors * self.scale[rows].float() if len(self.scale) else vectors

    @torch.no_grad()
    def compact(self, dtype: str) -> dict[str, Tensor]:
        """The state with only special rows trainable, and all others in "float16" or "int8" (one scale per row)."""
        rows = torch.cat([self.tuned[N_SPECIAL:], self._fixed_rows(torch.arange(len(self.fixed)))]).cpu()
        state = {"tuned": self.tuned[:N_SPECIAL].detach().cpu().clone()}
        if dtype == "float16":
            return state | {"fixed": rows.half(), "scale": torch.zeros(0, 1, dtype=torch.float16)}
        if dtype == "int8":
            scale = (rows.abs().amax(1, keepdim=True) / 127).clamp(min=1e-6).half()
            return state | {"fixed": (rows / scale.float()).round().clamp(-127, 127).to(torch.int8), "scale": scale}
        raise ValueError(f'table dtype {dtype!r}; expected "float16" or "int8"')


def no_word_vector(width: int) -> nn.Parameter:
    """A trained float[width] that is read in place of a word where there is none; at first of about unit length, like
    the vectors of words."""
    return nn.Parameter(torch.empty(width).uniform_(-1, 1) * (3 / width) ** 0.5)


@dataclass(frozen=True)
class InputSizes:
    """The sizes of a vocabulary, with which a network is created.

    Attributes:
        n_rows: numbers of rows of the tables: (characters, bigrams, words).
        n_tuned: numbers of rows, from the first, that training changes.
        widths: numbers per row.
        n_groups: number of gazetteers of the lexicon; user words are one more.
        user_count: the count of user words in models that weight words by how often they are used.
        n_word_labels: number K of labels of user words that the model knows.
        components: the components of characters; None if the model does not read them.
    """

    n_rows: tuple[int, int, int]
    n_tuned: tuple[int, int, int]
    widths: tuple[int, int, int]
    n_groups: int = 1
    user_count: int = 1
    n_word_labels: int = 0
    components: ComponentTable | None = None


class LatticeVectors(nn.Module):
    """The pre-trained vectors of a batch's characters, their bigrams and its words; every model reads these.

    With `bigram_backoff`, the vector of a bigram without a row is a linear function of the vectors of its two
    characters; a quarter of the bigrams of Weibo posts are too rare for vector files. `models.build` fits the function
    to the bigrams with vectors, and training continues from this initial value.

    Dropout is elementwise, as in the released FLAT.

    Args:
        use_bigrams, chars, words, char_words: which tables there are; that of `char_words` has characters as words of
            one character (the S set of a soft lexicon).
    """

    def __init__(
        self,
        sizes: InputSizes,
        *,
        dropout_prob: float,
        word_dropout_prob: float,
        use_bigrams: bool = True,
        bigram_backoff: bool = False,
        chars: bool = True,
        words: bool = True,
        char_words: bool = False,
    ):
        super().__init__()

        def table(k: int, width: int) -> SplitEmbedding:
            return SplitEmbedding(n_rows=sizes.n_rows[k], n_tuned=sizes.n_tuned[k], width=width)

        char_width, bigram_width, word_width = sizes.widths
        self.char = table(0, char_width) if chars else None
        self.bigram = table(1, bigram_width) if use_bigrams else None
        self.word = table(2, word_width) if words else None
        self.char_word = table(0, word_width) if char_words else None
        self.backoff = nn.Linear(2 * char_width, bigram_width) if use_bigrams and bigram_backoff else None
        self.dropout = Dropout(dropout_prob)
        self.word_dropout = Dropout(word_dropout_prob)
        self.char_width = char_width + (bigram_width if use_bigrams else 0)
        self.word_width = word_width

    def chars(self, batch: LatticeBatch) -> Tensor:
        """float[B, T, char_width]: the vector of each character, followed by that of its bigram."""
        assert self.char is not None
        vectors = self.char(batch.chars)
        if self.bigram is not None:
            vectors = torch.cat([vectors, self._bigrams(self.bigram, batch, vectors)], -1)
        return self.dropout(vectors)

    def words(self, batch: LatticeBatch) -> Tensor:
        """float[B, W, word_width]."""
        assert self.word is not None
        return self.word_dropout(self.word(batch.words))

    def char_words(self, batch: LatticeBatch) -> Tensor:
        """float[B, T, word_width]: the vector of each character as a word."""
        assert self.char_word is not None
        return self.word_dropout(self.char_word(batch.chars))

    def _bigrams(self, table: SplitEmbedding, batch: LatticeBatch, char_vectors: Tensor) -> Tensor:
        """float[B, T, bigram width]; with `bigram_backoff`, those without a row are computed from their characters."""
        vectors = table(batch.bigrams)
        if self.backoff is None:
            return vectors
        following = F.pad(char_vectors[:, 1:], (0, 0, 0, 1))  # zero after the last character
        composed = self.backoff(torch.cat([char_vectors, following], -1))
        return torch.where((batch.bigrams == UNK)[..., None], composed, vectors)
