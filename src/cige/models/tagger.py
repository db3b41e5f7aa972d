"""Tagger: any lattice encoder, a linear layer and a CRF; what every model of this package is on the outside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from cige.data.batch import LatticeBatch
from cige.data.tags import allowed_transitions
from cige.nn.crf import CRF
from cige.nn.dropout import Dropout
from cige.nn.embeddings import LatticeVectors


class LatticeEncoder(Protocol):
    """What a model file provides: character features out of a batch of lattices."""

    out_width: int
    embeddings: LatticeVectors
    features: nn.Module | None

    def __call__(self, batch: LatticeBatch) -> Tensor:
        """float[B, T, out_width]."""
        ...

    def read_words(self, batch: LatticeBatch) -> tuple[Tensor, Tensor]:
        """The same, and float[B, T, W]: how much of what character t read came from word w, 0..1 (for explanations).

        A row sums to at most 1; what is missing went to characters. Where a model has no such weights in its
        equations, its docstring says what stands for them.
        """
        ...


@dataclass(frozen=True)
class TaggerOutput:
    """Emissions float[B, T, L] and the mask bool[B, T] of real characters."""

    emissions: Tensor
    mask: Tensor


class Tagger(nn.Module):
    """Encoder -> dropout -> linear -> CRF.

    Args:
        encoder: a module that is a LatticeEncoder.
        tags: the L tag names, such as "O", "B-PER", ...
        output_dropout_prob: dropout on the encoder's output.
        constrained: rule out transitions that the tag scheme forbids.
        boundary_scores: learn CRF scores of the first and last tag.
    """

    def __init__(
        self,
        *,
        encoder: nn.Module,
        tags: list[str],
        output_dropout_prob: float,
        constrained: bool = True,
        boundary_scores: bool = True,
    ):
        super().__init__()
        self.tags = list(tags)
        self.encoder: Any = encoder  # a LatticeEncoder, and a module with parts of its own
        self.dropout = Dropout(output_dropout_prob)
        self.output = nn.Linear(encoder.out_width, len(tags))  # type: ignore[arg-type]
        nn.init.xavier_uniform_(self.output.weight)
        allowed = allowed_transitions(tags) if constrained else None
        self.crf = CRF(n_tags=len(tags), allowed=allowed, boundary_scores=boundary_scores)

    def forward(self, batch: LatticeBatch) -> TaggerOutput:
        return TaggerOutput(self.output(self.dropout(self.encoder(batch))), batch.char_mask)

    def loss(self, batch: LatticeBatch) -> Tensor:
        """Mean over sentences of -log p(gold tags)."""
        if batch.tags is None:
            raise ValueError("loss needs a batch with gold tags; collate was given none")
        emissions = self(batch).emissions
        return self.crf.negative_log_likelihood(emissions, batch.tags, batch.n_chars).mean()

    @torch.no_grad()
    def decode(self, batch: LatticeBatch) -> list[list[int]]:
        """The best tag ids of each sentence."""
        return self.crf.decode(self(batch).emissions, batch.n_chars)
