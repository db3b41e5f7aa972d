"""LatticeTrainer: transformers' Trainer, fed with batches of lattices and scored by entity F1."""

from __future__ import annotations

import json
import math
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

from cige.data.batch import LatticeBatch
from cige.errors import CigeError
from cige.files import atomic_folder
from cige.models.tagger import Tagger
from cige.training.average import WeightAverage
from cige.training.checkpoint import PREFIX, discard_checkpoints, load_weights, save_weights
from cige.training.dataset import TrainingSet, collate_examples
from cige.training.evaluation import EvaluationSet
from cige.training.history import EpochRecord, best_epoch, is_finished
from cige.training.optimizer import clip_gradients, make_optimizer
from cige.training.plan import BatchPlan
from cige.training.recipe import TrainingConfig
from cige.training.schedule import learning_rate_factor

try:
    from transformers import PrinterCallback, Trainer, TrainerCallback, TrainingArguments
    from transformers.trainer import TRAINER_STATE_NAME
except ImportError as reason:  # pragma: no cover
    raise CigeError(f'training needs transformers and accelerate ({reason}); run: pip install "cige[train]"') from reason

BEST = "best.safetensors"
_WEIGHTS, _AVERAGE, _HISTORY = "weights.safetensors", "average.pt", "history.json"


class TaggerLoss(nn.Module):
    """The tagger as Trainer and accelerate want a model: a batch in, the loss out."""

    def __init__(self, tagger: Tagger):
        super().__init__()
        self.tagger = tagger

    def forward(self, batch: LatticeBatch) -> Tensor:
        return self.tagger.loss(batch)


