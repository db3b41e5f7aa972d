"""WeightAverage."""

from __future__ import annotations

import pytest
import torch
from table_steps import N_ROWS, WIDTH, rates, step
from torch import nn

from cige.engine.optimizer import AVERAGE_EVERY as EVERY
from cige.engine.optimizer import WeightAverage
from cige.engine.row_adam import RowAdamW


def moved(model: nn.Linear, average: WeightAverage, values: list[float]) -> None:
    """A value for each update."""
    for value in values:
        with torch.no_grad():
            model.weight.fill_(value)
        average.update()


def averaged(model: nn.Linear, average: WeightAverage) -> float:
    with average.applied():
        return model.weight.item()


def test_values() -> None:
    model = nn.Linear(1, 1, bias=False)
    nn.init.constant_(model.weight, 0.0)
    average = WeightAverage(model, decay=0.5 ** (1 / EVERY))
    expected = 0.0
    for n, value in enumerate([1.0, 3.0, -2.0, 5.0, 5.0, 5.0, 5.0, 5.0], start=1):
        moved(model, average, [value])
        decay = min(0.5, (1 + n) / (10 + n))
        expected = decay * expected + (1 - decay) * value
        assert averaged(model, average) == pytest.approx(expected, abs=1e-5)
        assert model.weight.item() == value  # back as it was


def test_state() -> None:
    model = nn.Linear(1, 1)
    average = WeightAverage(model, decay=0.9)
    moved(model, average, [1.0, 2.0])
    other = nn.Linear(1, 1)
    restored = WeightAverage(other, decay=0.9)
    restored.load_state_dict(average.state_dict())
    for a, m in ((average, model), (restored, other)):
        moved(m, a, [4.0])
    assert averaged(model, average) == averaged(other, restored)


def test_only_what_is_trained_is_copied() -> None:
    model = nn.Sequential(nn.Embedding.from_pretrained(torch.zeros(1000, 2)), nn.Linear(2, 1))
    average = WeightAverage(model, decay=0.9)
    assert sum(tensor.numel() for tensor in average.state_dict().values()) == 3 + 1  # and the count


def test_due_every_so_many_steps() -> None:
    average = WeightAverage(nn.Linear(1, 1), decay=0.9)
    assert [step for step in range(1, 3 * EVERY) if average.is_due(step)] == [EVERY, 2 * EVERY]


class Table(nn.Module):
    def __init__(self, start: torch.Tensor):
        super().__init__()
        self.weight = nn.Parameter(start.clone())


@pytest.mark.parametrize("n_steps", [2 * EVERY, 50 * EVERY])
def test_the_average_of_a_table_updated_by_rows_is_that_of_dense_adamw(n_steps: int) -> None:
    """Rows that no batch reads any more still move; an average of what they were when last read would lag behind."""
    torch.manual_seed(0)
    start = torch.randn(N_ROWS, WIDTH)
    dense, by_rows = Table(start), Table(start)
    reference = torch.optim.AdamW([{"params": [dense.weight], "weight_decay": 0.0}], lr=1e-2)
    optimizer = RowAdamW([{"params": [by_rows.weight]}], tables=[by_rows.weight], lr=1e-2)
    expected = WeightAverage(dense, decay=0.99)
    found, stale = WeightAverage(by_rows, decay=0.99), WeightAverage(by_rows, decay=0.99)
    for number, rate in enumerate(rates(n_steps), start=1):
        rows, target = (torch.rand(4, 2) ** 4 * N_ROWS).long(), torch.randn(4, 2, WIDTH)
        step(reference, dense.weight, rows, target, rate)
        step(optimizer, by_rows.weight, rows, target, rate)
        if found.is_due(number):
            expected.update()
            stale.update()
            optimizer.catch_up_all()  # as the trainer does
            found.update()
    optimizer.catch_up_all()
    moved = (expected.state_dict()["module.0"] - start).abs().max().item()
    errors = [
        (a.state_dict()["module.0"] - expected.state_dict()["module.0"]).abs().max().item() for a in (found, stale)
    ]
    assert moved > 1e-3 and errors[0] < 1e-3 * moved < 10 * errors[1]
    torch.testing.assert_close(dense.weight, by_rows.weight, atol=1e-3 * moved, rtol=0)


def test_rows_at_rest_are_left_alone_and_lose_nothing() -> None:
    """A row without a gradient for many steps is no longer caught up, since it has stopped; read again, it goes on."""
    torch.manual_seed(0)
    start = torch.randn(4, WIDTH)
    tables = [nn.Parameter(start.clone()) for _ in range(2)]
    dense = torch.optim.AdamW([{"params": [tables[0]], "weight_decay": 0.0}], lr=1e-2)
    by_rows = RowAdamW([{"params": [tables[1]]}], tables=[tables[1]], lr=1e-2)
    for number in range(900):
        rows = torch.tensor([number % 2, 2 if number in (0, 850) else 1])
        target = torch.randn(2, WIDTH)
        for optimizer, table in zip((dense, by_rows), tables, strict=True):
            step(optimizer, table, rows, target, 1e-2)
        if number % EVERY == EVERY - 1:
            by_rows.catch_up_all()
            torch.testing.assert_close(*tables, atol=1e-5, rtol=0)
    by_rows.catch_up_all()
    torch.testing.assert_close(*tables, atol=1e-5, rtol=0)
    assert torch.equal(tables[1][3], start[3])
