"""Optimisers: parameter groups, and clipping."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from cige.nn.embeddings import SplitEmbedding
from cige.training.recipe import TrainingConfig


def parameter_groups(model: nn.Module, config: TrainingConfig) -> list[dict]:
    """Embedding tables (own learning rate, no decay), matrices (decay), vectors such as biases (no decay)."""
    tables = [m.tuned for m in model.modules() if isinstance(m, SplitEmbedding)]
    table_ids = {id(t) for t in tables}
    others = [p for p in model.parameters() if p.requires_grad and id(p) not in table_ids]
    rate = config.learning_rate
    groups = [
        {"params": tables, "lr": rate * config.embedding_learning_rate_scale, "weight_decay": 0.0},
        {"params": [p for p in others if p.ndim > 1], "lr": rate, "weight_decay": config.weight_decay},
        {"params": [p for p in others if p.ndim <= 1], "lr": rate, "weight_decay": 0.0},
    ]
    return [group for group in groups if group["params"]]


def make_optimizer(model: nn.Module, config: TrainingConfig) -> torch.optim.Optimizer:
    groups = parameter_groups(model, config)
    if config.optimizer == "sgd":
        return torch.optim.SGD(groups, lr=config.learning_rate, momentum=config.momentum)
    return torch.optim.AdamW(groups, lr=config.learning_rate, fused=True)


def clip_gradients(parameters: Iterable[nn.Parameter], config: TrainingConfig) -> Tensor:
    """Clip in place; the total norm before clipping (0 where it was not needed)."""
    parameters = [p for p in parameters if p.grad is not None]
    if config.clip == "norm":
        return nn.utils.clip_grad_norm_(parameters, config.clip_threshold)
    if config.clip == "value":
        nn.utils.clip_grad_value_(parameters, config.clip_threshold)
    return torch.zeros(())
