"""The pre-training heads of Lattice-BERT (§2.4): the tokens of masked segments, and the order of two texts."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from cige.lattice_bert.encoder.network import LAYER_NORM_EPS, LatticeBert, initialise
from cige.lattice_bert.encoder.network_config import LatticeBertConfig
from cige.lattice_bert.encoder.token_batch import TokenBatch
from cige.lattice_bert.encoder.vocabulary_loss import vocabulary_loss

NOTHING = -1  # marks a missing target or label


@dataclass(frozen=True)
class PreTrainingLosses:
    """The losses of one batch, and the counts from which accuracies over several batches are computed.

    Attributes:
        mlm_loss, sentence_loss: float[], mean over the batch's targets and its pairs of texts; 0 without any.
        n_targets, n_sentences: int64[], their numbers; n_targets_right, n_sentences_right: of correct predictions.
    """

    mlm_loss: Tensor
    sentence_loss: Tensor
    n_targets: Tensor
    n_targets_right: Tensor
    n_sentences: Tensor
    n_sentences_right: Tensor

    @property
    def total(self) -> Tensor:
        """float[]: the sum of both losses, which training minimises."""
        return self.mlm_loss + self.sentence_loss


class LatticeBertForPreTraining(nn.Module):
    """Lattice-BERT with its two heads: characters and words under one softmax, and the order of two texts.

    Args:
        n_sentence_classes: 2 for in order or swapped (SOP), 3 if the second text may be from another document as well.
    """

    def __init__(self, config: LatticeBertConfig, n_sentence_classes: int = 2):
        super().__init__()
        self.config = config
        self.bert = LatticeBert(config)
        self.transform = nn.Linear(config.width, self.bert.embeddings.tokens.embedding_dim)
        self.transform_norm = nn.LayerNorm(self.transform.out_features, eps=LAYER_NORM_EPS)
        self.token_bias = nn.Parameter(torch.zeros(config.n_tokens))  # the matrix is shared with the token embeddings
        self.sentence = nn.Linear(config.width, n_sentence_classes)
        initialise(self.transform)
        initialise(self.sentence)

    def forward(
        self, batch: TokenBatch, positions: Tensor, targets: Tensor, sentence_labels: Tensor
    ) -> PreTrainingLosses:
        """Losses of a batch.

        Args:
            positions: int64[B, M], the masked tokens of each lattice; any value on padding.
            targets: int64[B, M], the original ids; -1 for padding.
            sentence_labels: int64[B]; -1 if there is no order to predict.
        """
        is_target = targets != NOTHING
        rows = F.pad(positions.masked_fill(~is_target, 0), (1, 0))  # [CLS], then the masked tokens
        output = self.bert(batch, rows)
        targets = targets[is_target]  # [S]
        vectors = F.gelu(self.transform(output.hidden[:, 1:][is_target]), approximate="tanh")
        vectors = self.transform_norm(vectors)  # [S, E]
        named = vocabulary_loss(vectors, self.bert.embeddings.tokens.weight, self.token_bias, targets)
        order = self.sentence(output.pooled).float()  # [B, classes]
        is_pair = sentence_labels != NOTHING
        sentence_loss = F.cross_entropy(order, sentence_labels, ignore_index=NOTHING, reduction="sum")
        return PreTrainingLosses(
            mlm_loss=named.loss / max(1, len(targets)),
            sentence_loss=sentence_loss / is_pair.sum().clamp(min=1),
            n_targets=is_target.sum(),
            n_targets_right=named.n_right,
            n_sentences=is_pair.sum(),
            n_sentences_right=(order.argmax(1) == sentence_labels).sum(),
        )
