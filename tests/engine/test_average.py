"""WeightAverage."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from cige.engine.average import EVERY, WeightAverage


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
