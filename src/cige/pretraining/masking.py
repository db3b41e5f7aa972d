"""Masking: which tokens of an instance are to be predicted, and what stands in their place."""

from __future__ import annotations

import numpy as np

MASK_SHARE, RANDOM_SHARE = 0.8, 0.1  # of the selected tokens; the rest keep their own id
NO_GROUP = -1  # [CLS] and [SEP], which are never selected


def budget(n_tokens: int, mask_prob: float) -> int:
    """Most tokens to select in an instance of `n_tokens`, [CLS] and [SEP] counted (BERT's rule)."""
    return max(1, round(mask_prob * n_tokens))


def select_groups(groups: np.ndarray, n_most: int, rng: np.random.Generator) -> np.ndarray:
    """Select whole groups in random order, each one that still fits the budget.

    Args:
        groups: int[n], the group of each token (a segment, a word, a token by itself), or NO_GROUP.
        n_most: budget in tokens.

    Returns:
        bool[n].
    """
    sizes = np.bincount(groups[groups != NO_GROUP])
    chosen = np.zeros(len(sizes) + 1, np.bool_)  # the last place is NO_GROUP's
    left = n_most
    for group in rng.permutation(np.flatnonzero(sizes)).tolist():
        if sizes[group] <= left:
            chosen[group] = True
            left -= int(sizes[group])
            if not left:
                break
    return chosen[groups]


def corrupt(ids: np.ndarray, selected: np.ndarray, *, mask_id: int, n_ids: int, rng: np.random.Generator) -> np.ndarray:
    """Of the selected tokens each becomes [MASK] (80%), any id below `n_ids` (10%) or stays (10%), by itself.

    That every token draws for itself, not every segment, is the released code's rule.
    """
    draws = rng.random(len(ids))
    found = ids.copy()
    found[selected & (draws < MASK_SHARE)] = mask_id
    is_random = selected & (draws >= MASK_SHARE) & (draws < MASK_SHARE + RANDOM_SHARE)
    found[is_random] = rng.integers(0, n_ids, is_random.sum())
    return found


def hide(ids: np.ndarray, selected: np.ndarray, *, mask_id: int) -> np.ndarray:
    """Every selected token becomes [MASK]; how accuracy on fully masked segments is measured."""
    return np.where(selected, np.asarray(mask_id, ids.dtype), ids)
