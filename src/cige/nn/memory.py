"""Keep freed memory in the process, for work that allocates and frees large arrays in every step.

The allocator of glibc returns large arrays to the system as soon as they are freed, and the system zeroes the pages of
the next ones. On a CPU this takes 1 to 22% of a training step (docs/speed.md). Training and the commands that find
entities change this for their process; `load()` does not, because a library should not configure the process of the
program that uses it.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import sys

import numpy as np

TRIM_THRESHOLD, TOP_PAD, MMAP_THRESHOLD = -1, -2, -3  # malloc.h
KEPT = 2**31 - 1  # bytes that may be free at the end of the heap before any are returned
TAKEN = 64 << 20  # additional bytes that are requested when the heap grows
# Size in bytes from which an array has its own pages; older versions of glibc allow at most the second value.
HEAP_BELOW = 1 << 30, 32 << 20


def keep_freed_memory() -> bool:
    """Make this process keep up to 2 GB of freed memory; returns False if that is not possible.

    This is the case if the C library is not glibc, or if MALLOC_* or GLIBC_TUNABLES in the environment configure it.
    """
    is_set = any(name.startswith("MALLOC_") for name in os.environ) or "malloc" in os.environ.get("GLIBC_TUNABLES", "")
    if sys.platform != "linux" or is_set:
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    heaped = any(mallopt(MMAP_THRESHOLD, size) for size in HEAP_BELOW)
    return bool(heaped and mallopt(TRIM_THRESHOLD, KEPT) and mallopt(TOP_PAD, TAKEN))


def zeros_on_demand(shape: tuple[int, ...]) -> np.ndarray:
    """float32 zeros whose pages are only allocated when they are written to, even after `keep_freed_memory`.

    After that call, np.zeros allocates from the heap, where memory may have been used before and is zeroed immediately.
    """
    n = int(np.prod(shape, dtype=np.int64))
    if n == 0 or not hasattr(mmap, "MAP_PRIVATE"):  # Windows always allocates separate pages for large arrays
        return np.zeros(shape, np.float32)
    pages = mmap.mmap(-1, 4 * n, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return np.frombuffer(pages, np.float32, n).reshape(shape)
