"""The optimiser of pre-training: Adam with decoupled weight decay, biases and normalisations excepted."""

from __future__ import annotations

import torch
from torch import nn

from cige.pretraining.recipe import OptimizerConfig


def make_optimizer(model: nn.Module, config: OptimizerConfig) -> torch.optim.Optimizer:
    """AdamW; what has one axis (biases, gains of normalisations) is not decayed, tables and matrices are."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in parameters if p.ndim > 1], "weight_decay": config.weight_decay},
        {"params": [p for p in parameters if p.ndim <= 1], "weight_decay": 0.0},
    ]
    betas = (config.beta1, config.beta2)
    return torch.optim.AdamW(groups, lr=config.learning_rate, betas=betas, eps=config.epsilon, fused=True)
