"""The precision of products in the compiled runtime: which ones a processor supports, and rounding of weights.

float32   everything in float32, at all levels
bfloat16  weights, rows, queries, keys, values and relative spans in 16 bits, sums in float32 (AVX512-BF16)
int8      weights and rows of products in 8 bits with scales, sums in int32 (AVX512-VNNI); everything else as in
          bfloat16 if the processor supports it, and otherwise as in float32

In all of them, normalisation, softmax and the CRF use float32 or more. The results for a text do not depend on the
other texts of its batch.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np

from cige.errors import ModelError

FLOAT32, BFLOAT16, INT8 = "float32", "bfloat16", "int8"
PRECISIONS = (FLOAT32, BFLOAT16, INT8)  # from slow to fast, with the numbers of native/product.h
AUTO = "auto"


def available(library: ctypes.CDLL | None) -> tuple[str, ...]:
    """The precisions that the compiled runtime supports on this processor; only float32 for NumPy (None)."""
    if library is None:
        return (FLOAT32,)
    return tuple(name for number, name in enumerate(PRECISIONS) if library.has_precision(number))


def chosen(
    wanted: str,
    found: Sequence[str],
    *,
    of: str = "this processor, or what was compiled for it",
    instead: str = "use precision='auto'",
) -> str:
    """The precision to compute in.

    Args:
        wanted: one of PRECISIONS, or "auto": the fastest, since none of them lost more than 0.05 F1 on development data
            (docs/speed.md).
        found: the supported precisions, as returned by `available`.
        of, instead: for the error message, what supports only these, and what to do.

    Raises:
        ModelError: there is no such precision, or it is not supported.
    """
    if wanted == AUTO:
        return found[-1]
    if wanted not in PRECISIONS:
        raise ModelError(f"precision {wanted!r}: expected one of {', '.join((AUTO, *PRECISIONS))}")
    if wanted not in found:
        raise ModelError(f"precision {wanted!r}: {of} only supports {', '.join(found)}; {instead}")
    return wanted


def to_bfloat16(x: np.ndarray) -> np.ndarray:
    """Convert float32 to bfloat16 as uint16: its upper half, rounded to nearest, ties to even. NaN is not supported."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def to_int8(weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Quantise float[n_out, n_in] to int8[n_out, n_in] and the scales float32[n_out]."""
    highest = np.abs(weight).max(axis=1, initial=0).astype(np.float32)
    factor = np.where(highest > 0, 127 / np.where(highest > 0, highest, 1), 0)
    return np.rint(weight * factor[:, None]).astype(np.int8), (highest / 127).astype(np.float32)
