"""The runtime in C, called through ctypes, with the results of its NumPy form; it needs nothing but a C compiler.

product.c    products of rows with packed weights; product_bf16.c and product_int8.c: with weights of 16 and 8 bits
attention.c  FLAT's attention, from tables of relative spans
flat.c       FLAT from rows of tables to emissions
lstm.c       a layer of an LSTM in both directions
chain.c      best tags and the spans they spell
marginals.c  how probable spans are, and all that are probable enough
rows.c       rows of the vocabulary's tables
spans.c      all of it in one call

The sources are compiled once per level of instruction sets like the kernels of `cige.nn.native`, and the same choice
is made when the program runs; CIGE_KERNELS=off chooses NumPy here.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import warnings
import zlib
from functools import cache
from pathlib import Path

import numpy as np

from cige.nn.native import level

_POINTER, _NUMBER = ctypes.c_void_p, ctypes.c_int64
_FUNCTIONS: dict[str, list] = {
    "panel_width": [],
    "has_precision": [_NUMBER],
    "one_product": [_POINTER] * 4,
    "fill_codes": [_POINTER, _POINTER, _NUMBER, _NUMBER, _POINTER, _POINTER],
    "rows_of_lattices": [_POINTER, _NUMBER, _POINTER, _POINTER, _NUMBER, *[_POINTER] * 6],
    "flat_emissions": [_POINTER, _POINTER, _NUMBER, _POINTER, _POINTER],
    "read_chain": [_POINTER] * 9,
    "lstm_layer": [_POINTER] * 6,
    "read_lattices": [_POINTER] * 14,
}


def load(kernels: str | None = None) -> ctypes.CDLL | None:
    """The library of a level, or None where NumPy is to be used: for "off", or where it was not built.

    Args:
        kernels: a level out of `cige.nn.native.levels()` or "off"; None for the level in use.
    """
    name = level() if kernels is None else None if kernels == "off" else kernels
    if name is None or _path(name) is None:
        return None
    try:
        return library(name)
    except (OSError, AttributeError):  # built for another machine, or from older sources: slower, still right
        return None


class StaleBuildWarning(UserWarning):
    """The compiled runtime is of other sources than those beside it, and NumPy is used in its place."""


@cache
def library(name: str) -> ctypes.CDLL:
    """The runtime at a level out of `cige.nn.native.levels()`.

    Raises:
        AttributeError: it was built from other sources than those beside it, as happens to a checkout that changed: its
            structures may be others, and a call could crash.
    """
    found = ctypes.CDLL(_path(name))
    found.source_checksum.restype = ctypes.c_uint32
    if found.source_checksum() != (checksum := source_checksum()) and checksum:
        warnings.warn(
            "the compiled runtime is older than its sources, so NumPy is used; install cige again: pip install -e .",
            StaleBuildWarning,
            stacklevel=3,
        )
        raise AttributeError("built from other sources")
    for function, arguments in _FUNCTIONS.items():
        getattr(found, function).argtypes = arguments
    return found


def source_checksum() -> int:
    """CRC-32 of the C sources beside this file, as setup.py compiles it in; 0 in an installation, which has none."""
    here = Path(__file__).parent
    files = sorted([*here.glob("*.[ch]"), *(here.parents[1] / "nn" / "native").glob("*.h")], key=lambda f: f.name)
    return zlib.crc32(b"".join(file.read_bytes() for file in files)) if files else 0


def _path(name: str) -> str | None:
    spec = importlib.util.find_spec(f"{__name__}._runtime_{name}")
    return None if spec is None else spec.origin


def address(array: np.ndarray) -> int:
    """Where the numbers of a contiguous array are; the array must be kept as long as that is used."""
    return array.__array_interface__["data"][0]


def n_threads() -> int:
    """Threads that a call may use: OMP_NUM_THREADS as everything else here, or all processors of this process."""
    wanted = os.environ.get("OMP_NUM_THREADS", "")
    if wanted.isdigit() and int(wanted):
        return int(wanted)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
