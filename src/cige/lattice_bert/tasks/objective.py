"""The objective of fine-tuning: items of a task, the loss of its head, and scores on development examples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cige.engine.history import Record, RunState
from cige.engine.plan import BatchPlan
from cige.lattice_bert.tasks.config import TuningConfig
from cige.lattice_bert.tasks.items import Item
from cige.lattice_bert.tasks.tuned import TunedModel, TunedNetwork


class TuningObjective:
    """See engine/objective.py.

    Args:
        items: training items, all with targets; dev, dev_items: the examples that choose the epoch, and their items.
        max_pairs: maximum number of token pairs of a forward pass (see `max_pairs_on`).
    """

    keeps_best = True

    def __init__(
        self,
        model: TunedModel,
        items: Sequence[Item[Any]],
        *,
        dev: Sequence[Any],
        dev_items: Sequence[Item[Any]],
        config: TuningConfig,
        seed: int,
        max_pairs: int,
    ):
        self._model, self._items, self._dev, self._dev_items = model, items, dev, dev_items
        self._training = config.training
        sizes = np.array([item.n_tokens for item in items], np.int64)
        widest = max(len(item.inputs) for item in items)
        self.plan = BatchPlan(sizes, config.batches, seed=seed, pass_pairs=max_pairs // widest)
        self.n_steps = self.plan.n_steps(config.training.n_epochs)

    def read(self, epoch: int, numbers: Sequence[int]) -> list[Item[Any]]:
        return [self._items[number] for number in numbers]

    def weights(self, batch: list[Item[Any]]) -> Sequence[float]:
        return (len(batch),)

    def losses(self, network: TunedNetwork, batch: list[Item[Any]]) -> tuple[Tensor, Tensor]:
        loss = network.head.losses(network.bert, batch).sum()
        counts = torch.stack([loss.detach().double(), loss.new_tensor(len(batch), dtype=torch.float64)])
        return loss[None], counts

    def summary(self, totals: Sequence[float]) -> dict[str, float]:
        return {"loss": totals[0] / totals[1]}

    def evaluate(self, network: TunedNetwork) -> dict[str, float]:
        answers = self._model.predict(self._dev, items=self._dev_items, precision=self._training.precision)
        return dict(self._model.score(self._dev, answers))

    def describe(self, record: Record, state: RunState) -> str:
        shown = "".join(f"  dev {name} {100 * value:.2f}" for name, value in record.scores.items())
        return f"epoch {record.epoch}/{self._training.n_epochs}  loss {record.train['loss']:.4f}{shown}"
