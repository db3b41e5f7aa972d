"""Multi-head attention in which each query attends to some of the keys, and keys and values may depend on a relation.

    score(i, j) = q_i . (k_j + K[r_ij])        out_i = sum over j of p_ij (v_j + V[r_ij])          (Shaw et al. 2018)

There are few relations R: q_i is multiplied with all of K and the products are selected by r_ij, and probabilities are
summed per relation before V, so that no tensor of size [N, N, width] is needed.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from cige.nn.dropout import Dropout


@dataclass(frozen=True)
class Relations:
    """What is added to keys and values, depending on their relation to the query.

    Attributes:
        codes: int64[B, Q, K], the relation of each pair; or int64[E], that of each edge (see nn/edges.py).
        keys: float[H, R, d] or, shared by the heads, [R, d]; added to the key.
        values: likewise, added to the value; or None.
    """

    codes: Tensor
    keys: Tensor
    values: Tensor | None = None


def masked_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    allowed: Tensor,
    *,
    relations: Relations | None = None,
    dropout: Dropout | None = None,
) -> tuple[Tensor, Tensor]:
    """Attend from each query to the allowed keys; a query without allowed keys returns zeros.

    Args:
        query: float[B, H, Q, d], scaled.
        key, value: float[B, H, K, d].
        allowed: bool[B, Q, K].
        relations: the additions for each relation r_ij.
        dropout: dropout on the probabilities.

    Returns:
        float[B, Q, H * d], and the probabilities float[B, H, Q, K] (no gradient flows through these).
    """
    allowed = allowed[:, None]  # [B, 1, Q, K]
    scores = query @ key.transpose(2, 3)  # [B, H, Q, K]
    if relations is not None:
        codes = relations.codes[:, None].expand(scores.shape)
        scores = scores + (query @ relations.keys.transpose(-1, -2)).gather(3, codes)
    probabilities = _masked_softmax(scores, allowed)
    weights = dropout(probabilities) if dropout is not None else probabilities
    out = weights @ value  # [B, H, Q, d]
    if relations is not None and relations.values is not None:
        shares = weights.new_zeros(*weights.shape[:3], relations.values.shape[-2])  # [B, H, Q, R]
        out = out + shares.scatter_add(3, codes, weights) @ relations.values
    return out.transpose(1, 2).flatten(2), probabilities.detach()


def attention_of_one(
    query: Tensor, keys: Tensor, allowed: Tensor, *, key: nn.Linear, value: nn.Linear, dropout: Dropout | None = None
) -> tuple[Tensor, Tensor]:
    """masked_attention of a single query over keys that do not have to be projected.

        q . (K x_j + b) = (K' q) . x_j + q . b
        sum over j of p_j (V x_j + c) = V (sum of p_j x_j) + c (sum of p_j)

    so that only one vector per head is projected instead of all keys.

    Args:
        query: float[B, H, 1, d], scaled.
        keys: float[B, K, w].
        allowed: bool[B, 1, K].
        key, value: from w to H * d, both with or both without a bias.
        dropout: dropout on the probabilities.

    Returns:
        float[B, 1, H * d], and the probabilities float[B, H, 1, K] (no gradient flows through these).
    """
    n_heads, head_width = query.shape[1], query.shape[3]
    of_key, of_value = (x.weight.view(n_heads, head_width, -1) for x in (key, value))  # [H, d, w]
    alone = query[:, :, 0].transpose(0, 1)  # [H, B, d]
    folded = (alone @ of_key).transpose(0, 1)  # [B, H, w]
    scores = folded @ keys.transpose(1, 2)  # [B, H, K]
    if key.bias is not None:
        # This term is the same for all keys and changes nothing, but gives every parameter a gradient.
        scores = scores + (query[:, :, 0] * key.bias.view(n_heads, head_width)).sum(2, keepdim=True)
    probabilities = _masked_softmax(scores, allowed)
    weights = dropout(probabilities) if dropout is not None else probabilities
    read = (weights @ keys).transpose(0, 1) @ of_value.transpose(1, 2)  # [H, B, d]
    out = read.transpose(0, 1)  # [B, H, d]
    if value.bias is not None:
        out = out + weights.sum(2, keepdim=True) * value.bias.view(n_heads, head_width)
    return out.flatten(1)[:, None], probabilities.detach()[:, :, None]


def _masked_softmax(scores: Tensor, allowed: Tensor) -> Tensor:
    """Softmax over the last axis where allowed (broadcast to the scores); zeros in rows without allowed keys."""
    sees_nothing = ~allowed.any(-1, keepdim=True)
    return torch.softmax(hide(scores, allowed | sees_nothing), -1).masked_fill(sees_nothing, 0)


def hide(scores: Tensor, allowed: Tensor) -> Tensor:
    """Finite scores where allowed (broadcast to the scores), -inf elsewhere.

    This is an addition, which on a CPU takes at most half the time of masked_fill over all heads.
    """
    return scores + torch.where(allowed, 0.0, float("-inf")).to(scores.dtype)


def by_head(x: Tensor, n_heads: int) -> Tensor:
    """[B, N, H * d] -> [B, H, N, d]."""
    return x.unflatten(2, (n_heads, -1)).transpose(1, 2)


def heads_first(x: Tensor, n_heads: int) -> Tensor:
    """[B, N, H * d] -> [H, B, N, d]."""
    return x.unflatten(2, (n_heads, -1)).permute(2, 0, 1, 3)


def softmax_over(score: Tensor, mask: Tensor) -> Tensor:
    """Softmax of float[H, B, Q, N] over the keys where bool[B, N]; an empty sentence attends to its first position, so
    that this is not 0 / 0."""
    seen = mask.clone()
    seen[:, 0] = True
    return torch.softmax(hide(score, seen[:, None]), -1)
