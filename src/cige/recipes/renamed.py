"""Settings that had a different name in older recipes."""

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
    "n_epochs": "training.n_epochs",
    "batch_size": "batches.batch_size",
    "pool_batches": "batches.pool_batches",
    "learning_rate": "optimizer.learning_rate",
    "warmup_ratio": 'schedule.warmup, such as "10%"',
    "weight_decay": "optimizer.weight_decay",
    "clip_norm": "optimizer.clip_norm",
    "precision": "training.precision",
}
"""Maps keys of older versions to their current names."""


def refuse_renamed(values: Mapping[str, Any], origins: Mapping[str, str]) -> None:
    """Raise a RecipeError that states the new names if a recipe has keys of older versions."""
    renamed = []
    for section in ("", "config."):  # the folder of a fine-tuning run has its recipe in section `config`
        for old, new in RENAMED.items():
            if _has(values, key := f"{section}{old}"):
                where = f"{origins[key]}: " if key in origins else ""
                renamed.append(f"{where}{key} is now {section}{new}")
    if renamed:
        raise RecipeError("; ".join(renamed))


def _has(values: Any, key: str) -> bool:
    for name in key.split("."):
        if not isinstance(values, Mapping) or name not in values:
            return False
        values = values[name]
    return True
