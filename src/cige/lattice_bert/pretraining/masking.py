"""Masking: which tokens of an instance are to be predicted, and what replaces them."""

from __future__ import annotations

import numpy as np

from cige.lattice_bert.encoder.token_inputs import SPECIAL

MASK_SHARE, RANDOM_SHARE = 0.8, 0.1  # of the selected tokens; the rest keep their own id
NO_GROUP = SPECIAL  # the group of [CLS] and [SEP], which are never selected


def budget(n_tokens: int, mask_prob: float) -> int:
    """Number of tokens to select in an instance of `n_tokens`, including [CLS] and [SEP] (BERT's rule)."""
    return max(1, round(mask_prob * n_tokens))


def select_evenly(groups: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """bool[n_tokens]: whole groups, each with the same probability, so that `n` tokens are selected on average.

    The groups are placed around a circle in random order, and those that begin within a random arc of n tokens are
    selected. Each group therefore has a probability of n divided by the number of tokens, whatever its length. The last
    group may extend beyond the arc, so the number of selected tokens varies by the length of a group.

    Args:
        groups: int[n_tokens], the group of each token (a segment, a word or a single token), or NO_GROUP.
    """
    sizes, numbers = _sizes(groups)
    order = rng.permutation(numbers)
    ends = np.cumsum(sizes[order])
    n_tokens = int(ends[-1]) if len(ends) else 0
    chosen = np.zeros(len(sizes) + 1, np.bool_)  # the last position belongs to NO_GROUP
    if n_tokens:
        begins = (ends - sizes[order] + int(rng.random() * n_tokens)) % n_tokens
        chosen[order[begins < n]] = True
    return chosen[groups]


def select_within(groups: np.ndarray, n_most: int, rng: np.random.Generator) -> np.ndarray:
    """bool[n_tokens]: whole groups, as in `select_evenly`, in random order as long as `n_most` tokens hold them.

    This is how the released code masks. Long groups fit less often, so they are selected less often than short ones.
    """
    sizes, numbers = _sizes(groups)
    chosen = np.zeros(len(sizes) + 1, np.bool_)
    left = n_most
    for group in rng.permutation(numbers).tolist():
        if sizes[group] <= left:
            chosen[group] = True
            left -= int(sizes[group])
            if not left:
                break
    return chosen[groups]


def _sizes(groups: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The number of tokens of each group, and the numbers of the groups that are not empty."""
    sizes = np.bincount(groups[groups != NO_GROUP])
    return sizes, np.flatnonzero(sizes)


def corrupt(ids: np.ndarray, selected: np.ndarray, *, mask_id: int, n_ids: int, rng: np.random.Generator) -> np.ndarray:
    """Replace each selected token by [MASK] (80%) or by a random id below `n_ids` (10%), or keep it (10%).

    As in the released code, the choice is made for each token rather than for each segment.
    """
    draws = rng.random(len(ids))
    corrupted = ids.copy()
    corrupted[selected & (draws < MASK_SHARE)] = mask_id
    is_random = selected & (draws >= MASK_SHARE) & (draws < MASK_SHARE + RANDOM_SHARE)
    corrupted[is_random] = rng.integers(0, n_ids, is_random.sum())
    return corrupted


def hide(ids: np.ndarray, selected: np.ndarray, *, mask_id: int) -> np.ndarray:
    """Replace every selected token by [MASK], to measure accuracy on fully masked segments."""
    return np.where(selected, np.asarray(mask_id, ids.dtype), ids)
