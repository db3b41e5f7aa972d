"""RowAdamW moves a table as dense AdamW does."""

from __future__ import annotations

import pytest
import torch
from table_steps import N_ROWS, WIDTH, rates, step
from torch import nn

from cige.engine.row_adam import RowAdamW


@pytest.mark.parametrize(
    ("n_steps", "settings"), [(3, {}), (40, {}), (900, {}), (300, {"betas": (0.8, 0.95), "eps": 1e-6})]
)
def test_equals_dense_adamw(n_steps: int, settings: dict) -> None:
    torch.manual_seed(0)
    start = torch.randn(N_ROWS, WIDTH)
    dense, by_rows = nn.Parameter(start.clone()), nn.Parameter(start.clone())
    reference = torch.optim.AdamW([{"params": [dense], "weight_decay": 0.0}], lr=1e-2, **settings)
    optimizer = RowAdamW([{"params": [by_rows]}], tables=[by_rows], lr=1e-2, **settings)
    for rate in rates(n_steps):
        rows = (torch.rand(4, 2) ** 4 * N_ROWS).long()  # a few rows are read all the time, most of them hardly ever
        target = torch.randn(4, 2, WIDTH)
        read = [step(o, t, rows, target, rate) for o, t in ((reference, dense), (optimizer, by_rows))]
        torch.testing.assert_close(read[0], read[1], atol=1e-4, rtol=0)
    optimizer.catch_up_all()
    moved = (dense - start).abs().max().item()
    assert moved > 1e-3
    torch.testing.assert_close(dense, by_rows, atol=1e-3 * moved, rtol=0)
    assert torch.equal(by_rows[-1], start[-1]) == torch.equal(dense[-1], start[-1])


def test_other_parameters_take_the_dense_path() -> None:
    torch.manual_seed(0)
    start = torch.randn(3, 3)
    matrices = [nn.Parameter(start.clone()) for _ in range(2)]
    table = nn.Parameter(torch.zeros(2, 2))
    groups = [{"params": [table]}, {"params": [matrices[1]], "weight_decay": 0.1}]
    optimizers = [
        torch.optim.AdamW([matrices[0]], lr=0.1, weight_decay=0.1, fused=True),
        RowAdamW(groups, tables=[table], lr=0.1),
    ]
    for _ in range(5):
        gradient = torch.randn(3, 3)
        for matrix, optimizer in zip(matrices, optimizers, strict=True):
            matrix.grad = gradient.clone()
            optimizer.step()
    assert torch.equal(*matrices) and not torch.equal(matrices[0], start)


def test_state_goes_to_disk_and_back() -> None:
    def fresh() -> tuple[nn.Parameter, RowAdamW]:
        torch.manual_seed(1)
        table = nn.Parameter(torch.randn(N_ROWS, WIDTH))
        return table, RowAdamW([{"params": [table]}], tables=[table], lr=1e-2)

    torch.manual_seed(2)
    work = [((torch.rand(6) ** 3 * N_ROWS).long(), torch.randn(6, WIDTH), rate) for rate in rates(30)]
    whole, optimizer = fresh()
    for rows, target, rate in work:
        step(optimizer, whole, rows, target, rate)
    cut, optimizer_a = fresh()
    for rows, target, rate in work[:11]:
        step(optimizer_a, cut, rows, target, rate)
    _, optimizer_b = fresh()
    resumed = nn.Parameter(cut.detach().clone())
    optimizer_b = RowAdamW([{"params": [resumed]}], tables=[resumed], lr=1e-2)
    optimizer_b.load_state_dict(optimizer_a.state_dict())
    for rows, target, rate in work[11:]:
        step(optimizer_b, resumed, rows, target, rate)
    for o in (optimizer, optimizer_b):
        o.catch_up_all()
    assert torch.equal(whole, resumed)


def test_a_row_never_read_stays() -> None:
    table = nn.Parameter(torch.ones(4, 2))
    optimizer = RowAdamW([{"params": [table]}], tables=[table], lr=0.1)
    step(optimizer, table, torch.tensor([1]), torch.zeros(1, 2), 0.1)
    optimizer.catch_up_all()
    assert torch.equal(table[[0, 2, 3]], torch.ones(3, 2)) and (table[1] < 1).all()
