"""RunConfig: the settings of a run that do not depend on its objective."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import nn

from cige.engine.settings import CheckpointConfig, OptimizerConfig, ScheduleConfig, Sharding


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """The settings of a run that do not depend on its objective.

    Attributes:
        name: shown with the progress.
        n_steps: number of steps of all objectives together; n_epochs: the corresponding number of epochs, or None if
            the length of the run is given in steps.
        scales: maps parts of the network to the factor by which their learning rate is multiplied.
        average_weights, eval_start_epoch, patience: see TrainingConfig.
        log_every, eval_every: interval between summaries of training and between evaluations; None for the end of each
            epoch. Both are also made at the end of an objective.
        n_workers: number of processes that prepare batches for each training process; 0 prepares them in the training
            process.
        sharding: how several processes share the network, see engine/parallel.py; shards: the parts of it that FSDP
            gathers one at a time.
    """

    name: str
    n_steps: int
    n_epochs: int | None = None
    optimizer: OptimizerConfig
    schedule: ScheduleConfig
    checkpoints: CheckpointConfig
    scales: Mapping[nn.Module, float] | None = None
    average_weights: float = 0.0
    eval_start_epoch: int = 1
    patience: int = 0
    log_every: str | None = None
    eval_every: str | None = None
    n_workers: int = 0
    sharding: Sharding = "ddp"
    shards: Sequence[nn.Module] = ()

    @classmethod
    def in_epochs(cls, settings: Any, **others: Any) -> RunConfig:
        """The configuration of a run whose length is given in epochs.

        Args:
            settings: a recipe with the sections `training` (a TrainingConfig), `optimizer`, `schedule`, `checkpoints`.
        """
        training = settings.training
        return cls(
            n_epochs=training.n_epochs,
            optimizer=settings.optimizer,
            schedule=settings.schedule,
            checkpoints=settings.checkpoints,
            average_weights=training.average_weights,
            eval_start_epoch=training.eval_start_epoch,
            patience=training.patience,
            **others,
        )
