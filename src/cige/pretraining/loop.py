"""PretrainLoop: the steps of a pre-training run, on one process or several that share each step.

A step is a function of the weights and of what it reads, and what it reads is a function of the seed: so a run that
was cut off goes on exactly, and several processes do what one would. Random numbers of dropout are drawn anew from
(seed, step, process) in each step, so no state of a generator needs to be saved.
"""

from __future__ import annotations

import math
import time
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import torch
from accelerate import Accelerator
from torch import Tensor, nn
from torch.utils.data import DataLoader

from cige.errors import CigeError, ModelError
from cige.pretraining.batch import MaskedBatch
from cige.pretraining.curves import Curves
from cige.pretraining.data import PretrainingData
from cige.pretraining.dataset import InstanceSet, TokenIds
from cige.pretraining.evaluate import evaluate, forward, sums_of
from cige.pretraining.history import EvalRecord, LogRecord, PretrainHistory, per_cent
from cige.pretraining.optimizer import make_optimizer
from cige.pretraining.plan import Place, StepData, StepPlan
from cige.pretraining.recipe import PhaseConfig, PretrainRecipe
from cige.pretraining.sums import Sums
from cige.training.checkpoint import load_weights, new_checkpoint, read_state, save_weights
from cige.training.schedule import rise_and_fall
from cige.training.step_bar import StepBar

_WEIGHTS, _OPTIMIZER = "weights.safetensors", "optimizer.pt"


