"""Segments: the smallest parts of a lattice that share no token, which are the units of masked segment prediction."""

from __future__ import annotations

import numpy as np

from cige.lattice_bert.encoder.token_lattice import TokenLattice


def segments(lattice: TokenLattice) -> np.ndarray:
    """int32[n]: the segment of each token, from 0; the tokens of a segment are consecutive.

    Segments are divided at each place between two pieces that no token spans (Lai et al. 2021, §2.4). Linear time.
    """
    return segments_of(lattice.starts, lattice.ends)


def segments_of(starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Like `segments`, from the half-open spans of n tokens in any order, with offsets from any origin.

    The spans must cover every place between the first start and the last end, as the pieces of a lattice do.
    """
    if not len(starts):
        return np.zeros(0, dtype=np.int32)
    first = int(starts.min())
    starts, ends = starts - first, ends - first
    n_places = int(ends.max())
    # A token over [s, e) spans the places s+1 .. e-1: the number of spanning tokens grows at s+1 and falls at e.
    change = np.bincount(starts + 1, minlength=n_places + 1) - np.bincount(ends, minlength=n_places + 1)
    is_boundary = np.cumsum(change)[:n_places] == 0
    is_boundary[0] = False  # the beginning is not between two pieces
    return np.cumsum(is_boundary)[starts].astype(np.int32)
