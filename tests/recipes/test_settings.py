"""Settings: ranges, spans, durations, and the names that they had in older recipes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from cige.engine.settings import BatchConfig, CheckpointConfig, OptimizerConfig, ScheduleConfig, TrainingConfig
from cige.errors import RecipeError
from cige.recipes.ranges import check_ranges, within
from cige.recipes.spans import parse_span, show_duration, steps_of
from cige.recipes.strict import RENAMED, build_strictly, changed


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: OptimizerConfig(learning_rate=0.0), "learning_rate is 0.0, expected more than 0"),
        (lambda: OptimizerConfig(betas=(0.9,)), "betas has 1 numbers, expected 2"),
        (lambda: OptimizerConfig(betas=(0.9, 1.0)), r"betas is \(0.9, 1.0\), expected less than 1"),
        (lambda: OptimizerConfig(betas=(0.99, 0.9)), "expected the first below the root of the second"),
        (
            lambda: OptimizerConfig(clip_value=3.0),
            "clip_value is 3.0 and clip_norm is 1.0, expected one of them to be null",
        ),
        (lambda: OptimizerConfig(clip_norm=-1.0), "clip_norm is -1.0, expected more than 0"),
        (lambda: ScheduleConfig(warmup="5"), "warmup is '5', expected a number with its unit, one of steps, epochs, %"),
        (lambda: CheckpointConfig(every="2 epochs"), "every is '2 epochs', expected a number with its unit, one of s"),
        (lambda: CheckpointConfig(keep=0), "keep is 0, expected at least 1"),
        (lambda: BatchConfig(batch_size=0), "batch_size is 0, expected at least 1"),
        (lambda: TrainingConfig(n_epochs=0), "n_epochs is 0, expected at least 1"),
        (lambda: TrainingConfig(eval_start_epoch=15), "eval_start_epoch is 15, expected at most 14"),
        (lambda: TrainingConfig(average_weights=1.0), "average_weights is 1.0, expected less than 1"),
    ],
)
def test_out_of_range(make: Any, message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        make()


@dataclass(frozen=True)
class Named:
    n_layers: int = 1
    head_width: int = 1
    offset: int = 0
    mask_prob: float = 1.0
    dropout_prob: float = 0.0
    share: float = -1.0
    n_left_out: int | None = None
    n_extra: int = within(0, min=0)


def test_ranges_that_a_name_states() -> None:
    check_ranges(Named())
    for wrong in (
        {"n_layers": 0}, {"head_width": 0}, {"offset": -1}, {"mask_prob": 1.1}, {"mask_prob": -0.1},
        {"dropout_prob": 1.0}, {"n_left_out": 0}, {"n_extra": -1},
    ):  # fmt: skip
        with pytest.raises(RecipeError, match=rf"{next(iter(wrong))} is .*, expected"):
            check_ranges(Named(**wrong))  # type: ignore[arg-type]


@dataclass(frozen=True)
class Outer:
    optimizer: OptimizerConfig = field(default_factory=lambda: OptimizerConfig(learning_rate=0.5, clip_norm=7.0))


def test_what_a_section_leaves_out_keeps_the_default_of_its_place() -> None:
    made = build_strictly(Outer, {"optimizer": {"learning_rate": "1e-2"}}, {})
    assert made.optimizer == OptimizerConfig(learning_rate=0.01, clip_norm=7.0)
    assert changed(made, {"optimizer.momentum": 0.5}).optimizer.learning_rate == 0.01
    with pytest.raises(RecipeError, match=r"r.yaml:7: optimizer.momentum is -1.0, expected at least 0"):
        build_strictly(Outer, {"optimizer": {"momentum": -1.0}}, {"optimizer.momentum": "r.yaml:7"})


@pytest.mark.parametrize("old", RENAMED)
def test_every_old_name_is_told_with_the_new_one(old: str) -> None:
    values: Any = 3
    for name in reversed(old.split(".")):
        values = {name: values}
    with pytest.raises(RecipeError) as error:
        build_strictly(Outer, values, {old: "r.yaml:4"})
    assert str(error.value) == f"r.yaml:4: {old} is now {RENAMED[old]}"
    with pytest.raises(RecipeError, match=f"^config.{old} is now config.{RENAMED[old].split()[0]}"):
        build_strictly(Outer, {"config": values}, {})  # the folder of a fine-tuning run


def test_all_old_names_of_a_recipe_are_told_at_once() -> None:
    old = {"training": {"batch_size": 3, "clip_threshold": 5}, "rhythm": {"log_steps": 4}}
    with pytest.raises(RecipeError, match=r"batches.batch_size; .*clip_norm or .*; rhythm.log_steps is now"):
        build_strictly(Outer, old, {})


def test_spans() -> None:
    assert parse_span("400 steps") == (400, "steps") and parse_span("1 step") == (1, "steps")
    assert parse_span("2.5 epochs") == (2.5, "epochs") and parse_span("5%") == (5, "%")
    assert [parse_span(text) for text in ("", "steps", "4", "-4 steps", "4 days", "4 steps.", "%s")] == [None] * 7
    assert [steps_of(span, n_steps=1000, n_epochs=4) for span in ("30 steps", "5%", "1.5 epochs")] == [30, 50, 375]


def test_durations() -> None:
    shown = [show_duration(seconds) for seconds in (0.25, 9.96, 45, 119, 120, 750, 7200, 40_000)]
    assert shown == ["0.2 s", "10.0 s", "45 s", "119 s", "2.0 min", "12.5 min", "2.0 h", "11.1 h"]
