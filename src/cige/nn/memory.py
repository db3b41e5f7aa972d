"""Memory that is freed stays with the process, for work that takes and frees large arrays in every step.

The allocator of glibc gives large arrays back to the system as soon as they are freed, and the system zeroes the pages
of the next ones: on a CPU that is 1 to 22% of a training step (docs/speed.md). Training and the commands that find
entities change this for their process; `load()` does not, for a process that only uses a model is its owner's.
"""

from __future__ import annotations

import ctypes
import os
import sys

TRIM_THRESHOLD, TOP_PAD, MMAP_THRESHOLD = -1, -2, -3  # malloc.h
KEPT = 2**31 - 1  # bytes free at the end of the heap before any go back
TAKEN = 64 << 20  # bytes asked for beyond what is needed when the heap grows
# Bytes from which an array has pages of its own; older versions of glibc allow the second at most.
HEAP_BELOW = 1 << 30, 32 << 20


def keep_freed_memory() -> bool:
    """Make this process keep up to 2 GB of freed memory; False where that is not ours to do.

    So it is where the C library is not glibc, and where MALLOC_* or GLIBC_TUNABLES in the environment say what to do.
    """
    is_set = any(name.startswith("MALLOC_") for name in os.environ) or "malloc" in os.environ.get("GLIBC_TUNABLES", "")
    if sys.platform != "linux" or is_set:
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    heaped = any(mallopt(MMAP_THRESHOLD, size) for size in HEAP_BELOW)
    return bool(heaped and mallopt(TRIM_THRESHOLD, KEPT) and mallopt(TOP_PAD, TAKEN))
