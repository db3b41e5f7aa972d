"""run: a whole run in its folder: claim it, return a finished result, or else train, save and write the result."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic

from torch import nn

from cige.engine.devices import prepare
from cige.engine.objective import Objective
from cige.engine.parallel import of_first_process
from cige.engine.run_config import RunConfig
from cige.engine.run_folder import RESULT, R, claim, read_result, refuse_foreign, write_result
from cige.engine.trainer import Trainer
from cige.errors import RecipeError
from cige.folders.in_use import in_use

if TYPE_CHECKING:
    from accelerate import Accelerator


@dataclass(frozen=True)
class Training(Generic[R]):
    """What a run trains, and what becomes of it; `network`, `config` and `origin` are those of Trainer.

    Attributes:
        objectives: what it is trained on, one after the other.
        finish: saves the model and returns the result. All processes call it; the result of the first one counts.
        after: called with the number of an objective, from 0, when that is done.
    """

    network: nn.Module
    config: RunConfig
    origin: str
    objectives: Sequence[Objective[Any, Any]]
    finish: Callable[[Trainer], R]
    after: Callable[[Trainer, int], None] = lambda trainer, number: None


@dataclass(frozen=True)
class RunKind(Generic[R]):
    """What the runs of one kind have in common.

    Attributes:
        result: the class of their results; load: reads a recipe from the YAML file of a folder.
        check: raises an error if a recipe and a number of processes do not suit each other.
        check_finished: raises an error if the data are others than those of a finished run, given its result.
        may_skip_weights: as in `prepare`.
    """

    result: type[R]
    load: Callable[[Path], Any]
    check: Callable[[Any, int], None] = lambda recipe, n_processes: None
    check_finished: Callable[[R], None] = lambda result: None
    may_skip_weights: bool = True


def run(
    kind: RunKind[R],
    begin: Callable[[Accelerator], Training[R]],
    folder: Path,
    recipe: Any,
    *,
    seed: int,
    device: str,
    resume: bool,
    show_progress: bool,
    stop_at: float = math.inf,
) -> R | None:
    """Train in one process or as one of several; a finished run is not repeated, and an interrupted one continues.

    Args:
        begin: reads data and makes the network; called only if there is something to train.
        recipe: all settings, a dataclass whose section `training` has the `precision`.
        stop_at: the time.monotonic() at which to write a checkpoint and stop; the result is None then.

    Raises:
        CigeError: see its subclasses; a RecipeError if the folder holds another run, or a finished one on other data,
            or if another process writes to it.
    """
    if not 0 <= seed < 2**63:
        raise RecipeError(f"seed is {seed}, expected a whole number from 0 to 2^63 - 1")
    accelerator = prepare(device, precision=recipe.training.precision, may_skip_weights=kind.may_skip_weights)
    kind.check(recipe, accelerator.num_processes)
    with ExitStack() as held:
        if accelerator.is_main_process:
            refuse_foreign(folder)
            held.enter_context(in_use(folder, by="another run", error=RecipeError))
            claim(folder, recipe, seed=seed, resume=resume, load=kind.load)
        accelerator.wait_for_everyone()
        if (folder / RESULT).is_file():
            finished = read_result(folder, kind.result)
            kind.check_finished(finished)
            return finished
        training = begin(accelerator)
        trainer = Trainer(
            training.network,
            training.config,
            accelerator=accelerator,
            folder=folder,
            origin=training.origin,
            seed=seed,
            show_progress=show_progress,
        )
        trainer.resume()
        for number, objective in enumerate(training.objectives):
            if not trainer.run(objective, stop_at=stop_at):
                return None
            training.after(trainer, number)
        result = training.finish(trainer)
        if accelerator.is_main_process:
            write_result(result)
        return of_first_process(result, accelerator)
