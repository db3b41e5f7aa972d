"""The optional CPU kernels: C, called through ctypes, with the same results as PyTorch operations.

kernels.c     FLAT's attention: PyTorch must gather an [N, N, D] tensor for the position term and pads every sentence to
              the longest of the batch; the kernel reads the [U, D] table directly and processes only real nodes
softmax.c     softmax and dropout of attention, forward and backward, each in one pass over memory
vocabulary.c  the softmax of a large vocabulary and its gradient, row by row while a row is in the cache

There is a library per level of instruction sets (see `cige.instruction_sets`). If none was built (there was no C
compiler at installation, or only the runtime was built), `load()` returns None, and callers use PyTorch operations.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from cige import instruction_sets

if TYPE_CHECKING:
    from torch import Tensor

# What arm64's higher levels add are products of few bits, which training has not: it uses the kernels of the first.
FORMS = {"dotprod": "portable", "i8mm": "portable"}


def load() -> ctypes.CDLL | None:
    """The library of `level()`, or None if PyTorch operations are to be used."""
    name = level()
    return None if name is None else library(name)


@cache
def level() -> str | None:
    """The level in use, one of `levels()`, or None; raises a CigeError as `instruction_sets.chosen` does."""
    return instruction_sets.chosen(levels())


@cache
def levels() -> tuple[str, ...]:
    """The levels that were built and that this processor can run, from slow to fast."""
    return tuple(name for name in instruction_sets.supported() if _usable(name))


def _usable(name: str) -> bool:
    try:
        return _path(name) is not None and library(name) is not None
    except (OSError, AttributeError):  # built for another machine or from older sources: PyTorch is slower but correct
        return False


@cache
def library(name: str) -> ctypes.CDLL:
    """The kernels of a level. Raises OSError if they cannot be loaded, and AttributeError if one is missing."""
    found = ctypes.CDLL(_path(name))
    found.span_attention_forward.argtypes = [ctypes.c_void_p] * 12
    found.span_attention_backward.argtypes = [ctypes.c_void_p] * 16
    found.vocabulary_gradient.argtypes = [ctypes.c_void_p] * 6
    found.softmax_dropout_forward.argtypes = [ctypes.c_void_p, ctypes.c_double, *[ctypes.c_void_p] * 2]
    found.softmax_dropout_backward.argtypes = [ctypes.c_void_p, ctypes.c_double, *[ctypes.c_void_p] * 4]
    return found


def _path(name: str) -> str | None:
    return instruction_sets.path_of(f"{__name__}._kernels_{FORMS.get(name, name)}")


def call(kernel: Callable[..., int], *arguments: Any, of: str) -> None:
    """Call a kernel; a MemoryError of its part `of` the network if it found no memory."""
    if kernel(*arguments):
        raise MemoryError(f"{of}: no memory for a work buffer; use smaller batches")


def pointers(*tensors: Tensor | None) -> list[int | None]:
    """Tensors as arguments of a kernel."""
    return [None if x is None else x.data_ptr() for x in tensors]
