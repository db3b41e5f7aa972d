"""Checkpoints: the weights and the state of an unfinished run on disk, written completely or not at all."""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from cige.engine.history import RunState
from cige.engine.state_files import flatten, own_part, part_name
from cige.errors import CigeError, ModelError
from cige.folders.atomic import atomic_file, atomic_folder
from cige.folders.kinds import CHECKPOINT
from cige.folders.manifest import read_manifest, write_manifest
from cige.json_text import JsonObject, to_json

T = TypeVar("T")

PREFIX, VALUES = "checkpoint-", "state.json"
_VERSION, _HISTORY = 2, "history.json"
_PATIENCE = 1800.0  # seconds for which the first process waits for the parts of the others


def trained_weights(model: nn.Module) -> dict[str, Tensor]:
    """All trainable parameters by name; other parameters can be recreated from their source."""
    return {name: p.detach() for name, p in model.named_parameters() if p.requires_grad}


def save_weights(model: nn.Module, path: Path) -> None:
    """Write the trainable parameters to a safetensors file."""
    weights = {name: weight.cpu().contiguous() for name, weight in trained_weights(model).items()}
    with reporting_write_errors(path), atomic_file(path) as aside:
        save_file(weights, aside)


@torch.no_grad()
def load_weights(model: nn.Module, path: Path) -> None:
    """Load the trainable parameters; raises ModelError if the file is missing, damaged or of another network."""
    try:
        saved = load_file(path)
    except (OSError, SafetensorError) as reason:
        raise ModelError(f"{path}: cannot be read ({reason}); start the run over with resume=False") from reason
    weights = trained_weights(model)
    given = {name: (weight.shape, weight.is_floating_point()) for name, weight in saved.items()}
    must_fit(path, given, {name: (weight.shape, True) for name, weight in weights.items()})
    for name, weight in weights.items():
        weight.copy_(saved[name])


def must_fit(path: Path, given: Mapping[str, object], expected: Mapping[str, object]) -> None:
    """Raise a ModelError if the shapes of saved weights, by name, are not those of the network."""
    wrong = sorted(name for name, _ in given.items() ^ expected.items())
    if wrong:
        raise ModelError(
            f"{path}: not the weights of this network ({wrong[0]} does not fit); start the run over with resume=False"
        )


@contextmanager
def new_checkpoint(folder: Path, step: int, state: Any, *, origin: str, n_kept: int = 1) -> Iterator[Path]:
    """Yield a folder for the state after `step` steps; when it is complete, the oldest checkpoints are deleted.

    Args:
        state: a dataclass of plain values.
        origin: fingerprint of the data, vectors and words from which the run started.
        n_kept: number of checkpoints to keep, including the new one.
    """
    path = folder / f"{PREFIX}{step}"
    with reporting_write_errors(path), atomic_folder(path) as aside:
        yield aside
        (aside / _HISTORY).write_text(to_json(asdict(state), ensure_ascii=True), encoding="utf-8")
        write_manifest(aside, kind=CHECKPOINT, version=_VERSION, origin=origin)
    discard_checkpoints(folder, n_kept=n_kept)


def last_checkpoint(folder: Path, *, origin: str) -> Path | None:
    """The newest checkpoint of a run; raises ModelError if it is damaged, or the run did not start from `origin`."""
    newest = next(reversed(_checkpoints(folder)), None)
    if newest is None:
        return None
    facts = read_manifest(newest, kind=CHECKPOINT, version=_VERSION, error=ModelError)
    if facts["version"] < _VERSION:
        raise ModelError(
            f"{newest}: written by an earlier version of cige; finish the run with that one, or start over with "
            "resume=False (--no-resume)"
        )
    if facts.get("origin") != origin:
        raise ModelError(
            f"{newest}: written by a run that started from other data, vectors or words, so this one cannot continue "
            "from it; bring those back, or start the run over with resume=False (--no-resume)"
        )
    return newest


def read_state(checkpoint: Path, make: Callable[[JsonObject], T]) -> T:
    """Convert the state that `new_checkpoint` wrote with `make`; raises ModelError if it is damaged."""
    try:
        return make(json.loads((checkpoint / _HISTORY).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError) as reason:
        raise ModelError(f"{checkpoint}: is damaged ({reason}); start the run over with resume=False") from reason


def discard_checkpoints(folder: Path, *, n_kept: int = 0) -> None:
    """Delete all checkpoints except the newest `n_kept`, and incomplete checkpoints of a killed run."""
    checkpoints = _checkpoints(folder)
    for path in [*checkpoints[: max(0, len(checkpoints) - n_kept)], *folder.glob(f".{PREFIX}*")]:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)


def _checkpoints(folder: Path) -> list[Path]:
    """The complete checkpoints, from oldest to newest."""
    folders = [p for p in folder.glob(f"{PREFIX}*") if p.is_dir() and p.name[len(PREFIX) :].isdecimal()]
    return sorted(folders, key=lambda p: int(p.name[len(PREFIX) :]))


@contextmanager
def reporting_write_errors(path: Path) -> Iterator[None]:
    """Context manager that turns a failed write (such as a full disk) into an error that says what is preserved."""
    try:
        yield
    except CigeError:
        raise
    except (OSError, RuntimeError, SafetensorError) as reason:
        raise CigeError(
            f"{path} could not be written ({reason}); what was saved before is untouched. Make room and run the same "
            "command again: training continues from the last checkpoint"
        ) from reason


class CheckpointWriter:
    """Writes one checkpoint after the other: each process its part of the state, and the first one the rest.

    Args:
        folder: folder of the run, on storage that all processes share.
        origin, n_kept: see `new_checkpoint`.
        in_background: copy the state and write the copy while training continues.
        rank, n_processes: this process, and their number; `meet` returns when all of them have called it.
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
        """Write the weights and all other `values` that change (see state_files); all processes call this together.

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
        names = [part_name(rank, self._n_processes) for rank in range(self._n_processes)]
        own, held = names[self._rank], deepcopy(state)

        def work() -> None:
            if self._rank:
                with reporting_write_errors(parts / own):
                    part.write(parts / own)
                return
            with new_checkpoint(self._folder, held.step, held, origin=self._origin, n_kept=self._n_kept) as aside:
                part.write(aside / own)
                (aside / VALUES).write_text(rest, encoding="utf-8")
                for name in names[1:]:
                    _wait_for(parts / name)
                    os.replace(parts / name, aside / name)
            shutil.rmtree(parts, ignore_errors=True)

        def work_and_keep_error() -> None:
            try:
                work()
            except Exception as error:
                self._error = error

        if self._in_background:
            # A daemon, because a process that ends by an error must not wait for the parts of others.
            self._thread = threading.Thread(target=work_and_keep_error, name="checkpoint", daemon=True)
            self._thread.start()
        else:
            work()
            self._meet()

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
