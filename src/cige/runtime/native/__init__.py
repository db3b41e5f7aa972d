"""The runtime in C, called through ctypes; it has the same results as the NumPy implementation.

product.c    products of rows with packed weights; product_bf16.c, product_int8.c and
             product_avxvnni.c: with weights of 16 or fewer bits
attention.c  FLAT's attention, with tables of relative spans; attention_bf16.c and attention_int16.c: in 16 bits
flat.c       FLAT, from table rows to emissions
lstm.c       a layer of a bidirectional LSTM
chain.c      Viterbi decoding, and the spans of the best tags
lengths.c    the best tags with which no entity is too long
marginals.c  span probabilities, and all spans above a threshold
rules.c      the same for sentences with forced and blocked words
rows.c       row numbers of the vocabulary's tables
spans.c      all of these in one call
layout.c     the structs of the headers, which structs.py and web/memory.js fill by name
check_model.c  whether the structs of a model fit each other

There is a library per level of instruction sets (see `cige.instruction_sets`). CIGE_KERNELS=off selects NumPy.
"""

from __future__ import annotations

import ctypes
import os
import threading
import warnings
import zlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from cige import instruction_sets
from cige.errors import ModelError
from cige.runtime.native.structs import Field, Struct, address, described, read_layout

__all__ = ["Library", "Struct", "address"]

_ARRAY, _NUMBER = ctypes.c_void_p, ctypes.c_int64
_FUNCTIONS: dict[str, tuple[Any, ...]] = {  # a name is that of a struct, which is given itself
    "panel_width": (),
    "has_precision": (_NUMBER,),
    "whole_bytes": (_NUMBER,),
    "int8_offset": (),
    "group_bytes": (),
    "one_product": ("Linear", _ARRAY, _NUMBER, _ARRAY, _NUMBER),
    "fill_codes": (_ARRAY, _ARRAY, _NUMBER, _NUMBER, _ARRAY, _ARRAY),
    "rows_of_lattices": ("Vocabulary", "Lattices", "RowsOfTables"),
    "flat_emissions": ("Flat", "Sentences", _NUMBER, _ARRAY, _ARRAY),
    "read_chain": ("Chain", "Emissions", "Reading"),
    "lstm_layer": ("Lstm", "LstmRun"),
    "check_model": ("Model", "Problem"),
    "read_lattices": ("Model", "Lattices", "Reading"),
}


class Library(ctypes.CDLL):
    """The compiled runtime at one level.

    Attributes:
        structs: the structs of its headers, by name.
        constants: the constants of its headers, by name.

    Raises:
        OSError: it was built for another machine.
        AttributeError: it lacks a function.
        ModelError: its structs are not laid out as expected.
    """

    def __init__(self, path: str):
        super().__init__(path)
        self.layout_of_structs.restype = ctypes.POINTER(Field)
        self.structs, self.constants = read_layout(self.layout_of_structs())
        for function, arguments in _FUNCTIONS.items():
            types = [ctypes.POINTER(self.structs[x]) if isinstance(x, str) else x for x in arguments]
            getattr(self, function).argtypes = types

    def struct(self, name: str, **values: Any) -> Struct:
        """A struct of the headers; see Struct for its values and what they raise."""
        return self.structs[name](**values)

    def array(self, structs: Sequence[Struct]) -> ctypes.Array[Struct]:
        """Structs of one kind one behind the other, which must be kept alive too."""
        return (type(structs[0]) * len(structs))(*structs)

    def model(self, **parts: Any) -> Struct:
        """The handle of a model, or of a part of one: the struct Model of native/model.h, checked by C.

        Raises:
            ModelError: a part cannot be read; the message names the field, what was given and what was expected.
        """
        absent = dict.fromkeys(self.structs["Model"].fields)
        handle, problem = self.struct("Model", **absent | parts), self.structs["Problem"].zeros()
        if self.check_model(handle, problem):
            raise ModelError(f"the compiled runtime cannot read this model: {described(problem)}")
        return handle


def load(kernels: str | None = None) -> Library | None:
    """The library of a level, or None if NumPy is used: for "off", or if the library was not built.

    Args:
        kernels: one of `levels()` or "off"; None means `level()`, or the next lower level if its library cannot be
            loaded.
    """
    name = level() if kernels is None else None if kernels == "off" else kernels
    if name is None or _path(name) is None:
        return None
    is_free = kernels is None and os.environ.get(instruction_sets.VARIABLE, "") in ("", "auto")
    for one in reversed(levels()[: levels().index(name) + 1] if is_free else (name,)):
        try:
            return library(one)
        except OSError as reason:  # damaged, or built for another machine
            warnings.warn(
                f"the compiled runtime for {one} cannot be loaded ({reason}); {_again()}", StaleBuildWarning, 2
            )
        except AttributeError:  # built from older sources, like the others
            return None
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
    """The compiled runtime does not match its sources or cannot be loaded; a lower level or NumPy is used instead."""


def _warn_of_a_stale_build(stacklevel: int) -> None:
    told = f"the compiled runtime is older than its sources, so NumPy is used; {_again()}"
    warnings.warn(told, StaleBuildWarning, stacklevel=stacklevel + 1)


def _again() -> str:
    from cige.extras import install_command  # not needed at each start

    return f"reinstall cige: {install_command()}"


@cache
def library(name: str) -> Library:
    """The runtime at one of `levels()`.

    Raises:
        AttributeError: it was built from other sources than those in its folder, for example because the checkout
            changed. The layout of structs is asked of the library, but what arrays hold is not in it.
    """
    path = str(_path(name))
    found = ctypes.CDLL(path)
    found.source_checksum.restype = ctypes.c_uint32
    if found.source_checksum() != (checksum := source_checksum()) and checksum:
        _warn_of_a_stale_build(stacklevel=3)
        raise AttributeError("built from other sources")
    return Library(path)


def source_checksum() -> int:
    """CRC-32 of the C sources in this folder, which setup.py also compiles into the library; 0 if there are none."""
    here = Path(__file__).parent
    files = sorted([*here.glob("*.[ch]"), *(here.parents[1] / "nn" / "native").glob("*.h")], key=lambda f: f.name)
    return zlib.crc32(b"".join(file.read_bytes() for file in files))  # of nothing, it is 0


def _path(name: str) -> str | None:
    return instruction_sets.path_of(f"{__name__}._runtime_{name}")


_of_thread = threading.local()


def use_threads(n: int) -> None:
    """Let calls from this thread use `n` threads, whatever `n_threads` says elsewhere."""
    _of_thread.n = n


def omp_threads() -> int | None:
    """OMP_NUM_THREADS, or None if it is not 1 or more; "4,2" is 4, and 2 the number of threads within each of these."""
    given = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return int(given) or None if given.isdecimal() else None


def n_threads(wish: int | None = None) -> int:
    """The number of threads that a call may use.

    It is that of `use_threads` in this thread, else `wish`, else OMP_NUM_THREADS, else that of the processors available
    to this process.
    """
    own: int | None = getattr(_of_thread, "n", None) or wish
    if own is not None:
        return own
    asked = omp_threads()
    return n_cores() if asked is None else asked


def n_cores() -> int:
    """The number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
