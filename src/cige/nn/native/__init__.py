"""The optional CPU kernels: C, called through ctypes, with the same results as PyTorch operations.

kernels.c     FLAT's attention: PyTorch must gather an [N, N, D] tensor for the position term and pads every sentence to
              the longest of the batch; the kernel reads the [U, D] table directly and processes only real nodes
softmax.c     softmax and dropout of attention, forward and backward, each in one pass over memory
vocabulary.c  the softmax of a large vocabulary and its gradient, row by row while a row is in the cache

The same sources are compiled once per instruction set ("level", see setup.py), and the best level that the processor
supports is chosen when the program runs, so one build is sufficient for all processors of an architecture. On arm64
there is one level, since every such processor has NEON. If nothing was built (there was no C compiler at installation),
`load()` returns None, and callers use PyTorch operations.

The environment variable CIGE_KERNELS chooses another level for comparisons and debugging: `portable`, `avx2`, `avx512`,
or `off` for PyTorch operations only. If it is not set, empty or `auto`, the best level is used.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
from functools import cache

from cige.errors import CigeError

LEVELS = ("portable", "avx2", "avx512")  # from slow to fast; the C functions cpu_has_... say which may run
VARIABLE = "CIGE_KERNELS"


def load() -> ctypes.CDLL | None:
    """The library of `level()`, or None if PyTorch operations are to be used."""
    name = level()
    return None if name is None else library(name)


@cache
def level() -> str | None:
    """The level in use: the best of `levels()` or that of CIGE_KERNELS; None if there is none.

    Raises:
        CigeError: CIGE_KERNELS is not a level, or one that this processor or this installation does not have.
    """
    wanted = os.environ.get(VARIABLE, "") or "auto"
    if wanted == "off":
        return None
    found = levels()
    if wanted == "auto":
        return found[-1] if found else None
    if wanted not in LEVELS:
        raise CigeError(f"{VARIABLE}={wanted}: expected auto, off, {', '.join(LEVELS[:-1])} or {LEVELS[-1]}")
    if wanted not in found:
        why = "was not built when cige was installed" if _path(wanted) is None else "cannot run on this processor"
        raise CigeError(
            f"{VARIABLE}={wanted}: this level {why}; set {VARIABLE} to one of: {', '.join(('auto', 'off', *found))}"
        )
    return wanted


@cache
def levels() -> tuple[str, ...]:
    """The levels that were built and that this processor can run, from slow to fast."""
    if _path("portable") is None:
        return ()
    try:
        portable = library("portable")
    except (
        OSError,
        AttributeError,
    ):  # built for another machine or from older sources; PyTorch operations are slower but correct
        return ()
    return ("portable", *(name for name in LEVELS[1:] if _path(name) and getattr(portable, f"cpu_has_{name}")()))


@cache
def library(name: str) -> ctypes.CDLL:
    """The kernels of one of `levels()`."""
    return open_library(_path(name))


def open_library(path: str | None) -> ctypes.CDLL:
    """The kernels in a file. Raises OSError if it cannot be loaded, and AttributeError if it lacks a kernel."""
    found = ctypes.CDLL(path)
    found.span_attention_forward.argtypes = [ctypes.c_void_p] * 12
    found.span_attention_backward.argtypes = [ctypes.c_void_p] * 16
    found.vocabulary_gradient.argtypes = [ctypes.c_void_p] * 6
    found.softmax_dropout_forward.argtypes = [ctypes.c_void_p, ctypes.c_double, *[ctypes.c_void_p] * 2]
    found.softmax_dropout_backward.argtypes = [ctypes.c_void_p, ctypes.c_double, *[ctypes.c_void_p] * 4]
    return found


def _path(name: str) -> str | None:
    spec = importlib.util.find_spec(f"{__name__}._kernels_{name}")
    return None if spec is None else spec.origin
