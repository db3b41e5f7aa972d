"""CheckpointWriter: each process writes its part of the state, and the first one makes a checkpoint of all parts."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path

from torch import Tensor

from cige.engine.checkpoint import PREFIX, new_checkpoint, reporting_write_errors
from cige.engine.history import RunState
from cige.engine.state_files import flatten, own_part, part_name
from cige.errors import CigeError
from cige.json_text import JsonObject, to_json

VALUES = "state.json"
_PATIENCE = 1800.0  # seconds for which the first process waits for the parts of the others


class CheckpointWriter:
    """Writes one checkpoint after the other.

    Args:
        folder: folder of the run, on storage that all processes share.
        origin: see `new_checkpoint`.
        n_kept: number of checkpoints to keep.
        in_background: copy the state and write the copy while training continues.
        rank, n_processes: this process, and their number.
        meet: returns when all processes have called it.
    """

    def __init__(
        self,
        folder: Path,
        *,
        origin: str,
        n_kept: int,
        in_background: bool,
        rank: int = 0,
        n_processes: int = 1,
        meet: Callable[[], None] = lambda: None,
    ):
        self._folder, self._origin, self._n_kept, self._in_background = folder, origin, n_kept, in_background
        self._rank, self._n_processes, self._meet = rank, n_processes, meet
        self._thread: threading.Thread | None = None
        self._error: Exception | None = None

    def write(self, state: RunState, values: JsonObject) -> None:
        """Write a checkpoint; all processes call this together.

        Args:
            values: the weights and all other values that change, see state_files.

        Raises:
            CigeError: this checkpoint could not be written, or, in the background, the previous one.
        """
        self.wait()
        parts = self._folder / f".{PREFIX}{state.step}.parts"
        if self._rank == 0 and self._n_processes > 1:
            shutil.rmtree(parts, ignore_errors=True)
            parts.mkdir(parents=True)
        self._meet()
        tensors: dict[str, Tensor] = {}
        rest = to_json(flatten(values, "run", tensors), ensure_ascii=True)
        part = own_part(tensors, self._rank, self._n_processes, copy=self._in_background)
        state_part = part_name(self._rank, self._n_processes)
        held = deepcopy(state)

        def work() -> None:
            if self._rank:
                with reporting_write_errors(parts / state_part):
                    part.write(parts / state_part)
                return
            with new_checkpoint(self._folder, held.step, held, origin=self._origin, n_kept=self._n_kept) as aside:
                part.write(aside / state_part)
                (aside / VALUES).write_text(rest, encoding="utf-8")
                for rank in range(1, self._n_processes):
                    name = part_name(rank, self._n_processes)
                    _wait_for(parts / name)
                    os.replace(parts / name, aside / name)
            shutil.rmtree(parts, ignore_errors=True)

        if not self._in_background:
            work()
            self._meet()
            return

        def work_and_keep_error() -> None:
            try:
                work()
            except Exception as error:
                self._error = error

        # A daemon, because a process that ends by an error must not wait for the parts of others.
        self._thread = threading.Thread(target=work_and_keep_error, name="checkpoint", daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Wait until this process has finished writing; raises errors of writing in the background."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self._error is not None:
            error, self._error = self._error, None
            raise error


def _wait_for(path: Path) -> None:
    end = time.monotonic() + _PATIENCE
    while not path.is_file():
        if time.monotonic() > end:
            raise CigeError(
                f"{path}: not found after {_PATIENCE:,.0f} seconds; the process that writes it ended, or the folder "
                "of the run is not on storage that all machines share"
            )
        time.sleep(0.005)
