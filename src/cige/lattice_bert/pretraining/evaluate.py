"""Metrics of pre-training, and evaluation on held-out text: tokens, the order of texts, fully masked segments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from accelerate import PartialState
from accelerate.utils import reduce
from torch import Tensor, nn

from cige.lattice_bert.encoder.heads import PreTrainingLosses
from cige.lattice_bert.pretraining.batch import NO_TARGET, MaskedBatch, collate_masked
from cige.lattice_bert.pretraining.dataset import InstanceSet, MaskedInstance
from cige.nn.contexts import autocast, evaluating

N_COUNTS = 7


def counts_of(losses: PreTrainingLosses, batch: MaskedBatch) -> Tensor:
    """float64[7], on the device of the losses, to avoid synchronisation.

    The sum of losses, the number of targets and that of correct predictions, for tokens and then for the order of two
    parts; and the number of tokens read, without padding.
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


def forward(model: nn.Module, batch: MaskedBatch) -> PreTrainingLosses:
    """The losses of a batch, on the model's device."""
    return model(batch.tokens, batch.positions, batch.targets, batch.sentence_labels)


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
    """Evaluate on the first `n_most` instances; all processes share the work.

    Returns:
        The `figures` of instances masked as in training, and, if there is anything to measure,
        segment_accuracy: accuracy on the tokens of fully masked lattice segments, however masking is done in training.
        segment_char_accuracy: that on the characters (ids below `n_pieces`), which models without words have too.
        n_instances: number of instances.
    """
    n = min(n_most, len(instances.n_tokens(0)))
    processes, device = PartialState(), next(model.parameters()).device
    of_process = range(processes.process_index, n, processes.num_processes)
    numbers = [of_process[k : k + micro_batch_size] for k in range(0, len(of_process), micro_batch_size)]
    # As many passes in every process, because those of a model in shards wait for one another; some do not count.
    n_passes = -(-n // (processes.num_processes * micro_batch_size))
    numbers += [range(0)] * (n_passes - len(numbers))

    def measured(make: Callable[[int, int], MaskedInstance], *, chars_only: bool = False) -> dict[str, float]:
        total = torch.zeros(N_COUNTS, dtype=torch.float64, device=device)
        for part in numbers:
            batch = collate_masked([make(0, number) for number in part or [0]])
            if chars_only:
                targets = batch.targets.masked_fill(batch.targets >= n_pieces, NO_TARGET)
                batch = replace(batch, targets=targets, n_targets=int((targets != NO_TARGET).sum()))
            batch = batch.to(device)
            with autocast(model, precision):
                counts = counts_of(forward(model, batch), batch)
            total += counts if part else 0.0
        return figures(reduce(total, "sum").tolist())

    with evaluating(model):
        masked_figures = measured(instances.masked)
        for name, chars_only in (("segment_accuracy", False), ("segment_char_accuracy", True)):
            hidden = measured(instances.hidden, chars_only=chars_only)
            if "mlm_accuracy" in hidden:
                masked_figures[name] = hidden["mlm_accuracy"]
    return masked_figures | {"n_instances": n}
