"""Segments: the smallest stretches of a lattice that no token leaves, the units of masked segment prediction."""

from __future__ import annotations

import numpy as np

from cige.lattice.token_lattice import TokenLattice


def segments(lattice: TokenLattice) -> np.ndarray:
    """int32[n]: the segment of each token, counted from 0; tokens of one segment stand next to each other.

    A place between two pieces is a boundary iff no token spans it; the boundaries part the lattice into segments
    (Lai et al. 2021, §2.4). Linear time.
    """
    return segments_of(lattice.starts, lattice.ends)


def segments_of(starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """The same from the half-open spans of n tokens in any order, counted from any place.

    Together the spans must cover every place between the first start and the last end, as the pieces of a lattice do.
    """
    if not len(starts):
        return np.zeros(0, dtype=np.int32)
    first = int(starts.min())
    starts, ends = starts - first, ends - first
    n_places = int(ends.max())
    # A token over [s, e) spans the places s+1 .. e-1: one more from s+1 on, one fewer from e on.
    change = np.bincount(starts + 1, minlength=n_places + 1) - np.bincount(ends, minlength=n_places + 1)
    is_boundary = np.cumsum(change)[:n_places] == 0
    is_boundary[0] = False  # the beginning parts nothing
    return np.cumsum(is_boundary)[starts].astype(np.int32)