class PretrainLoop:
    """Trains a model by a recipe.

    Attributes:
        history: what was done; `load` and `run` move it.

    Args:
        model: a LatticeBertForPreTraining.
        folder: of the run; checkpoints go there.
        origin: fingerprint of what the run starts from; a checkpoint of another origin is refused.
    """

    def __init__(
        self,
        *,
        model: nn.Module,
        recipe: PretrainRecipe,
        data: PretrainingData,
        accelerator: Accelerator,
        folder: Path,
        origin: str,
        seed: int,
        show_progress: bool = True,
    ):
        self.history = PretrainHistory()
        self._recipe, self._data, self._accelerator = recipe, data, accelerator
        self._folder, self.origin, self._seed = folder, origin, seed
        self._bare = model.to(accelerator.device)
        self._optimizer = make_optimizer(self._bare, recipe.optimizer)
        self._model = accelerator.prepare(self._bare)
        self._sums = torch.zeros(len(Sums().values), dtype=torch.float64, device=accelerator.device)
        self._clock = time.perf_counter()
        is_main = accelerator.is_main_process
        self._bar = StepBar(recipe.name, recipe.n_steps, is_shown=show_progress and is_main)
        self._curves = Curves(folder, is_on=is_main)

    def load(self, checkpoint: Path) -> None:
        """Go on from a checkpoint; raises ModelError where it is damaged or of another network."""
        self.history = read_state(checkpoint, PretrainHistory.from_dict)
        load_weights(self._bare, checkpoint / _WEIGHTS)
        try:
            state = torch.load(checkpoint / _OPTIMIZER, map_location=self._accelerator.device, weights_only=True)
            self._optimizer.load_state_dict(state)
        except (OSError, RuntimeError, ValueError, KeyError) as reason:
            raise ModelError(
                f"{checkpoint}: the optimiser's state cannot be read ({reason}); start the run over with resume=False"
            ) from reason

    def run(self, phase: PhaseConfig, end: int, *, stop_at: float = math.inf) -> bool:
        """Train until `end` steps are done, or until the clock (time.monotonic) shows `stop_at`.

        A checkpoint is written in either case.

        Returns:
            Whether all steps were done.
        """
        rhythm, history = self._recipe.rhythm, self.history
        loader = self._loader(phase)
        self._curves.start(history.step)
        self._bar.start(history.step)
        self._clock = time.perf_counter()
        try:
            for place, batches in loader:
                must_stop = self._step(batches, stop_at)
                history.step += 1
                history.place = place
                is_end = history.step == end
                self._bar.update(history.step)
                if history.step % rhythm.log_steps == 0 or is_end:
                    self._log()
                if history.step % rhythm.eval_steps == 0 or is_end:
                    self._evaluate(phase)
                if is_end:
                    history.place = Place()  # the next phase starts at the beginning of its data
                if history.step % rhythm.checkpoint_steps == 0 or is_end or must_stop:
                    self._save()
                if is_end or must_stop:
                    return is_end
        finally:
            self._bar.stop()
            self._curves.close()
        raise AssertionError("a plan has no end")

    def _loader(self, phase: PhaseConfig) -> DataLoader[tuple[Place, list[MaskedBatch]]]:
        accelerator = self._accelerator
        instances = self._instances(phase, is_held_out=False)
        plan = StepPlan(
            instances, batch_size=phase.batch_size, micro_batch_size=phase.micro_batch_size, seed=self._seed
        )
        steps = plan.steps(self.history.place, rank=accelerator.process_index, n_processes=accelerator.num_processes)
        return DataLoader(
            StepData(instances),
            sampler=steps,  # type: ignore[arg-type]
            batch_size=None,
            num_workers=self._recipe.rhythm.n_workers,
        )

    def _instances(self, phase: PhaseConfig, *, is_held_out: bool) -> InstanceSet:
        config = self._recipe.instances
        ids = TokenIds.of(self._data.vocabulary, use_words=config.use_words)
        shards = self._data.held_out if is_held_out else self._data.train
        return InstanceSet(shards, config=config, ids=ids, room=phase.room, seed=self._seed)

    def _step(self, batches: list[MaskedBatch], stop_at: float) -> bool:
        """One step of the optimiser; returns whether time is up for any of the processes."""
        accelerator, step = self._accelerator, self.history.step
        generator_seed = np.random.SeedSequence((self._seed, step, accelerator.process_index)).generate_state(
            1, np.uint64
        )
        torch.manual_seed(int(generator_seed[0]))
        counts = [sum(b.n_targets for b in batches), sum(b.n_labels for b in batches), time.monotonic() >= stop_at]
        n_targets, n_labels, must_stop = self._summed(torch.tensor(counts, dtype=torch.float64)).tolist()
        for number, batch in enumerate(batches, start=1):
            is_last = number == len(batches)
            with nullcontext() if is_last else accelerator.no_sync(self._model):
                batch = batch.to(accelerator.device)
                losses = forward(self._model, batch)
                # Means over the whole step, whoever holds its parts; processes average their gradients.
                loss = losses.mlm_loss * (batch.n_targets / max(1, n_targets))
                loss = loss + losses.sentence_loss * (batch.n_labels / max(1, n_labels))
                accelerator.backward(loss * accelerator.num_processes)
            self._sums += sums_of(losses, batch)
        rate = self._recipe.optimizer.learning_rate * rise_and_fall(
            step, n_warmup=self._recipe.optimizer.n_warmup_steps, n_steps=self._recipe.n_steps
        )
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        norm = nn.utils.clip_grad_norm_(self._bare.parameters(), self._recipe.optimizer.clip_norm)
        if not math.isfinite(norm):
            raise CigeError(
                f"step {step + 1}: the gradient is not finite; what was saved before is untouched. Lower "
                "optimizer.learning_rate, or give it more n_warmup_steps, and train into another folder"
            )
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)
        return bool(must_stop)

    def _summed(self, values: Tensor) -> Tensor:
        """The same on all processes."""
        values = values.to(self._accelerator.device)
        return self._accelerator.reduce(values, "sum") if self._accelerator.num_processes > 1 else values

    def _gather_sums(self) -> None:
        """Move what all processes added up since the last time into the history."""
        self.history.sums += Sums.of(self._summed(self._sums).tolist())
        self._sums.zero_()
        now = time.perf_counter()
        self.history.seconds += now - self._clock
        self._clock = now

    def _log(self) -> None:
        self._gather_sums()
        history = self.history
        (mlm_loss, mlm_accuracy), (sentence_loss, sentence_accuracy) = history.sums.mlm, history.sums.sentence
        record = LogRecord(
            step=history.step,
            mlm_loss=mlm_loss,
            mlm_accuracy=mlm_accuracy,
            sentence_loss=sentence_loss,
            sentence_accuracy=sentence_accuracy,
            learning_rate=self._optimizer.param_groups[0]["lr"],
            n_tokens=int(history.sums.n_tokens),
            seconds=history.seconds,
        )
        history.logs.append(record)
        history.sums, history.seconds = Sums(), 0.0
        self._curves.add("train", record)
        self._bar.say(
            f"step {record.step}/{self._recipe.n_steps}  MLM {mlm_loss:.3f} ({per_cent(mlm_accuracy)})  "
            f"sentences {sentence_loss:.3f} ({per_cent(sentence_accuracy)})  "
            f"{record.n_tokens / record.seconds:,.0f} tokens/s"
        )

    def _evaluate(self, phase: PhaseConfig) -> None:
        n_most = self._recipe.rhythm.n_eval_instances
        if not self._data.held_out or not n_most:
            return
        self._gather_sums()
        found = evaluate(
            self._bare,
            self._instances(phase, is_held_out=True),
            n_most=n_most,
            micro_batch_size=phase.micro_batch_size,
            n_pieces=self._data.vocabulary.n_pieces,
            accelerator=self._accelerator,
        )
        record = EvalRecord(step=self.history.step, **found)
        self.history.evaluations.append(record)
        self._curves.add("held-out", record)
        self._bar.say(
            f"held-out at step {record.step}: MLM {record.mlm_loss:.3f} ({per_cent(record.mlm_accuracy)}), sentences "
            f"{per_cent(record.sentence_accuracy)}, hidden segments {per_cent(record.segment_accuracy)} "
            f"(characters {per_cent(record.segment_char_accuracy)})"
        )
        self._clock = time.perf_counter()

    def _save(self) -> None:
        self._gather_sums()
        if self._accelerator.is_main_process:
            kept = self._recipe.rhythm.n_checkpoints
            with new_checkpoint(
                self._folder, self.history.step, self.history, origin=self.origin, n_kept=kept
            ) as folder:
                save_weights(self._bare, folder / _WEIGHTS)
                torch.save(self._optimizer.state_dict(), folder / _OPTIMIZER)
        self._accelerator.wait_for_everyone()
        self._clock = time.perf_counter()
