"""Check the arrays of a shard: every offset is one of its array, and every token lies within its line."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

_TYPES = {
    "ids": np.int32, "starts": np.int32, "lengths": np.uint16, "line_tokens": np.int64, "line_pieces": np.int64,
    "document_lines": np.int64, "word_starts": np.bool_,
}  # fmt: skip


def check_arrays(arrays: Mapping[str, np.ndarray], *, n_ids: int | None = None) -> None:
    """Check the arrays that were read from the folder of a shard; this takes about as long as reading them once.

    Args:
        arrays: the fields of a Shard by their names.
        n_ids: number of ids of its vocabulary; None if it is not known.

    Raises:
        ValueError: an array has another form, or numbers that lead out of another array.
    """
    for name, dtype in _TYPES.items():
        array = arrays[name]
        if array.ndim != 1 or array.dtype != dtype:
            raise ValueError(f"{name} is {array.dtype}{list(array.shape)}; expected a list of {np.dtype(dtype)}")
    ids, starts, lengths = (arrays[name] for name in ("ids", "starts", "lengths"))
    line_tokens, line_pieces = arrays["line_tokens"], arrays["line_pieces"]
    if not len(ids) == len(starts) == len(lengths):
        raise ValueError(f"{len(ids)} ids for {len(starts)} starts and {len(lengths)} lengths")
    if len(line_tokens) != len(line_pieces):
        raise ValueError(f"line_tokens is for {len(line_tokens)} lines, line_pieces for {len(line_pieces)}")
    _check_offsets("line_tokens", line_tokens, len(ids))
    _check_offsets("line_pieces", line_pieces, len(arrays["word_starts"]))
    _check_offsets("document_lines", arrays["document_lines"], len(line_tokens) - 1)
    if not len(ids):
        return
    low, high = int(ids.min()), int(ids.max())
    if low < 0 or (n_ids is not None and high >= n_ids):
        raise ValueError(f"ids from {low} to {high}; expected 0 to {'...' if n_ids is None else n_ids - 1}")
    n_tokens = np.diff(line_tokens)
    begins, ends = (np.repeat(of_line, n_tokens) for of_line in (line_pieces[:-1], line_pieces[1:]))
    if not lengths.min() or (starts < begins).any() or (lengths > ends - starts).any():
        raise ValueError("a token is empty or extends beyond its line")


def _check_offsets(name: str, offsets: np.ndarray, n: int) -> None:
    if not len(offsets) or offsets[0] != 0 or offsets[-1] != n or (offsets[1:] < offsets[:-1]).any():
        raise ValueError(f"{name} does not ascend from 0 to {n}")