class LatticeTrainer(Trainer):
    """Trains a tagger by a BatchPlan.

    The whole plan is one "epoch" of the base class, since the number of steps differs between real epochs; at each
    real epoch's end dev is scored, the best weights are kept in best.safetensors and a checkpoint is written.

    Attributes:
        history: a record for each finished epoch.
    """

    def __init__(
        self,
        *,
        tagger: Tagger,
        train_set: TrainingSet,
        dev_set: EvaluationSet,
        plan: BatchPlan,
        config: TrainingConfig,
        args: TrainingArguments,
        callbacks: list[TrainerCallback],
    ):
        self.config = config
        self.plan = plan
        self.dev_set = dev_set
        self.history: list[EpochRecord] = []
        self._epoch_started = time.perf_counter()
        super().__init__(
            model=TaggerLoss(tagger),
            args=args,
            train_dataset=train_set,
            data_collator=collate_examples,
            callbacks=[_Rhythm(self), *callbacks],
        )
        self.remove_callback(PrinterCallback)
        self.average = WeightAverage(self.model, decay=config.average_weights) if config.average_weights else None

    # what a step is made of

    def get_train_dataloader(self) -> DataLoader:
        loader: DataLoader = DataLoader(
            self.train_dataset,  # type: ignore[arg-type]
            batch_sampler=self.plan,
            collate_fn=self.data_collator,
            num_workers=self.args.dataloader_num_workers,
        )
        return self.accelerator.prepare(loader)

    def num_examples(self, dataloader: DataLoader) -> int:
        return len(self.train_dataset)  # type: ignore[arg-type]

    def create_optimizer(self, model: nn.Module | None = None) -> torch.optim.Optimizer:
        if self.optimizer is None:
            self.optimizer = make_optimizer(self.model, self.config)
        return self.optimizer

    def create_scheduler(self, num_training_steps: int, optimizer: torch.optim.Optimizer | None = None) -> Any:
        if self.lr_scheduler is None:
            factor = learning_rate_factor(self.config, self.plan)
            self.lr_scheduler = torch.optim.lr_scheduler.LambdaLR(self.optimizer, factor)
            self._created_lr_scheduler = True
        return self.lr_scheduler

    def _get_num_items_in_batch(self, batch_samples: list, device: torch.device) -> None:
        return None  # the loss is a mean over sentences already

    def floating_point_ops(self, inputs: Any) -> int:
        return 0

    def _track_num_input_tokens(self, inputs: Any) -> None: ...

    def _prepare_inputs(self, inputs: LatticeBatch) -> LatticeBatch:  # type: ignore[override]
        return inputs if inputs.chars.device == self.args.device else inputs.to(self.args.device)

    def compute_loss(self, model: nn.Module, inputs: Any, return_outputs: bool = False, **_: Any) -> Tensor:
        return model(inputs)

    def _clip_grad_norm(self, model: nn.Module) -> Tensor:
        return clip_gradients(model.parameters(), self.config)

    # what happens at the end of an epoch

    def evaluate(self, *_: Any, **__: Any) -> dict[str, float]:
        """Score dev, keep the weights if they are the best so far, and add the epoch's record to `history`."""
        epoch = round(self.plan.epoch_of(self.state.global_step))
        loss = self._last_loss
        if not math.isfinite(loss):
            raise CigeError(
                f"the training loss of epoch {epoch} is {loss}; lower training.learning_rate, or check the vectors for "
                "values that are not finite"
            )
        found: dict[str, float] = {}
        if epoch >= self.config.eval_start_epoch:
            with self.average.applied() if self.average else _nothing():
                report = self.dev_set.score(self.model.tagger)
                found = {"dev_f1": report.f1, "dev_precision": report.precision, "dev_recall": report.recall}
                best = best_epoch(self.history)
                if self.args.should_save and (best is None or report.f1 > (best.dev_f1 or 0)):
                    save_weights(self.model.tagger, Path(self.args.output_dir) / BEST)
        now = time.perf_counter()
        record = EpochRecord(
            epoch=epoch,
            step=self.state.global_step,
            loss=loss,
            learning_rate=float(self.lr_scheduler.get_last_lr()[-1]),
            seconds=now - self._epoch_started,
            **found,
        )
        self._epoch_started = now
        self.history.append(record)
        metrics = {f"eval_{name}": value for name, value in found.items()}
        self.log(dict(metrics))
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
        if is_finished(self.history, n_epochs=self.plan.n_epochs, patience=self.config.patience):
            self.control.should_training_stop = True
        return metrics

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        if "loss" in logs:
            self._last_loss = logs["loss"]
        self.state.epoch = self.plan.epoch_of(self.state.global_step)
        super().log(logs, start_time)

    # what a kill leaves behind

    def _save_checkpoint(self, model: nn.Module, trial: Any) -> None:
        folder = Path(self.args.output_dir) / f"{PREFIX}{self.state.global_step}"
        try:
            with atomic_folder(folder) as aside:
                save_weights(self.model, aside / _WEIGHTS)
                if self.average is not None:
                    torch.save(self.average.state_dict(), aside / _AVERAGE)
                self._save_optimizer_and_scheduler(str(aside))
                self._save_scaler(str(aside))
                self._save_rng_state(str(aside))
                (aside / _HISTORY).write_text(json.dumps([asdict(r) for r in self.history]), encoding="utf-8")
                self.state.save_to_json(str(aside / TRAINER_STATE_NAME))
        except (OSError, RuntimeError) as reason:
            raise CigeError(
                f"{folder}: the checkpoint could not be written ({reason}); the one before it is untouched. "
                "Make room and run the same command again: training goes on from there"
            ) from reason
        discard_checkpoints(folder.parent, keep=folder)

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: nn.Module | None = None) -> None:
        folder = Path(resume_from_checkpoint)
        load_weights(self.model, folder / _WEIGHTS)
        if self.average is not None:
            self.average.load_state_dict(torch.load(folder / _AVERAGE, weights_only=True))
        self.history = read_history(folder)


class _Rhythm(TrainerCallback):
    """Tells the base class when to log, score and save."""

    def __init__(self, trainer: LatticeTrainer):
        self._trainer = trainer
        self._epoch_ends = frozenset(trainer.plan.steps_after)
        self._every = trainer.config.checkpoint_steps

    def on_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self._trainer.average is not None:
            self._trainer.average.update()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if state.global_step in self._epoch_ends:
            control.should_log = control.should_evaluate = control.should_save = True
        elif self._every and state.global_step % self._every == 0:
            control.should_save = True


def read_history(checkpoint: Path) -> list[EpochRecord]:
    try:
        return [EpochRecord(**record) for record in json.loads((checkpoint / _HISTORY).read_text(encoding="utf-8"))]
    except (OSError, ValueError, TypeError) as reason:
        raise CigeError(f"{checkpoint}: a damaged checkpoint ({reason}); delete it, or train with resume=False") from reason


class _nothing:
    def __enter__(self) -> None: ...
    def __exit__(self, *_: object) -> None: ...
