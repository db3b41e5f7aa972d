"""PairTagger: an encoder and scores of pairs of characters instead of a CRF; the counterpart of `models.tagger.Tagger`.

FLAT, SoftLexicon or any other encoder computes the features of characters from the lattice. There are two forms:

GridTagger       scores every span up to a maximum length (`nn.pair_grid`), so that entities may be nested
RelationTagger   scores relations of pairs (`nn.word_pairs`, as in W2NER), so that entities may be nested or
                 discontinuous. The paper's BiLSTM between a BERT and the grid is left out: the encoders of this package
                 have an LSTM or attention of their own.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from cige.data.batch import LatticeBatch
from cige.data.gold_spans import NONE
from cige.data.sentence import Span
from cige.data.vocabulary import USER
from cige.models.encoder import LatticeEncoder
from cige.models.pair_grid_config import PairGridConfig
from cige.models.tagger import TaggerOutput
from cige.nn.dropout import Dropout
from cige.nn.pair_grid import PointerGrid, multi_label_loss, span_mask
from cige.nn.word_pairs import WordPairGrid, pair_mask, user_word_cells
from cige.nn.word_paths import Path, find_paths


class PairTagger(nn.Module):
    """Encoder -> dropout -> scores of pairs by the module `output`, which a subclass adds.

    Args:
        encoder: computes the features of characters.
        labels: the K entity labels.
        config: the settings of the head; its `max_length` is a number, the maximum length M of an entity.
        output_dropout_prob: dropout on the encoder's output.
    """

    def __init__(
        self, *, encoder: LatticeEncoder[Any], labels: list[str], config: PairGridConfig, output_dropout_prob: float
    ):
        super().__init__()
        if config.max_length is None:
            raise ValueError("max_length is None; expected the maximum length of entities in characters")
        self.tags = list(labels)
        self.band = config.max_length
        self.encoder = encoder
        self.dropout = Dropout(output_dropout_prob)
        self.output = self.head(encoder.out_width, config)

    def head(self, in_width: int, config: PairGridConfig) -> nn.Module:
        """The module that scores pairs, from the features of characters float[B, T, in_width]."""
        raise NotImplementedError

    @property
    def device(self) -> torch.device:
        return next(self.output.parameters()).device

    def gold_cells(self, batch: LatticeBatch) -> Tensor:
        """The cells of the gold spans (see LatticeBatch); ValueError if there are none."""
        if batch.cells is None:
            raise ValueError("the loss needs a batch with gold spans, but collate was given none")
        return batch.cells


class GridTagger(PairTagger):
    """The scores of spans, float[B, T, M, K]; the mask bool[B, T, M] is that of spans within a sentence."""

    def head(self, in_width: int, config: PairGridConfig) -> PointerGrid:
        n_types = len(self.tags)
        return PointerGrid(in_width=in_width, n_types=n_types, head_width=config.head_width, efficient=config.efficient)

    def forward(self, batch: LatticeBatch) -> TaggerOutput:
        scores = self.read(self.encoder(batch), batch)
        return TaggerOutput(scores, span_mask(batch.n_chars, scores.shape[1], self.band))

    def read(self, features: Tensor, batch: LatticeBatch) -> Tensor:
        """float[B, T, M, K]: the scores of spans [i, i + m + 1) from the features float[B, T, D] of a batch."""
        return self.output(self.dropout(features), self.band)

    def loss(self, batch: LatticeBatch) -> Tensor:
        """The mean over sentences of the multi-label loss of spans."""
        cells, scores = self.gold_cells(batch), self(batch)
        gold = torch.zeros_like(scores.emissions, dtype=torch.bool)
        gold[tuple(cells.unbind(1))] = True
        return multi_label_loss(scores.emissions, gold, scores.mask).mean()

    @torch.no_grad()
    def best_spans(self, batch: LatticeBatch, scheme: str = "") -> list[list[Span]]:
        """The spans of each sentence whose score is above 0, sorted; they may be nested or overlap."""
        scores = self(batch)
        cells = ((scores.emissions > 0) & scores.mask[..., None]).nonzero().tolist()
        spans: list[list[Span]] = [[] for _ in range(len(batch))]
        for row, start, more, label in cells:
            spans[row].append(Span(start, start + more + 1, self.tags[label]))
        return [sorted(of_sentence) for of_sentence in spans]


class RelationTagger(PairTagger):
    """The class scores of pairs, float[B, T, 2 M - 1, K + 2], and the mask of pairs within a sentence."""

    def head(self, in_width: int, config: PairGridConfig) -> WordPairGrid:
        return WordPairGrid(
            in_width=in_width,
            n_types=len(self.tags),
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
        return [sorted(map(self._entity, find_paths(of_sentence))) for of_sentence in classes]

    def _entity(self, path: Path) -> Span:
        parts = path.parts
        return Span(parts[0][0], parts[-1][1], self.tags[path.type], parts if len(parts) > 1 else ())
