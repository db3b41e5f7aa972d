"""Tagger: an encoder, a linear layer and a CRF, the form of every model that does not score pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from cige.data.batch import LatticeBatch
from cige.data.sentence import Span
from cige.data.tags import allowed_transitions, tags_to_spans
from cige.models.encoder import LatticeEncoder
from cige.nn.crf import CRF
from cige.nn.dropout import Dropout


@dataclass(frozen=True)
class TaggerOutput:
    """Emissions float[B, T, L] and the mask bool[B, T] of real characters; or those of a grid (see `pair_grid`)."""

    emissions: Tensor
    mask: Tensor


class Tagger(nn.Module):
    """Encoder -> dropout -> linear -> CRF.

    Args:
        encoder: computes the features of characters.
        tags: the L tag names, such as "O", "B-PER", ...
        output_dropout_prob: dropout on the encoder's output.
        constrained: exclude transitions that the tag scheme forbids.
        boundary_scores: learn CRF scores of the first and last tag.
    """

    def __init__(
        self,
        *,
        encoder: LatticeEncoder[Any],
        tags: list[str],
        output_dropout_prob: float,
        constrained: bool = True,
        boundary_scores: bool = True,
    ):
        super().__init__()
        self.tags = list(tags)
        self.encoder = encoder
        self.dropout = Dropout(output_dropout_prob)
        self.output = nn.Linear(encoder.out_width, len(tags))
        nn.init.xavier_uniform_(self.output.weight)
        allowed = allowed_transitions(tags) if constrained else None
        self.crf = CRF(n_tags=len(tags), allowed=allowed, boundary_scores=boundary_scores)

    @property
    def device(self) -> torch.device:
        return self.output.weight.device

    def forward(self, batch: LatticeBatch) -> TaggerOutput:
        return TaggerOutput(self.read(self.encoder(batch), batch), batch.char_mask)

    def read(self, features: Tensor, batch: LatticeBatch) -> Tensor:
        """float[B, T, L]: the emissions of tags from the features float[B, T, D] of the characters of a batch."""
        return self.output(self.dropout(features))

    def loss(self, batch: LatticeBatch) -> Tensor:
        """The mean over sentences of -log p(gold tags), where p sums over all tags that the annotation allows."""
        if batch.tags is None:
            raise ValueError("the loss needs a batch with gold tags, but collate was given none")
        emissions = self(batch).emissions
        if batch.tag_sets is None:
            return self.crf.negative_log_likelihood(emissions, batch.tags, batch.n_chars).mean()
        log_weights = batch.tag_sets[batch.tags]  # [B, T, L]
        return self.crf.partial_negative_log_likelihood(emissions, log_weights, batch.n_chars).mean()

    @torch.no_grad()
    def decode(self, batch: LatticeBatch) -> list[list[int]]:
        """The best tag ids of each sentence."""
        return self.crf.decode(self(batch).emissions, batch.n_chars)

    def best_spans(self, batch: LatticeBatch, scheme: str) -> list[list[Span]]:
        """The entities of the best tags of each sentence, which are tags of `scheme`."""
        return [tags_to_spans([self.tags[tag] for tag in path], scheme) for path in self.decode(batch)]
