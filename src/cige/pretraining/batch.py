"""MaskedBatch: masked instances side by side, as the model's loss reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from cige.data.token_batch import TokenBatch, collate_tokens
from cige.pretraining.dataset import MaskedInstance
from cige.pretraining.instances import NO_LABEL

NO_TARGET = -1


@dataclass(frozen=True)
class MaskedBatch:
    """B instances with up to M tokens to predict each.

    Attributes:
        tokens: what the model reads, [MASK] in place.
        positions: int64[B, M], places of the tokens to predict; 0 on padding.
        targets: int64[B, M], their ids; NO_TARGET on padding.
        sentence_labels: int64[B], see Instance; NO_LABEL where no order is asked.
        n_targets: tokens to predict; n_labels: instances with a sentence label; n_tokens: without padding.
    """

    tokens: TokenBatch
    positions: Tensor
    targets: Tensor
    sentence_labels: Tensor
    n_targets: int
    n_labels: int
    n_tokens: int

    def to(self, device: torch.device | str) -> MaskedBatch:
        return replace(
            self,
            tokens=self.tokens.to(device),
            positions=self.positions.to(device, non_blocking=True),
            targets=self.targets.to(device, non_blocking=True),
            sentence_labels=self.sentence_labels.to(device, non_blocking=True),
        )


def collate_masked(instances: Sequence[MaskedInstance]) -> MaskedBatch:
    """Pad some masked instances to one batch; M is at least 1."""
    n_most = max(1, *(len(instance.positions) for instance in instances))
    positions = torch.zeros(len(instances), n_most, dtype=torch.int64)
    targets = torch.full_like(positions, NO_TARGET)
    for row, instance in enumerate(instances):
        n = len(instance.positions)
        positions[row, :n] = torch.from_numpy(instance.positions)
        targets[row, :n] = torch.from_numpy(instance.targets)
    labels = torch.tensor([instance.sentence_label for instance in instances])
    return MaskedBatch(
        tokens=collate_tokens([instance.row for instance in instances]),
        positions=positions,
        targets=targets,
        sentence_labels=labels,
        n_targets=sum(len(instance.positions) for instance in instances),
        n_labels=int((labels != NO_LABEL).sum()),
        n_tokens=sum(len(instance.row.ids) for instance in instances),
    )
