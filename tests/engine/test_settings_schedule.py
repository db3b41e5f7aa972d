"""The learning rate, step by step."""

from __future__ import annotations

import pytest

from cige.engine.settings import ScheduleConfig, learning_rate_factor
from cige.errors import RecipeError


def factors(**settings: object) -> list[float]:
    """Factors of a run of 4 epochs of 5 steps."""
    factor = learning_rate_factor(ScheduleConfig(**settings), n_steps=20, n_epochs=4)  # type: ignore[arg-type]
    return [factor(step, step // 5) for step in range(21)]


def test_linear() -> None:
    found = factors(name="linear", warmup="20%")
    assert found[:5] == pytest.approx([0, 0.25, 0.5, 0.75, 1])
    assert found[4:] == pytest.approx([(20 - k) / 16 for k in range(4, 21)])
    assert found[20] == 0


def test_inverse_epoch_is_the_papers_decay() -> None:
    found = factors(name="inverse_epoch", decay=0.05, warmup="0%")
    assert [found[k] for k in (0, 4, 5, 10, 19)] == pytest.approx([1, 1, 1 / 1.05, 1 / 1.1, 1 / 1.15])


def test_warm_up_in_epochs_and_decay_together() -> None:
    found = factors(name="inverse_epoch", decay=0.05, warmup="2 epochs")
    assert [found[k] for k in (0, 1, 5, 9, 10)] == pytest.approx([0, 0.1, 0.5 / 1.05, 0.9 / 1.05, 1 / 1.1])


def test_constant() -> None:
    assert factors(name="constant", warmup="10%")[:4] == pytest.approx([0, 0.5, 1, 1])
    assert set(factors(name="constant", warmup="0%")) == {1.0}


@pytest.mark.parametrize(
    ("warmup", "n_epochs", "message"),
    [("21 steps", 4, "expected at most 20 steps"), ("5 epochs", 4, "at most 4 epochs"), ("101%", 4, "at most 100 %"),
     ("1 epochs", None, "the run is measured in steps")],
)  # fmt: skip
def test_a_warm_up_longer_than_the_run(warmup: str, n_epochs: int | None, message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        learning_rate_factor(ScheduleConfig(warmup=warmup), n_steps=20, n_epochs=n_epochs)
