"""Trainer: the training loop, on a CPU, a GPU or several processes that share each step.

A step depends only on the weights and the examples that it reads. The examples depend only on the seed (`plan`), and
the generator of dropout is seeded from (seed, step, process) in each step. An interrupted run therefore continues
exactly, no generator state is saved, and several processes compute the same as one.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from contextlib import nullcontext
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from cige.engine.checkpoint import (
    VALUES,
    CheckpointWriter,
    last_checkpoint,
    load_weights,
    must_fit,
    read_state,
    save_weights,
    trained_weights,
)
from cige.engine.history import Record, RunState
from cige.engine.objective import Objective
from cige.engine.optimizer import WeightAverage, clip_gradients, finish_updates, make_optimizer, set_learning_rate
from cige.engine.parallel import distributed, gathering, of_first_process
from cige.engine.plan import Place, StepPart
from cige.engine.progress import Curves, ProgressBar
from cige.engine.run_config import RunConfig
from cige.engine.run_folder import BEST
from cige.engine.settings import learning_rate_factor
from cige.engine.state_files import StateFiles, restore
from cige.errors import CigeError, ModelError
from cige.recipes.spans import steps_of

if TYPE_CHECKING:
    from accelerate import Accelerator

_WEIGHT, _MOMENT = "run.weights.", "run.optimizer.state."  # how the names of such tensors begin in a checkpoint


class Trainer:
    """Trains a network on one objective after another; `state` is the state of the run.

    Args:
        network: its trainable parameters are trained and saved.
        folder: folder of the run, for checkpoints and the best weights.
        origin: fingerprint of the initial state of the run; a checkpoint with another origin raises an error.
    """

    def __init__(
        self,
        network: nn.Module,
        config: RunConfig,
        *,
        accelerator: Accelerator,
        folder: Path,
        origin: str,
        seed: int,
        show_progress: bool = True,
    ):
        self.state = RunState()
        self.network = network.to(accelerator.device)
        self._config, self._accelerator, self._folder = config, accelerator, folder
        self._origin, self._seed = origin, seed
        is_alone = accelerator.num_processes == 1
        self._model = distributed(network, accelerator, config.sharding, config.shards)  # first: FSDP replaces weights
        self._optimizer = make_optimizer(network, config.optimizer, scales=config.scales, by_rows=is_alone)
        self._factor = learning_rate_factor(config.schedule, n_steps=config.n_steps, n_epochs=config.n_epochs)
        self._average = WeightAverage(network, decay=config.average_weights) if config.average_weights else None
        self._writer = CheckpointWriter(
            folder,
            origin=origin,
            n_kept=config.checkpoints.keep,
            in_background=config.checkpoints.in_background,
            rank=accelerator.process_index,
            n_processes=accelerator.num_processes,
            meet=accelerator.wait_for_everyone,
        )
        self._totals = torch.zeros((), dtype=torch.float64, device=accelerator.device)
        spans = {"log": config.log_every, "evaluate": config.eval_every, "save": config.checkpoints.every}
        n_steps, n_epochs = config.n_steps, config.n_epochs
        self._every = {k: max(1, steps_of(v, n_steps=n_steps, n_epochs=n_epochs)) for k, v in spans.items() if v}
        self._end, self._learning_rate = 0, 0.0
        self._clock = time.perf_counter()
        is_main = accelerator.is_main_process
        self._bar = ProgressBar(config.name, config.n_steps, is_shown=show_progress and is_main)
        self._curves = Curves(folder, is_on=is_main)

    def resume(self) -> None:
        """Continue from the newest checkpoint of the folder, if there is one.

        Raises:
            ModelError: it is damaged, or belongs to another network or origin.
        """
        checkpoint = last_checkpoint(self._folder, origin=self._origin)
        if checkpoint is None:
            return
        self.state = read_state(checkpoint, RunState.from_dict)
        saved, weights = StateFiles(checkpoint), trained_weights(self.network)
        shapes = {name.removeprefix(_WEIGHT): s for name, s in saved.shapes.items() if name.startswith(_WEIGHT)}
        must_fit(checkpoint, shapes, {name: weight.shape for name, weight in weights.items()})
        try:
            flat = json.loads((checkpoint / VALUES).read_text(encoding="utf-8"))
            state = restore(flat, lambda name: saved.read(name, self._like(name)))
            with torch.no_grad():
                for name, weight in weights.items():
                    weight.copy_(state["weights"][name])
            self._optimizer.load_state_dict(state["optimizer"])
            if self._average is not None:
                self._average.load_state_dict(state["average"])
        except (OSError, RuntimeError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError) as reason:
            shown = str(reason).partition(". ")[0].partition("\n")[0]
            raise ModelError(
                f"{checkpoint}: the optimiser's state cannot be read ({shown}); start the run over with resume=False"
            ) from reason
        if self._accelerator.is_main_process:  # the totals of all processes; the other processes start from zero
            self._totals = self._totals.new_tensor(self.state.totals or 0.0)

    def run(self, objective: Objective[Any, Any], *, stop_at: float = float("inf")) -> bool:
        """Train on the next objective or the rest of it; False if time.monotonic() reached `stop_at` before its end.

        In both cases, a checkpoint is written.

        Raises:
            CigeError: a loss or gradient is not finite, or writing failed; what was saved before is untouched.
            ModelError: the best weights of a run that continues are missing.
        """
        self._end += objective.n_steps
        state = self.state
        if self._is_over():
            return True
        if objective.keeps_best and state.best is not None and not (self._folder / BEST).is_file():
            raise ModelError(
                f"{self._folder / BEST}: missing, the best weights so far, which the end of the run needs; bring it "
                "back, or start the run over with resume=False (--no-resume)"
            )
        self.network.train()
        self._bar.start(state.step)
        self._curves.start(state.step)
        self._clock = time.perf_counter()
        try:
            for part, batches in self._loader(objective):
                must_stop = self._step(objective, batches, stop_at, is_idle=part.is_idle)
                state.step, state.place = state.step + 1, part.place
                self._bar.update(state.step)
                self._record(objective)
                if is_over := self._is_over():
                    state.place = Place()  # the next objective starts at the beginning of its data
                if is_over or must_stop or self._is_due("save"):
                    self._save()
                if is_over or must_stop:
                    self._writer.wait()
                    self._accelerator.wait_for_everyone()
                    return is_over
        finally:
            self._bar.stop()
            self._curves.close()
        raise AssertionError("a plan has no end")

    def load_best(self) -> Record:
        """Load the best weights into the network; returns the record of their evaluation."""
        best = self.state.best
        assert best is not None
        finish_updates(self._optimizer)
        load_weights(self.network, self._folder / BEST)
        return best

    def _like(self, name: str) -> Tensor | None:
        """The parameter that decides how a tensor of the state is divided among processes."""
        if name.startswith(_WEIGHT):
            return dict(self.network.named_parameters())[name.removeprefix(_WEIGHT)]
        if name.startswith(_MOMENT):
            parameters = [p for group in self._optimizer.param_groups for p in group["params"]]
            return parameters[int(name.removeprefix(_MOMENT).partition(".")[0])]  # type: ignore[no-any-return]
        return None

    def _is_over(self) -> bool:
        return self.state.step >= self._end or self.state.has_run_out_of(self._config.patience)

    def _epochs_done(self, objective: Objective[Any, Any]) -> int:
        return self.state.place.epoch // objective.plan.rounds_per_epoch

    def _is_due(self, what: str) -> bool:
        """Whether an action is due after the newest step; everything is due at the end of an objective."""
        state, every = self.state, self._every.get(what)
        at_epoch_end = self._config.n_epochs is not None and state.place.batch == 0
        is_extra = state.step == self._end or (at_epoch_end and (every is None or what == "save"))
        return is_extra or (every is not None and state.step % every == 0)

    def _loader(self, objective: Objective[Any, Any]) -> DataLoader[tuple[StepPart, list[Any]]]:
        rank, n_processes = self._accelerator.process_index, self._accelerator.num_processes
        parts = objective.plan.steps(self.state.place, rank=rank, n_processes=n_processes)
        first = next(parts)  # plan the epoch before any worker is started, so that all workers share the plan
        return DataLoader(
            _Passes(objective),
            sampler=chain([first], parts),
            batch_size=None,
            num_workers=self._config.n_workers,
        )

    def _step(
        self, objective: Objective[Any, Any], batches: Sequence[Any], stop_at: float, *, is_idle: bool = False
    ) -> bool:
        """One step of the optimiser; returns whether the time is up for any process. Idle batches do not count."""
        accelerator, state, config = self._accelerator, self.state, self._config
        seed_step(self._seed, state.step, accelerator.process_index)
        sums: Sequence[float] = [sum(parts) for parts in zip(*map(objective.weights, batches), strict=True)]
        share = 0.0 if is_idle else 1.0
        sums = [*(share * weight for weight in sums), time.monotonic() >= stop_at]
        if accelerator.num_processes > 1:
            sums = self._summed(torch.tensor(sums, dtype=torch.float64, device=accelerator.device)).tolist()
        weights = torch.tensor(sums[:-1], dtype=torch.float32, device=accelerator.device).clamp(min=1)
        total = torch.zeros((), device=accelerator.device)
        for number, batch in enumerate(batches, start=1):
            with gathering(self._model, accelerator, is_last=number == len(batches)):
                with accelerator.autocast():
                    losses, counts = self._model(objective.losses, batch)
                # Means over the whole step, across all processes.
                loss = share * (losses / weights).sum()
                accelerator.backward(loss * accelerator.num_processes)  # processes average their gradients
            total += loss.detach()
            self._totals = self._totals + share * counts
        self._clip_and_check(total)
        self._learning_rate = config.optimizer.learning_rate * self._factor(state.step, self._epochs_done(objective))
        set_learning_rate(self._optimizer, self._learning_rate)
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)
        if self._average is not None and self._average.is_due(state.step + 1):
            finish_updates(self._optimizer)
            self._average.update()
        return bool(sums[-1])

    def _clip_and_check(self, loss: Tensor) -> None:
        """Clip the gradient; raises CigeError before the optimiser would see one that is not finite."""
        norm = clip_gradients(self.network.parameters(), self._config.optimizer)
        if not bool((norm + loss).isfinite()):  # the only synchronisation with the device in a step
            raise CigeError(
                f"step {self.state.step + 1}: the loss is {float(loss):g} and the norm of its gradient "
                f"{float(norm):g}, so the step was not taken; what was saved before is untouched. Lower "
                "optimizer.learning_rate or lengthen schedule.warmup, check the vectors that training starts from for "
                "values that are not finite, and start over with resume=False (--no-resume)"
            )

    def _summed(self, values: Tensor) -> Tensor:
        """The sum of some numbers over all processes."""
        return self._accelerator.reduce(values, "sum") if self._accelerator.num_processes > 1 else values

    def _record(self, objective: Objective[Any, Any]) -> None:
        """Add the summary and the evaluation that are due after the newest step to the records."""
        state, config = self.state, self._config
        is_logged, is_scored = self._is_due("log"), self._is_due("evaluate")
        if config.n_epochs is not None and state.place.epoch < config.eval_start_epoch:
            is_scored = False
        if not is_logged and not is_scored:
            return
        self._count_seconds()
        train, seconds = {}, 0.0
        if is_logged:
            train, seconds = objective.summary(self._summed(self._totals).tolist()), state.seconds
            state.seconds, self._totals = 0.0, torch.zeros_like(self._totals)
        scores = self._evaluate(objective) if is_scored else {}
        if train or scores:
            record = Record(
                step=state.step,
                epoch=self._epochs_done(objective),
                learning_rate=self._learning_rate,
                train=train,
                seconds=seconds,
                scores=scores,
                eval_seconds=time.perf_counter() - self._clock,
            )
            state.records.append(record)
            self._curves.add(record)
            self._bar.say(objective.describe(record, state))
        self._clock = time.perf_counter()

    def _evaluate(self, objective: Objective[Any, Any]) -> dict[str, float]:
        """Evaluate the network (with averaged weights, if any), and save its weights if they are the best so far."""
        finish_updates(self._optimizer)
        with self._average.applied() if self._average is not None else nullcontext():
            scores = of_first_process(objective.evaluate(self.network), self._accelerator)
            best = self.state.best
            is_better = bool(scores) and (best is None or next(iter(scores.values())) > best.score)
            if objective.keeps_best and is_better and self._accelerator.is_main_process:
                save_weights(self.network, self._folder / BEST)
        return scores

    def _save(self) -> None:
        self._count_seconds()
        self.state.totals = np.atleast_1d(self._summed(self._totals).cpu().numpy()).tolist()
        values = {
            "weights": trained_weights(self.network),
            "optimizer": self._optimizer.state_dict(),
            "average": None if self._average is None else self._average.state_dict(),
        }
        self._writer.write(self.state, values)
        self._clock = time.perf_counter()

    def _count_seconds(self) -> None:
        now = time.perf_counter()
        self.state.seconds += now - self._clock
        self._clock = now


def seed_step(seed: int, step: int, rank: int) -> None:
    """Seed PyTorch's generators for one step of one process: that of the CPU, and those of GPUs that are in use.

    `torch.manual_seed` gives the same random numbers, but it also notes a stack trace for every kind of device that is
    not in use, which takes a share of each step of a small network.
    """
    drawn = int(np.random.SeedSequence((seed, step, rank)).generate_state(1, np.uint64)[0])
    torch.default_generator.manual_seed(drawn)
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(drawn)


class _Passes(Dataset[tuple[StepPart, list[Any]]]):
    """A dataset of the batches of each step's forward passes."""

    def __init__(self, objective: Objective[Any, Any]):
        self._objective = objective

    def __getitem__(self, part: StepPart) -> tuple[StepPart, list[Any]]:
        return part, [self._objective.read(part.epoch, numbers) for numbers in part.passes]
