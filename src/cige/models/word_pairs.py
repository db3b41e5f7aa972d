"""RelationTagger: an encoder and relations of pairs of characters, so that entities may be nested or discontinuous.

It is a `models.pair_grid.PairTagger` whose cells are pairs of characters with classes (`nn.word_pairs`), as in W2NER,
and not spans with scores. The paper's BiLSTM between a BERT and the grid is left out: the encoders of this package have
an LSTM or attention of their own.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from cige.data.batch import LatticeBatch
from cige.data.sentence import Span
from cige.data.vocabulary import USER
from cige.data.word_pair_classes import NONE
from cige.models.encoder import LatticeEncoder
from cige.models.pair_grid import PairTagger
from cige.models.pair_grid_config import PairGridConfig
from cige.models.tagger import TaggerOutput
from cige.nn.word_pairs import WordPairGrid, pair_mask, user_word_cells
from cige.nn.word_paths import find_paths


class RelationTagger(PairTagger):
    """The class scores of pairs, float[B, T, 2 M - 1, K + 2], and the mask of pairs within a sentence."""

    def __init__(
        self, *, encoder: LatticeEncoder[Any], labels: list[str], config: PairGridConfig, output_dropout_prob: float
    ):
        super().__init__(encoder=encoder, labels=labels, config=config, output_dropout_prob=output_dropout_prob)
        self.output = WordPairGrid(
            in_width=encoder.out_width,
            n_types=len(labels),
            pair_width=config.pair_width,
            biaffine_width=config.biaffine_width,
            dropout_prob=config.grid_dropout_prob,
            output_dropout_prob=config.predictor_dropout_prob,
        )

    def forward(self, batch: LatticeBatch) -> TaggerOutput:
        scores = self.read(self.encoder(batch), batch)
        return TaggerOutput(scores, pair_mask(batch.n_chars, scores.shape[1], self.band))

    def read(self, features: Tensor, batch: LatticeBatch) -> Tensor:
        """float[B, T, 2 M - 1, K + 2]: the class scores from the features float[B, T, D] of a batch."""
        length = features.shape[1]
        mask = pair_mask(batch.n_chars, length, self.band)
        is_user = (batch.words == USER) & batch.word_mask
        users = user_word_cells(batch.word_starts, batch.word_ends, is_user, length, self.band)
        return self.output(self.dropout(features), mask, users)

    def loss(self, batch: LatticeBatch) -> Tensor:
        """The mean over pairs within sentences of -log p(gold class)."""
        cells, scores = self.gold_cells(batch), self(batch)
        gold = torch.full(scores.mask.shape, NONE, device=scores.mask.device)
        row, first, cell, number = cells.unbind(1)
        gold[row, first, cell] = number
        return F.cross_entropy(scores.emissions[scores.mask].float(), gold[scores.mask])

    @torch.no_grad()
    def best_spans(self, batch: LatticeBatch, scheme: str = "") -> list[list[Span]]:
        """The entities of the best classes of each sentence, sorted."""
        scores = self(batch)
        classes = scores.emissions.argmax(-1).masked_fill(~scores.mask, NONE).cpu().numpy()
        return [
            sorted(
                Span(
                    path.parts[0][0], path.parts[-1][1], self.tags[path.type], path.parts if len(path.parts) > 1 else ()
                )
                for path in find_paths(of_sentence)
            )
            for of_sentence in classes
        ]
