"""The optional CPU kernel for FLAT's attention: C, called through ctypes, the same results as PyTorch operations.

It exists because PyTorch must gather an [N, N, D] tensor for the position term and pads every sentence to the longest
of the batch; the kernel walks the [U, D] table directly and touches real nodes only. Where it was not built (no C
compiler at installation) `load()` returns None and callers use their PyTorch form.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
from functools import cache

LANES = 16  # the kernel works on 16 floats at a time, so D must be a multiple of it


@cache
def load() -> ctypes.CDLL | None:
    """The compiled library, or None. CIGE_NATIVE=0 turns it off (for comparisons and for hunting bugs)."""
    if os.environ.get("CIGE_NATIVE", "1") == "0":
        return None
    spec = importlib.util.find_spec("cige.nn.native._kernels")
    if spec is None or spec.origin is None:
        return None
    try:
        library = ctypes.CDLL(spec.origin)
    except OSError:  # built for another machine: slower, still right
        return None
    library.span_attention_forward.argtypes = [ctypes.c_void_p] * 11
    library.span_attention_backward.argtypes = [ctypes.c_void_p] * 15
    library.span_attention_forward.restype = ctypes.c_int
    library.span_attention_backward.restype = ctypes.c_int
    return library
