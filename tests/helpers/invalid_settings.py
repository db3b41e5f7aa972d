"""Silly values for every setting, which recipes refuse or training bears."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any, get_type_hints

from cige.engine.settings import BatchConfig, CheckpointConfig, ScheduleConfig, TrainingConfig

# The sections that recipes of several kinds share.
SHARED = {"schedule": ScheduleConfig, "checkpoints": CheckpointConfig}
IN_EPOCHS = SHARED | {"training": TrainingConfig, "batches": BatchConfig}

SILLY: dict[type, list[Any]] = {
    int: [-1, 0, 1, 3],
    float: [float("nan"), float("inf"), -0.1, 0.0, 1.0, 1.5],
    tuple: [[], [-1], ["?"], ["hh", "hh"], [3]],
}


def kinds_of(hint: Any) -> list[type]:
    """The kinds of number or list that a field of that type takes; none for texts, switches and choices."""
    shown = str(hint)
    if hint in (int, float):
        return [hint]
    return [kind for kind in SILLY if f"{kind.__name__} |" in shown or shown.startswith(f"{kind.__name__}[")]


def silly_values(config: type, *, without: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    hints = get_type_hints(config)
    for field in fields(config):
        for kind in kinds_of(hints[field.name]):
            if field.name not in without:
                yield from ((field.name, value) for value in SILLY[kind])
