"""The objective of a phase of pre-training: masked batches, their two losses, and metrics on held-out text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from accelerate import PartialState
from accelerate.utils import reduce
from torch import Tensor, nn

from cige.data.padding import pad_rows
from cige.engine.history import Record, RunState
from cige.engine.plan import BatchPlan
from cige.engine.settings import BatchConfig
from cige.lattice_bert.encoder.heads import NOTHING, PreTrainingLosses
from cige.lattice_bert.encoder.token_batch import TokenBatch, collate_tokens
from cige.lattice_bert.pretraining.data import PretrainingData
from cige.lattice_bert.pretraining.dataset import InstanceSet, MaskedInstance, TokenIds
from cige.lattice_bert.pretraining.instances import NO_LABEL
from cige.lattice_bert.pretraining.recipe import PhaseConfig, PretrainRecipe
from cige.lattice_bert.pretraining.shards import Shard
from cige.nn.contexts import autocast, evaluating


@dataclass(frozen=True)
class MaskedBatch:
    """B instances with up to M tokens to predict each.

    Attributes:
        tokens: the input of the model, with [MASK] tokens.
        positions: int64[B, M], indices of the tokens to predict; 0 on padding.
        targets: int64[B, M], their ids; NOTHING on padding.
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
        targets=torch.from_numpy(pad_rows([instance.targets for instance in instances], fill=NOTHING)),
        sentence_labels=labels,
        n_targets=sum(len(instance.positions) for instance in instances),
        n_labels=int((labels != NO_LABEL).sum()),
        n_tokens=sum(len(instance.row.ids) for instance in instances),
    )


N_COUNTS = 7


def _losses(network: nn.Module, batch: MaskedBatch) -> tuple[Tensor, Tensor]:
    """The summed losses of a batch on the network's device, of tokens and of the order of two parts; and float64[7], on
    that device too, to avoid synchronisation.

    The counts are the sum of losses, the number of targets and that of correct predictions, for tokens and then for the
    order; and the number of tokens read, without padding.
    """
    found: PreTrainingLosses = network(batch.tokens, batch.positions, batch.targets, batch.sentence_labels)
    of_tokens, of_order = found.mlm_loss * batch.n_targets, found.sentence_loss * batch.n_labels
    tokens = (of_tokens, found.n_targets, found.n_targets_right)
    order = (of_order, found.n_sentences, found.n_sentences_right)
    counts = torch.stack([value.detach().double() for value in (*tokens, *order)])
    return torch.stack([of_tokens, of_order]), torch.cat([counts, counts.new_tensor([batch.n_tokens])])


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
                targets = batch.targets.masked_fill(batch.targets >= n_pieces, NOTHING)
                batch = replace(batch, targets=targets, n_targets=int((targets != NOTHING).sum()))
            batch = batch.to(device)
            with autocast(model, precision):
                _, counts = _losses(model, batch)
            total += counts if part else 0.0
        return figures(reduce(total, "sum").tolist())

    with evaluating(model):
        masked_figures = measured(instances.masked)
        for name, chars_only in (("segment_accuracy", False), ("segment_char_accuracy", True)):
            hidden = measured(instances.hidden, chars_only=chars_only)
            if "mlm_accuracy" in hidden:
                masked_figures[name] = hidden["mlm_accuracy"]
    return masked_figures | {"n_instances": n}


class PretrainingObjective:
    """See engine/objective.py."""

    keeps_best = False

    def __init__(self, phase: PhaseConfig, recipe: PretrainRecipe, data: PretrainingData, *, seed: int):
        self._phase, self._recipe, self._data, self._seed = phase, recipe, data, seed
        self._instances = self._instance_set(data.train, window=recipe.training.window_shards)
        # Instances are sorted by length within each batch, so that forward passes need little padding.
        batches = BatchConfig(batch_size=phase.batch_size, micro_batch_size=phase.micro_batch_size, pool_batches=1)
        n_tokens, rounds_per_epoch = self._instances.n_tokens, self._instances.rounds_per_epoch
        self.plan = BatchPlan(n_tokens, batches, seed=seed, fill=True, rounds_per_epoch=rounds_per_epoch)
        self.n_steps = phase.n_steps

    def read(self, epoch: int, numbers: Sequence[int]) -> MaskedBatch:
        return collate_masked([self._instances.masked(epoch, number) for number in numbers])

    def weights(self, batch: MaskedBatch) -> Sequence[float]:
        return batch.n_targets, batch.n_labels

    def losses(self, network: nn.Module, batch: MaskedBatch) -> tuple[Tensor, Tensor]:
        return _losses(network, batch.to(next(network.parameters()).device))

    def summary(self, totals: Sequence[float]) -> dict[str, float]:
        return figures(totals)

    def evaluate(self, network: nn.Module) -> dict[str, float]:
        n_most = self._recipe.training.n_eval_instances
        if not self._data.held_out or not n_most:
            return {}
        return evaluate(
            network,
            self._instance_set(self._data.held_out),
            n_most=n_most,
            micro_batch_size=self._phase.micro_batch_size,
            n_pieces=self._data.vocabulary.n_pieces,
            precision=self._recipe.training.precision,
        )

    def describe(self, record: Record, state: RunState) -> str:
        line, train, scores = f"step {record.step}/{self._recipe.n_steps}", record.train, record.scores
        if train:
            speed = train["n_tokens"] / record.seconds
            line += f"  loss {shown_loss(train.get('mlm_loss'))}  {_accuracies(train)}  {speed:,.0f} tokens/s"
        if scores:
            segments = f"hidden segments {per_cent(scores.get('segment_accuracy'))}"
            line += f"  held out: loss {shown_loss(scores.get('mlm_loss'))}  {_accuracies(scores)}  {segments}"
            line += f" (characters {per_cent(scores.get('segment_char_accuracy'))})"
        return line

    def _instance_set(self, shards: Sequence[Shard], window: int | None = None) -> InstanceSet:
        config = self._recipe.instances
        ids = TokenIds.of(self._data.vocabulary, use_words=config.use_words)
        return InstanceSet(shards, config=config, ids=ids, room=self._phase.room, seed=self._seed, window=window)


def _accuracies(figures: Mapping[str, float]) -> str:
    return f"MLM {per_cent(figures.get('mlm_accuracy'))}  sentences {per_cent(figures.get('sentence_accuracy'))}"
