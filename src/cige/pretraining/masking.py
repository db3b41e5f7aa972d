"""Masking: which tokens of an instance are to be predicted, and what stands in their place."""

from __future__ import annotations

import numpy as np

MASK_SHARE, RANDOM_SHARE = 0.8, 0.1  # of the selected tokens; the rest keep their own id
NO_GROUP = -1  # [CLS] and [SEP], which are never selected


def budget(n_tokens: int, mask_prob: float) -> int:
    """Tokens to select in an instance of `n_tokens`, [CLS] and [SEP] counted (BERT's rule)."""
    return max(1, round(mask_prob * n_tokens))


def select_evenly(groups: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Select whole groups, each with the same chance, so that `n` tokens are selected on average.

    The groups are laid around a circle in random order, and those that begin within a random arc of n tokens are
    selected: each does with a chance of n by the number of tokens, however long it is. The last one may reach over the
    end of the arc, so the number of selected tokens varies by the lengths of single groups.

    Args:
        groups: int[n_tokens], the group of each token (a segment, a word, a token by itself), or NO_GROUP.

    Returns:
        bool[n_tokens].
    """
    sizes, numbers = _sizes(groups)
    order = rng.permutation(numbers)
    ends = np.cumsum(sizes[order])
    n_tokens = int(ends[-1]) if len(ends) else 0
    chosen = np.zeros(len(sizes) + 1, np.bool_)  # the last place is NO_GROUP's
    if n_tokens:
        begins = (ends - sizes[order] + int(rng.random() * n_tokens)) % n_tokens
        chosen[order[begins < n]] = True
    return chosen[groups]


def select_within(groups: np.ndarray, n_most: int, rng: np.random.Generator) -> np.ndarray:
    """Select whole groups in random order, each one that still fits the budget: no more than `n_most` tokens.

    The released code does it so. Long groups seldom fit, so they are selected less often than short ones.

    Args:
        groups: int[n_tokens], as in `select_evenly`.

    Returns:
        bool[n_tokens].
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
    """The tokens of each group, and the numbers of the groups that have any."""
    sizes = np.bincount(groups[groups != NO_GROUP])
    return sizes, np.flatnonzero(sizes)


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
