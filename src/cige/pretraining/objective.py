"""What a phase of pre-training is for the engine: masked instances, their two losses, and held-out text."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from cige.engine.history import Record, RunState
from cige.engine.plan import BatchPlan
from cige.engine.settings import BatchConfig
from cige.pretraining.batch import MaskedBatch, collate_masked
from cige.pretraining.data import PretrainingData
from cige.pretraining.dataset import InstanceSet, TokenIds
from cige.pretraining.evaluate import evaluate, forward, sums_of
from cige.pretraining.recipe import PhaseConfig, PretrainRecipe
from cige.pretraining.sums import Sums, per_cent


class PretrainingObjective:
    """See engine/objective.py."""

    keeps_best = False

    def __init__(self, phase: PhaseConfig, recipe: PretrainRecipe, data: PretrainingData, *, seed: int):
        self._phase, self._recipe, self._data, self._seed = phase, recipe, data, seed
        self._instances = self._instance_set(is_held_out=False)
        # Sorted by length within each batch, so that its forward passes pad little while batches stay random.
        batches = BatchConfig(batch_size=phase.batch_size, micro_batch_size=phase.micro_batch_size, pool_batches=1)
        self.plan = BatchPlan(self._instances.n_tokens, batches, seed=seed, fill=True)
        self.n_steps = phase.n_steps

    def read(self, epoch: int, numbers: Sequence[int]) -> MaskedBatch:
        return collate_masked([self._instances.masked(epoch, number) for number in numbers])

    def weights(self, batch: MaskedBatch) -> Sequence[float]:
        return batch.n_targets, batch.n_labels

    def losses(self, network: nn.Module, batch: MaskedBatch) -> tuple[Tensor, Tensor]:
        losses = forward(network, batch.to(next(network.parameters()).device))
        parts = torch.stack([losses.mlm_loss * batch.n_targets, losses.sentence_loss * batch.n_labels])
        return parts, sums_of(losses, batch)

    def summary(self, totals: Sequence[float]) -> dict[str, float]:
        sums = Sums.of(totals)
        (mlm_loss, mlm_accuracy), (sentence_loss, sentence_accuracy) = sums.mlm, sums.sentence
        return {
            "mlm_loss": mlm_loss,
            "mlm_accuracy": mlm_accuracy,
            "sentence_loss": sentence_loss,
            "sentence_accuracy": sentence_accuracy,
            "n_tokens": sums.n_tokens,
        }

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
        lines, train, found = [f"step {record.step}/{self._recipe.n_steps}"], record.train, record.scores
        if train:
            lines.append(
                f"MLM {train['mlm_loss']:.3f} ({per_cent(train['mlm_accuracy'])})  sentences "
                f"{train['sentence_loss']:.3f} ({per_cent(train['sentence_accuracy'])})  "
                f"{train['n_tokens'] / record.seconds:,.0f} tokens/s"
            )
        if found:
            lines.append(
                f"held-out MLM {found['mlm_loss']:.3f} ({per_cent(found['mlm_accuracy'])}), sentences "
                f"{per_cent(found['sentence_accuracy'])}, hidden segments {per_cent(found['segment_accuracy'])} "
                f"(characters {per_cent(found['segment_char_accuracy'])})"
            )
        return "  ".join(lines)

    def _instance_set(self, *, is_held_out: bool) -> InstanceSet:
        vocabulary, config = self._data.vocabulary, self._recipe.instances
        ids = TokenIds(
            cls_id=vocabulary.cls_id,
            sep_id=vocabulary.sep_id,
            mask_id=vocabulary.mask_id,
            n_ids=len(vocabulary) if config.use_words else vocabulary.n_pieces,
        )
        shards = self._data.held_out if is_held_out else self._data.train
        return InstanceSet(shards, config=config, ids=ids, room=self._phase.room, seed=self._seed)
