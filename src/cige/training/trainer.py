"""LatticeTrainer: transformers' Trainer, fed with batches of lattices and scored by entity F1."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

from cige.data.batch import LatticeBatch
from cige.errors import CigeError, ModelError
from cige.models.tagger import Tagger
from cige.training.average import WeightAverage
from cige.training.checkpoint import load_weights, new_checkpoint, read_history, save_weights
from cige.training.dataset import TrainingSet, collate_examples
from cige.training.dev_scores import EvaluationSet
from cige.training.history import EpochRecord, History
from cige.training.optimizer import clip_gradients, make_optimizer, settle
from cige.training.plan import BatchPlan
from cige.training.recipe import TrainingConfig
from cige.training.run_folder import BEST
from cige.training.schedule import learning_rate_factor

try:
    from transformers import PrinterCallback, Trainer, TrainerCallback, TrainingArguments
    from transformers.trainer import TRAINER_STATE_NAME
except ImportError as reason:
    raise CigeError(f"training needs transformers and accelerate ({reason}); pip install 'cige[train]'") from reason

_WEIGHTS, _AVERAGE = "weights.safetensors", "average.pt"


class TaggerLoss(nn.Module):
    """The tagger as Trainer and accelerate want a model: a batch in, the loss out."""

    def __init__(self, tagger: Tagger):
        super().__init__()
        self.tagger = tagger

    def forward(self, batch: LatticeBatch) -> Tensor:
        return self.tagger.loss(batch)


class LatticeTrainer(Trainer):
    """Trains a tagger by a BatchPlan.

    The whole plan is one "epoch" of the base class, since the number of steps differs between real epochs. At each
    real epoch's end dev is scored, the best weights are kept in best.safetensors and a checkpoint is written.

    Attributes:
        history: what has been done.
        origin: fingerprint of what the run starts from; a checkpoint of another origin is refused.
    """

    def __init__(
        self,
        *,
        tagger: Tagger,
        train_set: TrainingSet,
        dev_set: EvaluationSet,
        plan: BatchPlan,
        config: TrainingConfig,
        origin: str,
        args: TrainingArguments,
        callbacks: Sequence[TrainerCallback] = (),
    ):
        if args.world_size > 1:
            raise CigeError(f"training runs in one process, but {args.world_size} were started; start one")
        self.config = config
        self.plan = plan
        self.dev_set = dev_set
        self.tagger = tagger
        self.history = History()
        self.origin = origin
        self.folder = Path(str(args.output_dir))
        self.clock = time.perf_counter()
        super().__init__(
            model=TaggerLoss(tagger), args=args, train_dataset=train_set, callbacks=[_Rhythm(self), *callbacks]
        )
        self.remove_callback(PrinterCallback)
        self.average: WeightAverage | None = None
        if config.average_weights:
            self.average = WeightAverage(
                tagger, decay=config.average_weights, settle=lambda: settle(self.create_optimizer())
            )

    # what a step is made of

    def get_train_dataloader(self) -> DataLoader:
        return DataLoader(
            self.train_dataset,  # type: ignore[arg-type]
            batch_sampler=self.plan,
            collate_fn=collate_examples,
        )

    def num_examples(self, dataloader: DataLoader) -> int:
        return len(self.train_dataset)  # type: ignore[arg-type]

    def create_optimizer(self, model: nn.Module | None = None) -> torch.optim.Optimizer:
        if self.optimizer is None:
            self.optimizer = make_optimizer(self.tagger, self.config)
        return self.optimizer

    def create_scheduler(self, num_training_steps: int, optimizer: torch.optim.Optimizer | None = None) -> Any:
        if self.lr_scheduler is None:
            factor = learning_rate_factor(self.config, self.plan)
            self.lr_scheduler = torch.optim.lr_scheduler.LambdaLR(self.create_optimizer(), factor)
            self._created_lr_scheduler = True
        return self.lr_scheduler

    def compute_loss(  # type: ignore[override]
        self, model: nn.Module, inputs: LatticeBatch, return_outputs: bool = False, num_items_in_batch: None = None
    ) -> Tensor:
        return model(inputs)

    def _prepare_inputs(self, inputs: LatticeBatch) -> LatticeBatch:  # type: ignore[override]
        return inputs if inputs.chars.device == self.args.device else inputs.to(self.args.device)

    # The base class counts labels, tokens and operations of batches that are dicts, and asks for the norm of gradients
    # that it does not clip; ours are no dicts, and _Rhythm clips.

    def get_batch_samples(self, epoch_iterator: Iterator[Any], num_batches: int, device: Any) -> tuple[list[Any], None]:
        return list(islice(epoch_iterator, num_batches)), None

    def _get_grad_norm(self, model: nn.Module, grad_norm: Any = None) -> None:
        return None

    def _track_num_input_tokens(self, inputs: Any) -> None: ...

    def floating_point_ops(self, inputs: Any) -> int:
        return 0

    # what happens at the end of an epoch

    def evaluate(self, *_: Any, **__: Any) -> dict[str, float]:
        """Score dev, keep the weights if they are the best so far, and add the epoch's record to `history`."""
        settle(self.create_optimizer())
        history = self.history
        epoch = round(self.plan.epoch_of(self.state.global_step))
        loss = history.loss_sum / (self.state.global_step - history.first_step)
        if not math.isfinite(loss):
            raise CigeError(
                f"the training loss of epoch {epoch} is {loss}; lower training.learning_rate, or check the vectors for "
                "values that are not finite"
            )
        found = self._score_dev() if epoch >= self.config.eval_start_epoch else {}
        record = EpochRecord(
            epoch=epoch,
            step=self.state.global_step,
            loss=loss,
            learning_rate=self._get_learning_rate(),
            seconds=history.seconds + time.perf_counter() - self.clock,
            **found,
        )
        self.clock = time.perf_counter()
        self.history = History(epochs=[*history.epochs, record], first_step=self.state.global_step)
        metrics = {f"eval_{name}": value for name, value in found.items()}
        self.log({"loss": loss, "learning_rate": record.learning_rate, **metrics})
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
        if self.is_finished():
            self.control.should_training_stop = True
        return metrics

    def is_finished(self) -> bool:
        return self.history.is_finished(n_epochs=self.plan.n_epochs, patience=self.config.patience)

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        self.state.epoch = self.plan.epoch_of(self.state.global_step)
        super().log(logs, start_time)

    def _score_dev(self) -> dict[str, float]:
        best = self.history.best
        with self.average.applied() if self.average else nullcontext():
            report = self.dev_set.score(self.tagger)
            if best is None or report.f1 > (best.dev_f1 or 0.0):
                save_weights(self.tagger, self.folder / BEST)
        return {"dev_f1": report.f1, "dev_precision": report.precision, "dev_recall": report.recall}

    # what a kill leaves behind

    def _save_checkpoint(self, model: nn.Module, trial: Any) -> None:
        settle(self.create_optimizer())
        now = time.perf_counter()
        self.history.seconds += now - self.clock
        self.clock = now
        with new_checkpoint(self.folder, self.state.global_step, self.history, origin=self.origin) as folder:
            save_weights(self.tagger, folder / _WEIGHTS)
            if self.average is not None:
                torch.save(self.average.state_dict(), folder / _AVERAGE)
            self._save_optimizer_and_scheduler(str(folder))
            self._save_rng_state(str(folder))
            self.state.save_to_json(str(folder / TRAINER_STATE_NAME))

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: nn.Module | None = None) -> None:
        folder = Path(resume_from_checkpoint)
        self.history = read_history(folder)
        load_weights(self.tagger, folder / _WEIGHTS)
        if self.average is not None:
            self.average.load_state_dict(torch.load(folder / _AVERAGE, weights_only=True))

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        try:
            super()._load_optimizer_and_scheduler(checkpoint)
        except (OSError, RuntimeError, ValueError, KeyError) as reason:
            raise ModelError(
                f"{checkpoint}: the optimiser's state cannot be read ({reason}); start the run over with resume=False"
            ) from reason


class _Rhythm(TrainerCallback):
    """Clips gradients, adds up the loss and tells the base class when to score and to save."""

    def __init__(self, trainer: LatticeTrainer):
        self._trainer = trainer
        self._epoch_ends = frozenset(trainer.plan.steps_after)
        self._every = trainer.config.checkpoint_steps

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        # The base class adds up the loss of all steps since the start; what a resumed epoch had before comes on top.
        self._trainer._tr_loss += self._trainer.history.loss_sum
        self._trainer.clock = time.perf_counter()

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        clip_gradients(self._trainer.tagger.parameters(), self._trainer.config)

    def on_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self._trainer.average is not None:
            self._trainer.average.update()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        at_end = state.global_step in self._epoch_ends
        if at_end or (self._every and state.global_step % self._every == 0):
            self._trainer.history.loss_sum = float(self._trainer._tr_loss)
            control.should_save = True
            control.should_evaluate = at_end
        if at_end:
            self._trainer._tr_loss.zero_()
