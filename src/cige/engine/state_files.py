"""The state of a run as files: one per process, each with a part of it; any number of processes can read them.

A state is nested dicts, lists and plain values with tensors in them. A tensor that several processes share by rows
(DTensor, of FSDP) is written in these rows. Any other tensor is the same in all processes, and one of them writes it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from cige.engine.parallel import is_sharded
from cige.errors import ModelError
from cige.folders.atomic import atomic_file
from cige.json_text import JsonObject, to_json

_NAME, _GLOB = "state-{:05}-of-{:05}.safetensors", "state-*-of-*.safetensors"


@dataclass(frozen=True)
class StatePart:
    """The part of the state that one process writes."""

    tensors: dict[str, Tensor]  # on the CPU
    rows: dict[str, tuple[int, list[int]]]  # first row of each tensor in the whole tensor, and the shape of the whole

    def write(self, path: Path) -> None:
        """Write a safetensors file, completely or not at all."""
        with atomic_file(path) as aside:
            save_file(self.tensors, aside, metadata={name: to_json(rows) for name, rows in self.rows.items()})


def part_name(rank: int, n_processes: int) -> str:
    """The name of the file of a process."""
    return _NAME.format(rank, n_processes)


def flatten(value: Any, name: str, tensors: dict[str, Tensor]) -> JsonObject:
    """Put all tensors of a nested value into `tensors`; returns the rest as JSON values for `restore`."""
    if isinstance(value, Tensor):
        tensors[name] = value
        return {"tensor": name}
    if isinstance(value, Mapping):
        return {"dict": [[key, flatten(item, f"{name}.{key}", tensors)] for key, item in value.items()]}
    if isinstance(value, (list, tuple)):
        return {"list": [flatten(item, f"{name}.{k}", tensors) for k, item in enumerate(value)]}
    return {"value": value}


def restore(flat: Mapping[str, Any], read: Callable[[str], Tensor]) -> Any:
    """The value that `flatten` flattened, with tuples as lists; `read` returns the tensor with a name."""
    if "tensor" in flat:
        return read(flat["tensor"])
    if "dict" in flat:
        return {key: restore(item, read) for key, item in flat["dict"]}
    if "list" in flat:
        return [restore(item, read) for item in flat["list"]]
    return flat["value"]


def own_part(tensors: Mapping[str, Tensor], rank: int, n_processes: int, *, copy: bool) -> StatePart:
    """The part of process `rank`: its rows of shared tensors, and some whole tensors, divided about equally by bytes.

    The tensors are copied if training may change them before the part is written.
    """
    whole = {name: tensor for name, tensor in tensors.items() if not is_sharded(tensor)}
    n_bytes = [0] * n_processes
    parts: dict[str, Tensor] = {}
    rows: dict[str, tuple[int, list[int]]] = {}
    for name in sorted(whole, key=lambda name: (-whole[name].nbytes, name)):
        writer = n_bytes.index(min(n_bytes))
        n_bytes[writer] += whole[name].nbytes
        if writer == rank:
            parts[name], rows[name] = whole[name], (0, list(whole[name].shape))
    for name in tensors.keys() - whole.keys():
        tensor: Any = tensors[name]
        if tensor.to_local().numel():
            parts[name], rows[name] = tensor.to_local(), (_rows(tensor, len(tensor))[0], list(tensor.shape))
    copies = {name: tensor.detach().to("cpu", copy=copy).contiguous() for name, tensor in parts.items()}
    return StatePart(copies, rows)


class StateFiles:
    """The tensors of a state in a folder.

    Attributes:
        shapes: the shapes of the whole tensors, by name.

    Raises:
        ModelError: a file is missing or cannot be read.
    """

    def __init__(self, folder: Path):
        self._places: dict[str, list[tuple[int, Path]]] = {}
        self.shapes: dict[str, torch.Size] = {}
        paths = sorted(folder.glob(_GLOB))
        expected = paths[0].stem.rpartition("-")[2] if paths else "1"
        # Names are not made for a number of files that are not there, which may be any.
        if [path.name for path in paths] != [part_name(rank, len(paths)) for rank in range(max(1, len(paths)))]:
            raise ModelError(f"{folder}: holds {len(paths)} of {expected} files of the state; start over (--no-resume)")
        for path in paths:
            with _opened(path) as file:
                for name, text in (file.metadata() or {}).items():
                    first, shape = _rows_and_shape(file, path, name, text)
                    self._places.setdefault(name, []).append((first, path))
                    if self.shapes.setdefault(name, torch.Size(shape)) != torch.Size(shape):
                        raise _damaged(path, name, "its parts are of tensors of different shapes")

    def read(self, name: str, like: Tensor | None = None) -> Tensor:
        """Read a tensor: the rows of this process if `like` is shared by rows and has its shape, otherwise all rows.

        Raises:
            ModelError: it is missing, or a file cannot be read.
        """
        places = sorted(self._places.get(name, []))
        if not places:
            raise ModelError(f"{name}: missing in the state; start the run over with resume=False")
        if not self.shapes[name]:
            return self._rows_of(places[0], name, None, None)[0]
        is_shared = like is not None and is_sharded(like) and like.shape == self.shapes[name]
        n_rows = self.shapes[name][0]
        begin, end = _rows(like, n_rows) if is_shared else (0, n_rows)
        if len({first for first, _ in places}) < len(places) and n_rows:
            raise _damaged(places[0][1], name, "rows that are there twice")
        parts = [part for place in places for part in self._rows_of(place, name, begin, end)]
        if sum(map(len, parts)) != end - begin:
            raise ModelError(f"{name}: rows are missing in the state; start the run over with resume=False")
        values = parts[0] if len(parts) == 1 else torch.cat(parts) if parts else self._empty(places[0], name)
        if not is_shared:
            return values
        from torch.distributed.tensor import DTensor

        shared: Any = like
        mesh, placements = shared.device_mesh, shared.placements
        return DTensor.from_local(
            values.to(shared.device), mesh, placements, shape=shared.shape, stride=shared.stride()
        )

    def _rows_of(self, place: tuple[int, Path], name: str, begin: int | None, end: int | None) -> list[Tensor]:
        first, path = place
        try:
            with _opened(path) as file:
                if begin is None or end is None:
                    return [file.get_tensor(name)]
                rows = file.get_slice(name)
                start, stop = max(begin - first, 0), min(end - first, rows.get_shape()[0])
                return [rows[start:stop]] if start < stop else []
        except SafetensorError as reason:
            raise _damaged(path, name, str(reason)) from reason

    def _empty(self, place: tuple[int, Path], name: str) -> Tensor:
        with _opened(place[1]) as file:
            whole: Tensor = file.get_tensor(name)
        return whole[:0]


def _rows_and_shape(file: Any, path: Path, name: str, text: str) -> tuple[int, list[int]]:
    """The first row of a part and the shape of the whole tensor; the part must be some rows of such a tensor."""
    try:
        first, shape = json.loads(text)
        part_shape = list(file.get_slice(name).get_shape())
    except (ValueError, TypeError, RecursionError, SafetensorError) as reason:
        raise _damaged(path, name, str(reason)) from reason
    numbers = [first, *shape] if isinstance(shape, list) else []
    if not numbers or not all(type(n) is int and 0 <= n < 1 << 48 for n in numbers):
        raise _damaged(path, name, "no rows of a tensor")
    if part_shape[1:] != shape[1:] or len(part_shape) != len(shape) or (shape and first + part_shape[0] > shape[0]):
        raise _damaged(path, name, f"a tensor of shape {part_shape} as rows of one of shape {shape}")
    return first, shape


def _damaged(path: Path, name: str, why: str) -> ModelError:
    return ModelError(f"{path}: {name} is damaged ({why}); start the run over with resume=False")


def _opened(path: Path) -> Any:
    try:
        return safe_open(path, framework="pt")
    except (OSError, SafetensorError) as reason:
        raise ModelError(f"{path}: cannot be read ({reason}); start the run over with resume=False") from reason


def _rows(tensor: Any, n_rows: int) -> tuple[int, int]:
    """Rows [begin, end) that this process has of a DTensor, which FSDP divides as torch.chunk does."""
    (placement,) = tensor.placements
    if not placement.is_shard(0):
        raise ValueError(f"a tensor that is placed as {placement}, expected one that is divided by rows")
    n, rank = tensor.device_mesh.size(), tensor.device_mesh.get_local_rank()
    chunk = -(-n_rows // n)
    return min(rank * chunk, n_rows), min((rank + 1) * chunk, n_rows)
