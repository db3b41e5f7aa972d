"""Stopping a run in the middle of a step: after its gradients were made, before the optimiser uses them."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from cige.engine import trainer


@contextmanager
def stopped_at(step: int, stop: Callable[[], Any]) -> Iterator[None]:
    """Within the block every Trainer calls `stop` in the middle of step `step`, counted from 0 over all sittings."""
    ordinary = trainer.Trainer._clip_and_check

    def clip_and_check(self: trainer.Trainer, loss: Any) -> None:
        if self.state.step == step:
            stop()
        ordinary(self, loss)

    trainer.Trainer._clip_and_check = clip_and_check  # type: ignore[method-assign]
    try:
        yield
    finally:
        trainer.Trainer._clip_and_check = ordinary  # type: ignore[method-assign]


def die() -> None:
    """End this process as a full machine or a pulled plug would."""
    os.kill(os.getpid(), signal.SIGKILL)


def steps(n: int, *, below: int, seed: int) -> list[int]:
    """Random steps to stop at, one after another: each is later than the last."""
    return sorted(random.Random(seed).sample(range(below), n))


def interrupt() -> None:
    raise KeyboardInterrupt
