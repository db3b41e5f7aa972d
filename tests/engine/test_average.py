"""WeightAverage."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from cige.training.average import EVERY, WeightAverage


def moved(model: nn.Linear, average: WeightAverage, values: list[float]) -> None:
    """One value a whole interval."""
    for value in values:
        with torch.no_grad():
            model.weight.fill_(value)
        for _ in range(EVERY):
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
    average.update()
    other = nn.Linear(1, 1)
    restored = WeightAverage(other, decay=0.9)
    restored.load_state_dict(average.state_dict())
    for a, m in ((average, model), (restored, other)):
        moved(m, a, [4.0])
    assert averaged(model, average) == averaged(other, restored)
