"""Held-out text: how well tokens, the order of texts and fully masked segments are predicted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from accelerate import PartialState
from accelerate.utils import reduce
from torch import Tensor, nn

from cige.models.lattice_bert.heads import PreTrainingLosses
from cige.nn.precision import autocast
from cige.pretraining.batch import NO_TARGET, MaskedBatch, collate_masked
from cige.pretraining.dataset import InstanceSet, MaskedInstance
from cige.pretraining.sums import Sums


def forward(model: nn.Module, batch: MaskedBatch) -> PreTrainingLosses:
    """The losses of a batch, on the model's device."""
    return model(batch.tokens, batch.positions, batch.targets, batch.sentence_labels)


def sums_of(losses: PreTrainingLosses, batch: MaskedBatch) -> Tensor:
    """float64[7], the values of a Sums, on the losses' device: nothing waits for it."""
    values = (
        losses.mlm_loss * batch.n_targets,
        losses.n_targets,
        losses.n_targets_right,
        losses.sentence_loss * batch.n_labels,
        losses.n_sentences,
        losses.n_sentences_right,
    )
    found = torch.stack([value.detach().double() for value in values])
    return torch.cat([found, found.new_tensor([batch.n_tokens])])


@torch.no_grad()
def evaluate(
    model: nn.Module,
    instances: InstanceSet,
    *,
    n_most: int,
    micro_batch_size: int,
    n_pieces: int,
    precision: str = "fp32",
) -> dict[str, float]:
    """How well the first `n_most` instances are predicted; all processes share the work.

    Returns:
        n_instances: measured on; accuracies are 0..1.
        mlm_loss, mlm_accuracy: over tokens selected and replaced as in training.
        sentence_loss, sentence_accuracy: over the instances of two parts.
        segment_accuracy: over all tokens of whole lattice segments that are all [MASK], however training masks.
        segment_char_accuracy: over the characters among them, which models with and without words share.

    Args:
        n_pieces: ids below it are characters (word pieces).
    """
    n = min(n_most, len(instances.n_tokens(0)))
    processes, device = PartialState(), next(model.parameters()).device
    own = range(processes.process_index, n, processes.num_processes)
    numbers = [own[k : k + micro_batch_size] for k in range(0, len(own), micro_batch_size)]

    def summed(make: Callable[[int, int], MaskedInstance], *, chars_only: bool = False) -> Sums:
        total = torch.zeros(len(Sums().values), dtype=torch.float64, device=device)
        for part in numbers:
            batch = collate_masked([make(0, number) for number in part])
            if chars_only:
                targets = batch.targets.masked_fill(batch.targets >= n_pieces, NO_TARGET)
                batch = replace(batch, targets=targets, n_targets=int((targets != NO_TARGET).sum()))
            batch = batch.to(device)
            with autocast(model, precision):
                total += sums_of(forward(model, batch), batch)
        return Sums.of(reduce(total, "sum").tolist())

    was_training = model.training
    model.eval()
    try:
        usual, hidden = summed(instances.masked), summed(instances.hidden)
        hidden_chars = summed(instances.hidden, chars_only=True)
    finally:
        model.train(was_training)
    return {
        "n_instances": n,
        "mlm_loss": usual.mlm[0],
        "mlm_accuracy": usual.mlm[1],
        "sentence_loss": usual.sentence[0],
        "sentence_accuracy": usual.sentence[1],
        "segment_accuracy": hidden.mlm[1],
        "segment_char_accuracy": hidden_chars.mlm[1],
    }
