"""The optional CPU kernels: C, called through ctypes, the same results as PyTorch operations.

kernels.c     FLAT's attention: PyTorch must gather an [N, N, D] tensor for the position term and pads every sentence to
              the longest of the batch; the kernel walks the [U, D] table directly and touches real nodes only
softmax.c     softmax and dropout of attention, forth and back, each in one pass over memory
vocabulary.c  the softmax of a large vocabulary and its gradient, a row at a time while it is in the cache

Where they were not built (no C compiler at installation) `load()` returns None and callers use their PyTorch form.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
from functools import cache

LANES = 16  # FLAT's kernel works on 16 floats at a time, so D must be a multiple of it


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
        library.span_attention_forward.argtypes = [ctypes.c_void_p] * 11
        library.span_attention_backward.argtypes = [ctypes.c_void_p] * 15
        library.vocabulary_gradient.argtypes = [ctypes.c_void_p] * 6
        library.softmax_dropout_forward.argtypes = [ctypes.c_void_p, ctypes.c_double, *[ctypes.c_void_p] * 2]
        library.softmax_dropout_backward.argtypes = [ctypes.c_void_p, ctypes.c_double, *[ctypes.c_void_p] * 4]
    except (OSError, AttributeError):  # built for another machine, or from older sources: slower, still right
        return None
    return library
