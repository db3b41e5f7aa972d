"""Metrics of pre-training: counts that are summed over batches, steps and processes, and their means."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from cige.lattice_bert.encoder.heads import PreTrainingLosses
from cige.lattice_bert.pretraining.batch import MaskedBatch

N_COUNTS = 7


def counts_of(losses: PreTrainingLosses, batch: MaskedBatch) -> Tensor:
    """float64[7], on the device of the losses, to avoid synchronisation.

    For the tokens to predict: the sum of losses, their number, and the number of correct predictions; the same for
    instances with two parts; and the number of tokens read, without padding.
    """
    values = (
        losses.mlm_loss * batch.n_targets,
        losses.n_targets,
        losses.n_targets_right,
        losses.sentence_loss * batch.n_labels,
        losses.n_sentences,
        losses.n_sentences_right,
    )
    counts = torch.stack([value.detach().double() for value in values])
    return torch.cat([counts, counts.new_tensor([batch.n_tokens])])


def figures(totals: Sequence[float]) -> dict[str, float]:
    """Mean losses in nats, accuracies (0..1) and the number of tokens; tasks without examples are left out."""
    by_name: dict[str, float] = {}
    for name, (loss, n, n_right) in (("mlm", totals[:3]), ("sentence", totals[3:6])):
        if n:
            by_name |= {f"{name}_loss": loss / n, f"{name}_accuracy": n_right / n}
    return by_name | {"n_tokens": totals[6]}


def shown_loss(loss: float | None) -> str:
    """1.2345 as "1.234", or "-" if there is no value."""
    return "-" if loss is None else f"{loss:.3f}"


def per_cent(share: float | None) -> str:
    """0.123 as "12.3%", or "-" if there is no value."""
    return "-" if share is None else f"{100 * share:.1f}%"
