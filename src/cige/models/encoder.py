"""LatticeEncoder: the base class of all encoders, which convert a batch of lattices to character features."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import torch
from torch import Tensor, nn

from cige.data.batch import LatticeBatch
from cige.models.config import ModelConfig
from cige.nn.char_features import CharFeatures
from cige.nn.components import CharComponents
from cige.nn.embeddings import InputSizes, LatticeVectors

C = TypeVar("C", bound=ModelConfig)


class LatticeEncoder(nn.Module, Generic[C]):
    """A subclass sets `out_width` and computes `encode` or `forward`; if it reads words, it also computes `read_words`.

    Attributes:
        embeddings: the vectors of characters, bigrams and words. Its tables are empty at first; the arguments `chars`,
            `words` and `char_words` say which of them there are (see LatticeVectors).
        components: computes vectors of the components of characters, or None.
        features: a BERT whose vectors are concatenated with those of characters, or None.
        out_width: width D of the character features.
    """

    out_width: int

    def __init__(
        self,
        config: C,
        sizes: InputSizes,
        features: CharFeatures | None,
        *,
        chars: bool = True,
        words: bool = True,
        char_words: bool = False,
    ):
        super().__init__()
        self.config = config
        self.embeddings = LatticeVectors(
            sizes,
            dropout_prob=config.embed_dropout_prob,
            word_dropout_prob=config.word_dropout_prob,
            use_bigrams=config.use_bigrams,
            bigram_backoff=config.bigram_backoff,
            chars=chars,
            words=words,
            char_words=char_words,
        )
        self.components: CharComponents | None = None
        if config.components is not None:
            assert sizes.components is not None  # build_network checks it
            read = config.components
            self.components = CharComponents(
                sizes.components,
                embedding_width=read.embedding_width,
                width=read.width,
                dropout_prob=read.dropout_prob,
                unknown_prob=read.unknown_prob,
            )
        self.features = features

    @property
    def char_width(self) -> int:
        """The width C of the vectors that `read_chars` returns."""
        of_features = self.features.width if self.features is not None else 0
        return self.embeddings.char_width + self.components_width + of_features

    @property
    def components_width(self) -> int:
        """The width of the vectors of components; 0 if the model does not read them."""
        return self.components.width if self.components is not None else 0

    def read_chars(self, batch: LatticeBatch, *, with_words: bool = False) -> Tensor:
        """float[B, T, C]: the vectors of characters and their bigrams, then those of their components and of the BERT,
        if the model reads these; and, if requested, the vector of each character as a word."""
        parts = [self.with_components(self.embeddings.chars(batch), batch)]
        if self.features is not None:
            parts.append(self.features(batch))
        if with_words:
            parts.append(self.embeddings.char_words(batch))
        return torch.cat(parts, -1) if len(parts) > 1 else parts[0]

    def with_components(self, vectors: Tensor, batch: LatticeBatch) -> Tensor:
        """float[B, T, D + components_width]: vectors of characters float[B, T, D], then those of their components."""
        return vectors if self.components is None else torch.cat([vectors, self.components(batch)], -1)

    def encode(self, batch: LatticeBatch) -> tuple[Any, ...]:
        """The output of `forward`, and what `read_words` and explanations need besides."""
        raise NotImplementedError

    def forward(self, batch: LatticeBatch) -> Tensor:
        """float[B, T, out_width]: the features of each character."""
        features: Tensor = self.encode(batch)[0]
        return features

    def read_words(self, batch: LatticeBatch) -> tuple[Tensor, Tensor]:
        """The output of `forward`, and float[B, T, W], 0..1: the share of word w in the input of character t.

        Explanations show these shares. Each row sums to at most 1; the rest of it is the share of characters. If the
        equations of a model have no such weights, its docstring says which numbers are used. Zeros for a model that
        reads no words.
        """
        return self.without_words(self(batch), batch)

    def without_words(self, features: Tensor, batch: LatticeBatch) -> tuple[Tensor, Tensor]:
        """Character features float[B, T, D], and zeros float[B, T, W]."""
        return features, features.new_zeros(*features.shape[:2], batch.words.shape[1])
