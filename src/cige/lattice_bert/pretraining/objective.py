"""The objective of a phase of pre-training: masked instances, their two losses, and held-out text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from cige.engine.history import Record, RunState
from cige.engine.plan import BatchPlan
from cige.engine.settings import BatchConfig
from cige.lattice_bert.pretraining.batch import MaskedBatch, collate_masked
from cige.lattice_bert.pretraining.data import PretrainingData
from cige.lattice_bert.pretraining.dataset import InstanceSet, TokenIds
from cige.lattice_bert.pretraining.evaluate import counts_of, evaluate, figures, forward, per_cent, shown_loss
from cige.lattice_bert.pretraining.recipe import PhaseConfig, PretrainRecipe


class PretrainingObjective:
    """See engine/objective.py."""

    keeps_best = False

    def __init__(self, phase: PhaseConfig, recipe: PretrainRecipe, data: PretrainingData, *, seed: int):
        self._phase, self._recipe, self._data, self._seed = phase, recipe, data, seed
        self._instances = self._instance_set(is_held_out=False)
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
        losses = forward(network, batch.to(next(network.parameters()).device))
        parts = torch.stack([losses.mlm_loss * batch.n_targets, losses.sentence_loss * batch.n_labels])
        return parts, counts_of(losses, batch)

    def summary(self, totals: Sequence[float]) -> dict[str, float]:
        return figures(totals)

    def evaluate(self, network: nn.Module) -> dict[str, float]:
        n_most = self._recipe.training.n_eval_instances
        if not self._data.held_out or not n_most:
            return {}
        return evaluate(
            network,
            self._instance_set(is_held_out=True),
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

    def _instance_set(self, *, is_held_out: bool) -> InstanceSet:
        config = self._recipe.instances
        ids = TokenIds.of(self._data.vocabulary, use_words=config.use_words)
        shards = self._data.held_out if is_held_out else self._data.train
        window = None if is_held_out else self._recipe.training.window_shards
        return InstanceSet(shards, config=config, ids=ids, room=self._phase.room, seed=self._seed, window=window)


def _accuracies(figures: Mapping[str, float]) -> str:
    return f"MLM {per_cent(figures.get('mlm_accuracy'))}  sentences {per_cent(figures.get('sentence_accuracy'))}"
