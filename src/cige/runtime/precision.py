"""The precision of the compiled runtime's products: which a processor has, and how weights are rounded.

float32   everything, at every level
bfloat16  weights, rows, queries, keys, values and relative spans in 16 bits, sums in float32 (AVX512-BF16)
int8      weights and rows of products in 8 bits with scales, sums in int32 (AVX512-VNNI); the rest as in bfloat16 where
          the processor has that too, and else as in float32

In each of them normalisation, softmax and the CRF are float32 or wider. Results of a form do not depend on what is read
beside a text.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np

from cige.errors import ModelError

FLOAT32, BFLOAT16, INT8 = "float32", "bfloat16", "int8"
PRECISIONS = (FLOAT32, BFLOAT16, INT8)  # from slow to fast, numbered as in native/product.h
AUTO = "auto"


def available(library: ctypes.CDLL | None) -> tuple[str, ...]:
    """The precisions that a compiled runtime has on this processor; float32 alone where it is NumPy (None)."""
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
        found: those that there are, as `available` gives them.
        of, instead: what has no others, and what to do, for the message.

    Raises:
        ModelError: there is no such precision, or it was not found.
    """
    if wanted == AUTO:
        return found[-1]
    if wanted not in PRECISIONS:
        raise ModelError(f"precision {wanted!r}: expected one of {', '.join((AUTO, *PRECISIONS))}")
    if wanted not in found:
        raise ModelError(f"precision {wanted!r}: {of} has {', '.join(found)} alone; {instead}")
    return wanted


def to_bfloat16(x: np.ndarray) -> np.ndarray:
    """uint16 of float32: its upper half, rounded to nearest, ties to even. No NaN may be among the numbers."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def to_int8(weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """int8[n_out, n_in] of float[n_out, n_in], and the scales float32[n_out] that undo it."""
    highest = np.abs(weight).max(axis=1, initial=0).astype(np.float32)
    factor = np.where(highest > 0, 127 / np.where(highest > 0, highest, 1), 0)
    return np.rint(weight * factor[:, None]).astype(np.int8), (highest / 127).astype(np.float32)
