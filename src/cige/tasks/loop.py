"""TuningLoop: the epochs of a fine-tuning run.

A step is a function of the weights and of what it reads, and what it reads is a function of the seed; random numbers
of dropout are drawn anew from (seed, step) in each step. So a run that was cut off goes on exactly from its last epoch.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from cige.errors import CigeError, ModelError
from cige.pretraining.optimizer import make_optimizer
from cige.pretraining.recipe import OptimizerConfig
from cige.tasks.config import TuningConfig
from cige.tasks.history import TunedEpoch, TuningHistory
from cige.tasks.items import Item, passes
from cige.tasks.tuned import TunedModel, autocast
from cige.training.checkpoint import load_weights, new_checkpoint, read_state, save_weights
from cige.training.plan import BatchPlan
from cige.training.run_folder import BEST
from cige.training.schedule import rise_and_fall
from cige.training.step_bar import StepBar

_WEIGHTS, _OPTIMIZER = "weights.safetensors", "optimizer.pt"
_NO_LIMIT = 2**62  # passes bound memory, so a batch need not


class TuningLoop:
    """Trains a TunedModel.

    Attributes:
        history: what was done; `load` and `run` move it.

    Args:
        items: what to learn from, all with targets.
        dev, dev_items: examples to choose the best epoch by, and what is read of them.
        folder: of the run; checkpoints and the best weights go there.
        origin: fingerprint of what the run starts from; a checkpoint of another origin is refused.
    """

    def __init__(
        self,
        *,
        model: TunedModel,
        items: Sequence[Item],
        dev: Sequence[Any],
        dev_items: Sequence[Item],
        config: TuningConfig,
        folder: Path,
        origin: str,
        seed: int,
        show_progress: bool = True,
    ):
        self.history = TuningHistory()
        self._model, self._items, self._dev, self._dev_items = model, items, dev, dev_items
        self.origin = origin
        self._config, self._folder, self._seed = config, folder, seed
        self._plan = BatchPlan(
            np.array([item.n_tokens for item in items], np.int64),
            n_epochs=config.n_epochs,
            batch_size=config.batch_size,
            max_pairs=_NO_LIMIT,
            pool_batches=config.pool_batches,
            seed=seed,
        )
        settings = OptimizerConfig(learning_rate=config.learning_rate, weight_decay=config.weight_decay)
        self._optimizer = make_optimizer(model.network, settings)
        self._bar = StepBar(
            f"{model.task} {config.learning_rate:g} seed {seed}", len(self._plan), is_shown=show_progress
        )

    def load(self, checkpoint: Path) -> None:
        """Go on from a checkpoint; raises ModelError where it is damaged or of another network."""
        self.history = read_state(checkpoint, TuningHistory.from_dict)
        load_weights(self._model.network, checkpoint / _WEIGHTS)
        try:
            self._optimizer.load_state_dict(torch.load(checkpoint / _OPTIMIZER, weights_only=True))
        except (OSError, RuntimeError, ValueError, KeyError) as reason:
            raise ModelError(
                f"{checkpoint}: the optimiser's state cannot be read ({reason}); start the run over with resume=False"
            ) from reason

    def run(self) -> TunedEpoch:
        """Train what is left of all epochs, with a checkpoint after each; returns the best one.

        Its weights are in BEST of the run's folder.
        """
        step = self.history.epochs[-1].step if self.history.epochs else 0
        self._bar.start(step)
        try:
            for epoch in range(len(self.history.epochs), self._config.n_epochs):
                self._run_epoch(epoch)
        finally:
            self._bar.stop()
        best = self.history.best
        assert best is not None
        return best

    def _run_epoch(self, epoch: int) -> None:
        batches = self._plan.epoch(epoch)
        step = self._plan.steps_after[epoch] - len(batches)
        began = time.perf_counter()
        self._model.network.train()
        loss_sum = 0.0
        for batch in batches:
            loss_sum += self._step([self._items[k] for k in batch], step)
            step += 1
            self._bar.update(step)
        trained = time.perf_counter()
        answers = self._model.predict(self._dev, items=self._dev_items, precision=self._config.precision)
        scores = self._model.score(self._dev, answers)
        record = TunedEpoch(
            epoch=epoch + 1,
            step=step,
            loss=loss_sum / len(self._items),
            seconds=trained - began,
            dev_seconds=time.perf_counter() - trained,
            scores=scores,
        )
        self.history.epochs.append(record)
        self._save(record)
        shown = "  ".join(f"{name} {100 * value:.2f}" for name, value in scores.items())
        self._bar.say(f"epoch {epoch + 1}/{self._config.n_epochs}  loss {record.loss:.4f}  dev {shown}")

    def _step(self, items: list[Item], step: int) -> float:
        """One step of the optimiser; returns the summed loss of the items."""
        config, network = self._config, self._model.network
        seed = np.random.SeedSequence((self._seed, step)).generate_state(1, np.uint64)
        torch.manual_seed(int(seed[0]))
        total = 0.0
        for chosen in passes(items, max_items=len(items)):
            with autocast(network, config.precision):
                loss = network.head.losses(network.bert, [items[k] for k in chosen]).sum()
            (loss / len(items)).backward()
            total += float(loss.detach())
        n_warmup = round(config.warmup_ratio * len(self._plan))
        rate = config.learning_rate * rise_and_fall(step, n_warmup=n_warmup, n_steps=len(self._plan))
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        norm = nn.utils.clip_grad_norm_(network.parameters(), config.clip_norm)
        if not math.isfinite(norm) or not math.isfinite(total):
            what = "gradient" if math.isfinite(total) else "loss"
            raise CigeError(
                f"step {step + 1}: the {what} is not finite; what was saved before is untouched. Lower the learning "
                "rate, and train into another folder"
            )
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)
        return total

    def _save(self, record: TunedEpoch) -> None:
        network = self._model.network
        best = self.history.best
        with new_checkpoint(self._folder, record.step, self.history, origin=self.origin) as folder:
            if best is not None and best.epoch == record.epoch:
                save_weights(network, self._folder / BEST)
            save_weights(network, folder / _WEIGHTS)
            torch.save(self._optimizer.state_dict(), folder / _OPTIMIZER)
