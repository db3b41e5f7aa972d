"""The arrays of a .safetensors file, memory-mapped with NumPy, so that only the parts that are read use memory."""

from __future__ import annotations

import json
import mmap
from math import prod
from pathlib import Path

import numpy as np

from cige.json_text import JsonObject

_DTYPES = {
    "F64": np.float64, "F32": np.float32, "F16": np.float16, "I64": np.int64, "I32": np.int32, "I16": np.int16,
    "I8": np.int8, "U8": np.uint8, "BOOL": np.bool_,
}  # fmt: skip


def map_file(path: Path | str) -> mmap.mmap:
    """Map a file into memory, so that its bytes are read from disk on access.

    Raises:
        OSError: it cannot be read.
        ValueError: it is empty.
    """
    with open(path, "rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def arrays_in(data: mmap.mmap) -> dict[str, np.ndarray]:
    """The arrays of a mapped .safetensors file by name, read-only. Raises a ValueError if it is not such a file, or
    contains a number type that NumPy does not have."""
    begin = 8 + int.from_bytes(data[:8], "little")
    if not 8 < begin <= len(data):
        raise ValueError(f"{len(data)} bytes that are no .safetensors file")
    header = json.loads(data[8:begin])
    return {name: _array(data, begin, entry) for name, entry in header.items() if name != "__metadata__"}


def _array(data: mmap.mmap, begin: int, entry: JsonObject) -> np.ndarray:
    dtype = _DTYPES.get(entry["dtype"])
    if dtype is None:
        raise ValueError(f"numbers of type {entry['dtype']}; expected one of {', '.join(_DTYPES)}")
    first, last = entry["data_offsets"]
    shape = tuple(entry["shape"])
    if not all(isinstance(size, int) and 0 <= size < 1 << 48 for size in (first, last, *shape)):
        raise ValueError(f"an array of shape {entry['shape']} at {entry['data_offsets']}")
    n = prod(shape)
    if first > last or n * np.dtype(dtype).itemsize != last - first or begin + last > len(data):
        raise ValueError(f"{last - first} bytes for {n} numbers of type {entry['dtype']}")
    array = np.frombuffer(data, dtype, n, begin + first).reshape(shape)
    return array if array.flags.aligned else array.copy()
