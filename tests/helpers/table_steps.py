"""Steps of an optimiser whose table is read by rows."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

from cige.engine.row_adam import RowAdamW

N_ROWS, WIDTH = 60, 5


def rates(n_steps: int) -> list[float]:
    return [1e-2 * min(1.0, (k + 1) / 10) * (1 - k / n_steps) for k in range(n_steps)]


def step(optimizer: torch.optim.Optimizer, table: nn.Parameter, rows: torch.Tensor, target: torch.Tensor, rate: float):
    optimizer.param_groups[0]["lr"] = rate
    table.grad = None
    is_sparse = isinstance(optimizer, RowAdamW)
    if is_sparse:
        optimizer.catch_up(table, rows)
    read = F.embedding(rows, table, sparse=is_sparse)
    (read - target).square().sum().backward()
    optimizer.step()
    return read.detach()
