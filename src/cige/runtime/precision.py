"""The precision of products in the compiled runtime: which ones a processor supports, and rounding of weights.

float32   everything in float32, at all levels
bfloat16  weights, rows, queries, keys, values and relative spans in 16 bits, sums in float32 (AVX512-BF16; BF16 of ARM)
int8      weights and rows of products in 8 bits with scales, sums in int32 (VNNI, AVX2; SDOT or I8MM of ARM);
          attention in bfloat16 or as in int16 if the processor supports one of them, and otherwise in float32
int16     weights, rows, queries, keys and relative spans in 12 bits of 16, with scales, sums in int32 (AVX2, where it
          is as fast as int8 if there is no AVX-VNNI)

In all of them, normalisation, softmax and the CRF use float32 or more. The results for a text do not depend on the
other texts of its batch.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cige.errors import ModelError
from cige.runtime.native import Library

FLOAT32, BFLOAT16, INT8, INT16 = "float32", "bfloat16", "int8", "int16"
PRECISIONS = (FLOAT32, BFLOAT16, INT8, INT16)  # "auto" takes the last one of `available`
AUTO = "auto"
INT16_NUMBERS = 512  # so many products of int16 numbers can be added without overflow


def available(library: Library | None) -> tuple[str, ...]:
    """The precisions that the compiled runtime supports on this processor, from slow to fast; only float32 for NumPy
    (None)."""
    if library is None:
        return (FLOAT32,)
    found = [name for name in PRECISIONS if library.has_precision(library.constants[name.upper()])]
    if INT16 in found and library.whole_bytes(library.constants["INT8"]) == 1:  # AVX-VNNI
        found.append(found.pop(found.index(INT8)))
    return tuple(found)


def chosen(
    wanted: str,
    found: Sequence[str],
    *,
    of: str = "this processor, or what was compiled for it,",
    instead: str = "use precision='auto'",
) -> str:
    """The precision to compute in.

    Args:
        wanted: one of PRECISIONS, or "auto": the fastest, since none of them lost more than 0.05 F1 on development data
            (docs/speed.md), and of two that are equally fast the more exact one.
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


def attention_precision(precision: str, found: Sequence[str], head_width: int) -> str:
    """The precision of attention if products are in `precision`, of those that a processor supports."""
    if precision == FLOAT32:
        return FLOAT32
    if BFLOAT16 in found:
        return BFLOAT16
    return INT16 if INT16 in found and head_width <= INT16_NUMBERS else FLOAT32


def to_bfloat16(x: np.ndarray) -> np.ndarray:
    """Convert float32 to bfloat16 as uint16: its upper half, rounded to nearest, ties to even. NaN is not supported."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def to_int8(weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Quantise float[n_out, n_in] to int8[n_out, n_in] and the scales float32[n_out]."""
    return _in_steps(weight, 127, np.int8)


def to_int16(weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Quantise float[n_out, n_in] to int16[n_out, n_in] from -2047 to 2047 and the scales float32[n_out]."""
    return _in_steps(weight, 2047, np.int16)


def _in_steps(weight: np.ndarray, most: int, dtype: type) -> tuple[np.ndarray, np.ndarray]:
    highest = np.abs(weight).max(axis=1, initial=0).astype(np.float32)
    factor = np.where(highest > 0, most / np.where(highest > 0, highest, 1), 0)
    return np.rint(weight * factor[:, None]).astype(dtype), (highest / most).astype(np.float32)
