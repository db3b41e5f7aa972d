"""The runtime in C, called through ctypes; it has the same results as the NumPy implementation.

product.c    products of rows with packed weights; product_bf16.c and product_int8.c: with weights of 16 or fewer bits
attention.c  FLAT's attention, with tables of relative spans; attention_bf16.c and attention_int16.c: in 16 bits
flat.c       FLAT, from table rows to emissions
lstm.c       a layer of a bidirectional LSTM
chain.c      Viterbi decoding, and the spans of the best tags
lengths.c    the best tags with which no entity is too long
marginals.c  span probabilities, and all spans above a threshold
rules.c      the same for sentences with forced and blocked words
rows.c       row numbers of the vocabulary's tables
spans.c      all of these in one call

There is a library per level of instruction sets (see `cige.instruction_sets`). CIGE_KERNELS=off selects NumPy.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import threading
import warnings
import zlib
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from cige import instruction_sets

_POINTER, _NUMBER = ctypes.c_void_p, ctypes.c_int64
_FUNCTIONS: dict[str, list[Any]] = {
    "panel_width": [],
    "has_precision": [_NUMBER],
    "int8_bytes": [],
    "int8_offset": [],
    "group_bytes": [],
    "one_product": [_POINTER] * 4,
    "fill_codes": [_POINTER, _POINTER, _NUMBER, _NUMBER, _POINTER, _POINTER],
    "rows_of_lattices": [_POINTER, _NUMBER, _POINTER, _POINTER, _NUMBER, *[_POINTER] * 6],
    "flat_emissions": [_POINTER, _POINTER, _NUMBER, _POINTER, _POINTER],
    "read_chain": [_POINTER] * 10,
    "lstm_layer": [_POINTER] * 6,
    "read_lattices": [_POINTER] * 15,
}


def load(kernels: str | None = None) -> ctypes.CDLL | None:
    """The library of a level, or None if NumPy is used: for "off", or if the library was not built.

    Args:
        kernels: one of `levels()` or "off"; None means `level()`.
    """
    name = level() if kernels is None else None if kernels == "off" else kernels
    if name is None or _path(name) is None:
        return None
    try:
        return library(name)
    except (OSError, AttributeError):  # built for another machine or from older sources: NumPy is slower but correct
        return None


@cache
def level() -> str | None:
    """The level in use, one of `levels()`, or None; raises a CigeError as `instruction_sets.chosen` does."""
    return instruction_sets.chosen(levels())


@cache
def levels() -> tuple[str, ...]:
    """The levels that were built and that this processor can run, from slow to fast."""
    built = [name for name in instruction_sets.LEVELS if _path(name) is not None]
    if built and not instruction_sets.supported():
        _warn_of_a_stale_build(stacklevel=2)
    return tuple(name for name in instruction_sets.supported() if name in built)


class StaleBuildWarning(UserWarning):
    """The compiled runtime does not match its sources, so NumPy is used instead."""


def _warn_of_a_stale_build(stacklevel: int) -> None:
    told = "the compiled runtime is older than its sources, so NumPy is used; reinstall cige: pip install -e ."
    warnings.warn(told, StaleBuildWarning, stacklevel=stacklevel + 1)


@cache
def library(name: str) -> ctypes.CDLL:
    """The runtime at one of `levels()`.

    Raises:
        AttributeError: it was built from other sources than those in its folder, for example because the checkout
            changed; its structs may differ, and a call could crash.
    """
    found = ctypes.CDLL(_path(name))
    found.source_checksum.restype = ctypes.c_uint32
    if found.source_checksum() != (checksum := source_checksum()) and checksum:
        _warn_of_a_stale_build(stacklevel=3)
        raise AttributeError("built from other sources")
    for function, arguments in _FUNCTIONS.items():
        getattr(found, function).argtypes = arguments
    return found


def source_checksum() -> int:
    """CRC-32 of the C sources in this folder, which setup.py also compiles into the library; 0 if there are none."""
    here = Path(__file__).parent
    files = sorted([*here.glob("*.[ch]"), *(here.parents[1] / "nn" / "native").glob("*.h")], key=lambda f: f.name)
    return zlib.crc32(b"".join(file.read_bytes() for file in files))  # of nothing, it is 0


def _path(name: str) -> str | None:
    spec = importlib.util.find_spec(f"{__name__}._runtime_{name}")
    return None if spec is None else spec.origin


def address(array: np.ndarray) -> int:
    """The memory address of a contiguous array, which must be kept alive while the address is used."""
    return array.__array_interface__["data"][0]


_of_thread = threading.local()


def use_threads(n: int) -> None:
    """Let calls from this thread use `n` threads, whatever `n_threads` says elsewhere."""
    _of_thread.n = n


def n_threads(wish: int | None = None) -> int:
    """The number of threads that a call may use.

    It is that of `use_threads` in this thread, else `wish`, else OMP_NUM_THREADS, else that of the processors available
    to this process.
    """
    own: int | None = getattr(_of_thread, "n", None) or wish
    if own is not None:
        return own
    wanted = os.environ.get("OMP_NUM_THREADS", "")
    if wanted.isdigit() and int(wanted):
        return int(wanted)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
