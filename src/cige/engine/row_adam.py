"""AdamW whose cost for an embedding table depends on the rows that a batch reads, not on the size of the table.

Adam changes every row in every step, even without a gradient, because its momentum decays slowly. For a row that was
last updated in step s, the updates of steps s + 1 ... t without a gradient have a closed form, so they can be delayed
until the row is read again:

    m_i = b1^(i-s) m
    v_i = b2^(i-s) v
    p_t = p_s - m / sqrt(v) * sum of rate_i * sqrt(1 - b2^i) / (1 - b1^i) * (b1 / sqrt(b2))^(i-s) over i = s + 1 ... t

The sum depends only on s and t. The result equals that of dense AdamW except for rounding and Adam's epsilon, which the
closed form adds to sqrt(v) without decay. (torch.optim.SparseAdam omits those steps, so that a rare row changes by only
a tenth as much.)
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from torch import Tensor, nn
from torch.optim.optimizer import StateDict

# Shares of a gradient's effect below which it is zero, and below which float32 weights no longer change.
_DEAD, _AT_REST = 1e-18, 1e-9
_ROWS_AT_ONCE = 4096  # so that intermediate results stay in the cache


class RowAdamW(torch.optim.AdamW):
    """PyTorch's fused AdamW for all parameters except `tables`, which have sparse gradients and are updated by rows.

    Call `catch_up` with the rows of a step before it reads them, and `catch_up_all` before whole tables are read.
    Tables have no weight decay.
    """

    def __init__(
        self,
        groups: Iterable[dict[str, object]],
        *,
        tables: Iterable[nn.Parameter],
        lr: float,
        betas: tuple[float, ...] = (0.9, 0.999),
        eps: float = 1e-8,
    ):
        super().__init__(groups, lr=lr, betas=(betas[0], betas[1]), eps=eps, fused=True)
        self._beta1, self._beta2 = betas
        self._epsilon = eps
        self._ratio = self._beta1 / self._beta2**0.5  # OptimizerConfig ensures that this is below 1
        self._memory, self._at_rest = (
            math.ceil(math.log(share, self._ratio)) if self._ratio else 1 for share in (_DEAD, _AT_REST)
        )  # number of steps without a gradient after which its effect is that small
        self._moments = {table: _Moments(table) for table in tables}
        self._n_steps = 0

    @torch.no_grad()
    def catch_up(self, table: nn.Parameter, rows: Tensor) -> None:
        """Apply the delayed updates of some rows (int64, any shape, repeats allowed)."""
        moments = self._moments[table]
        rows = rows.reshape(-1)
        rows = rows[rows < len(table)]
        rows = rows[moments.last[rows] < self._n_steps].unique()
        if len(rows):
            self._move(table, rows)

    @torch.no_grad()
    def catch_up_all(self) -> None:
        """Apply the delayed updates of all rows; the cost depends on the number of rows with a recent gradient."""
        for table, moments in self._moments.items():
            is_moving = (moments.read > 0) & (moments.last - moments.read < self._at_rest)
            rows = (is_moving & (moments.last < self._n_steps)).nonzero().squeeze(1)
            for part in rows.split(_ROWS_AT_ONCE):
                self._move(table, part)

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        self._n_steps += 1
        rates = {p: group["lr"] for group in self.param_groups for p in group["params"] if p in self._moments}
        for table, rate in rates.items():
            self._note_step(self._moments[table], rate)
            if table.grad is not None:
                self._update(table, table.grad.coalesce(), rate)
                table.grad = None
        super().step(closure)

    def state_dict(self) -> StateDict:
        tables = [dict(vars(moments)) for moments in self._moments.values()]
        return super().state_dict() | {"tables": tables, "n_steps": self._n_steps}

    def load_state_dict(self, state_dict: StateDict) -> None:
        super().load_state_dict(state_dict)
        self._n_steps = state_dict["n_steps"]
        for moments, saved in zip(self._moments.values(), state_dict["tables"], strict=True):
            for name in ("mean", "square", "last", "read"):
                getattr(moments, name).copy_(saved[name])
            moments.delayed = saved["delayed"].clone()

    def _note_step(self, moments: _Moments, rate: float) -> None:
        """Add step i to the sums of all rows last updated at most _memory steps before; delayed[s] is the sum for s."""
        i, delayed = self._n_steps, moments.delayed
        if i >= len(delayed):
            delayed = moments.delayed = torch.cat([delayed, torch.zeros(len(delayed) + 1024, dtype=torch.float64)])
        first = max(0, i - self._memory)
        age = torch.arange(i - first, 0, -1, dtype=torch.float64)  # i - s
        delayed[first:i] += rate * self._correction(i) * self._ratio**age

    def _move(self, table: nn.Parameter, rows: Tensor) -> None:
        moments = self._moments[table]
        last = moments.last[rows]
        age = (self._n_steps - last)[:, None].to(table.dtype)
        sums = moments.delayed.to(last.device)[last][:, None].to(table.dtype)
        mean, square = moments.mean.index_select(0, rows), moments.square.index_select(0, rows)
        middle = last[:, None].to(table.dtype) + 4  # approximate middle of the sum
        epsilon = self._epsilon * (1 - self._beta2**middle).sqrt()
        table.index_add_(0, rows, (square.sqrt().add_(epsilon)).reciprocal_().mul_(mean).mul_(sums), alpha=-1)
        moments.mean.index_copy_(0, rows, mean.mul_(self._beta1**age))
        moments.square.index_copy_(0, rows, square.mul_(self._beta2**age))
        moments.last[rows] = self._n_steps

    def _update(self, table: nn.Parameter, gradient: Tensor, rate: float) -> None:
        """An Adam step of the rows with a gradient, which were caught up to the previous step when they were read."""
        rows, values = gradient.indices()[0], gradient.values()
        moments = self._moments[table]
        mean = torch.lerp(moments.mean[rows], values, 1 - self._beta1)
        square = moments.square[rows] * self._beta2 + values * values * (1 - self._beta2)
        correction = (1 - self._beta2**self._n_steps) ** 0.5
        table[rows] -= rate * self._correction(self._n_steps) * mean / (square.sqrt() + self._epsilon * correction)
        moments.mean[rows], moments.square[rows] = mean, square
        moments.last[rows] = moments.read[rows] = self._n_steps

    def _correction(self, step: int) -> float:
        """Adam's bias correction for moments that start at zero."""
        return (1 - self._beta2**step) ** 0.5 / (1 - self._beta1**step)


class _Moments:
    """Adam's two moments of a table, as of step `last` of each row; `read` is the step of its last gradient, or 0.

    delayed[s] is the sum of the updates that are delayed for rows with `last` s.
    """

    def __init__(self, table: nn.Parameter):
        self.mean = torch.zeros_like(table)
        self.square = torch.zeros_like(table)
        self.last = torch.zeros(len(table), dtype=torch.int64, device=table.device)
        self.read = torch.zeros_like(self.last)
        self.delayed = torch.zeros(1, dtype=torch.float64)
