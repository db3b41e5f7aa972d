"""The progress of a run: a bar in a terminal, one line an epoch elsewhere."""

from __future__ import annotations

from typing import Any

from transformers import TrainerCallback

from cige.training.plan import BatchPlan
from cige.training.step_bar import StepBar


class Progress(TrainerCallback):
    """Shows steps, loss and dev F1."""

    def __init__(self, name: str, plan: BatchPlan):
        self._plan = plan
        self._bar = StepBar(name, len(plan))
        self._loss = float("nan")
        self._best = 0.0

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if state.is_world_process_zero:
            self._bar.start(state.global_step)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._bar.update(state.global_step)

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
        self._loss = logs.get("loss", self._loss)

    def on_evaluate(self, args: Any, state: Any, control: Any, metrics: Any = None, **kwargs: Any) -> None:
        if not state.is_world_process_zero:
            return
        line = f"epoch {round(self._plan.epoch_of(state.global_step))}/{self._plan.n_epochs}  loss {self._loss:.4f}"
        if "eval_dev_f1" in metrics:
            self._best = max(self._best, metrics["eval_dev_f1"])
            line += f"  dev F1 {100 * metrics['eval_dev_f1']:.2f} (best {100 * self._best:.2f})"
        self._bar.say(line)

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._bar.stop()
