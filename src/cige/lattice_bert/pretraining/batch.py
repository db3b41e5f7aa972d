"""MaskedBatch: a padded batch of masked instances, the input of the model's loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from cige.data.padding import pad_rows
from cige.lattice_bert.encoder.token_batch import TokenBatch, collate_tokens
from cige.lattice_bert.pretraining.dataset import MaskedInstance
from cige.lattice_bert.pretraining.instances import NO_LABEL

NO_TARGET = -1


@dataclass(frozen=True)
class MaskedBatch:
    """B instances with up to M tokens to predict each.

    Attributes:
        tokens: the input of the model, with [MASK] tokens.
        positions: int64[B, M], indices of the tokens to predict; 0 on padding.
        targets: int64[B, M], their ids; NO_TARGET on padding.
        sentence_labels: int64[B], see Instance; NO_LABEL if there is no order to predict.
        n_targets, n_labels, n_tokens: numbers of tokens to predict, of instances with a label, and of all tokens.
    """

    tokens: TokenBatch
    positions: Tensor
    targets: Tensor
    sentence_labels: Tensor
    n_targets: int
    n_labels: int
    n_tokens: int

    def to(self, device: torch.device | str) -> MaskedBatch:
        names = ("positions", "targets", "sentence_labels")
        moved = {name: getattr(self, name).to(device, non_blocking=True) for name in names}
        return replace(self, tokens=self.tokens.to(device), **moved)


def collate_masked(instances: Sequence[MaskedInstance]) -> MaskedBatch:
    """Pad masked instances to one batch; M is at least 1."""
    labels = torch.tensor([instance.sentence_label for instance in instances])
    return MaskedBatch(
        tokens=collate_tokens([instance.row for instance in instances]),
        positions=torch.from_numpy(pad_rows([instance.positions for instance in instances])),
        targets=torch.from_numpy(pad_rows([instance.targets for instance in instances], fill=NO_TARGET)),
        sentence_labels=labels,
        n_targets=sum(len(instance.positions) for instance in instances),
        n_labels=int((labels != NO_LABEL).sum()),
        n_tokens=sum(len(instance.row.ids) for instance in instances),
    )
