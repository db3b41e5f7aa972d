"""Which instruction sets compiled code may use: those of this processor, and the choice of CIGE_KERNELS.

The C sources of the runtime (`cige.runtime.native`) and of the training kernels (`cige.nn.native`) are compiled once
per instruction set ("level", see setup.py), and the best level that the processor supports is chosen when the program
runs, so one build is sufficient for all processors of an architecture.

portable  what every processor of the architecture has: SSE2 of x86-64, NEON of arm64
avx2      x86-64 with AVX2 and FMA
avx512    x86-64 with AVX-512 (F, VL, BW and DQ); VNNI and BF16 are asked for by the functions that use them
dotprod   arm64 with products of 8-bit numbers (SDOT): Apple's M1, Graviton2, Ampere Altra
i8mm      arm64 with products of small matrices of 8-bit or bfloat16 numbers (I8MM, BF16): Apple's M2, Graviton3

cpu.c   asks the processor; it is compiled wherever anything is

The environment variable CIGE_KERNELS chooses another level for comparisons and debugging, or `off` for NumPy and
PyTorch operations only. If it is not set, empty or `auto`, the best level is used.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
from collections.abc import Sequence
from functools import cache

from cige.errors import CigeError

LEVELS = ("portable", "avx2", "avx512", "dotprod", "i8mm")  # those of an architecture from slow to fast
VARIABLE = "CIGE_KERNELS"


@cache
def supported() -> tuple[str, ...]:
    """The levels that this processor can run, from slow to fast; none if nothing was compiled."""
    if (path := path_of(f"{__name__}._cpu")) is None:
        return ()
    try:
        cpu = ctypes.CDLL(path)
        return (LEVELS[0], *(name for name in LEVELS[1:] if getattr(cpu, f"cpu_has_{name}")()))
    except (OSError, AttributeError):  # built for another machine or from older sources
        return ()


def chosen(built: Sequence[str]) -> str | None:
    """The level to use of those that were built, from slow to fast: the best, or that of CIGE_KERNELS.

    Args:
        built: levels of a part that were built and that this processor can run.

    Returns:
        A level; None for `off`, and if the part was not compiled although others were.

    Raises:
        CigeError: CIGE_KERNELS is not a level, or not one of `built`.
    """
    wanted = os.environ.get(VARIABLE, "") or "auto"
    if wanted == "off":
        return None
    if wanted == "auto":
        return built[-1] if built else None
    if wanted not in LEVELS:
        raise CigeError(f"{VARIABLE}={wanted}: expected auto, off, {', '.join(LEVELS[:-1])} or {LEVELS[-1]}")
    if not built and supported():
        return None
    if wanted not in built:
        here = wanted in supported()
        why = "was not built when cige was installed" if here or not built else "cannot run on this processor"
        raise CigeError(
            f"{VARIABLE}={wanted}: this level {why}; set {VARIABLE} to one of: {', '.join(('auto', 'off', *built))}"
        )
    return wanted


def path_of(module: str) -> str | None:
    """The file of a compiled module, or None if it was not built."""
    spec = importlib.util.find_spec(module)
    return None if spec is None else spec.origin
