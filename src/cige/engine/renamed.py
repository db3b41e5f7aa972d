"""Settings that had another name in older recipes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cige.errors import RecipeError

RENAMED = {
    # tagging
    "training.batch_size": "batches.batch_size",
    "training.max_pairs": "batches.max_pairs",
    "training.pool_batches": "batches.pool_batches",
    "training.optimizer": "optimizer.name",
    "training.learning_rate": "optimizer.learning_rate",
    "training.embedding_learning_rate_scale": "optimizer.embedding_learning_rate_scale",
    "training.bert_learning_rate_scale": "optimizer.bert_learning_rate_scale",
    "training.weight_decay": "optimizer.weight_decay",
    "training.momentum": "optimizer.momentum",
    "training.schedule": "schedule.name",
    "training.decay": "schedule.decay",
    "training.warmup_ratio": 'schedule.warmup, such as "5%"',
    "training.warmup_epochs": 'schedule.warmup, such as "10 epochs"',
    "training.clip": "optimizer.clip_norm and optimizer.clip_value",
    "training.clip_threshold": "optimizer.clip_norm or optimizer.clip_value",
    "training.checkpoint_steps": 'checkpoints.every, such as "500 steps"',
    # pre-training
    "optimizer.n_warmup_steps": 'schedule.warmup, such as "500 steps"',
    "optimizer.beta1": "optimizer.betas, such as [0.9, 0.999]",
    "optimizer.beta2": "optimizer.betas, such as [0.9, 0.999]",
    "optimizer.precision": "training.precision",
    "rhythm.log_steps": 'training.log_every, such as "50 steps"',
    "rhythm.eval_steps": 'training.eval_every, such as "500 steps"',
    "rhythm.n_eval_instances": "training.n_eval_instances",
    "rhythm.checkpoint_steps": 'checkpoints.every, such as "500 steps"',
    "rhythm.n_checkpoints": "checkpoints.keep",
    "rhythm.n_workers": "training.n_workers",
    # fine-tuning
    "config.n_epochs": "config.training.n_epochs",
    "config.batch_size": "config.batches.batch_size",
    "config.pool_batches": "config.batches.pool_batches",
    "config.learning_rate": "config.optimizer.learning_rate",
    "config.warmup_ratio": 'config.schedule.warmup, such as "10%"',
    "config.weight_decay": "config.optimizer.weight_decay",
    "config.clip_norm": "config.optimizer.clip_norm",
    "config.precision": "config.training.precision",
}
"""Key of an older version -> what it is called now."""


def refuse_renamed(values: Mapping[str, Any], origins: Mapping[str, str]) -> None:
    """Raise RecipeError, with every new name, where a recipe has keys of older versions."""
    found = []
    for old, new in RENAMED.items():
        inner: Any = values
        for name in old.split("."):
            inner = inner.get(name, ...) if isinstance(inner, Mapping) else ...
        if inner is not ...:
            where = f"{origins[old]}: " if old in origins else ""
            found.append(f"{where}{old} is now {new}")
    if found:
        raise RecipeError("; ".join(found))
