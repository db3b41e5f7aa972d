"""Scores of pairs of characters in a band: every span up to a maximum length, of every type (GlobalPointer).

Su, Murtadha, Pan, Hou, Sun, Huang, Wen, Liu, "Global Pointer: Novel Efficient Span-based Approach for Named Entity
Recognition", arXiv 2208.03054, §3. Spans are scored one by one, so they may be nested, overlap, or have several types:

    q_{i,k} = W_{q,k} h_i + b_{q,k}        k_{j,k} = W_{k,k} h_j + b_{k,k}
    s_k(i, j) = (R_i q_{i,k}) . (R_j k_{j,k}) = q_{i,k} . R_{j-i} k_{j,k}                                     (1)
    loss = sum over types k of  log(1 + sum of e^-s over spans of type k) + log(1 + sum of e^s over other spans)  (2)

R_i is the rotation of RoFormer (Su et al. 2021), so a score depends on the distance j - i. A span is an entity of type
k if s_k > 0. The efficient form (§3.3) has one q and k for all types, and a linear layer that tells the types apart:

    s_k(i, j) = q_i . R_{j-i} k_j + w_k . [q_i; k_i; q_j; k_j]                                                (3)

The rotation is only in the first term. As in the code of the authors, products are divided by the square root of the
width (which the weights could absorb), and linear layers have biases. The losses of types are summed, not averaged, so
that the gradient of a type does not depend on the number of types.

The grid is a band: only pairs with 0 <= j - i < M are computed, in products of blocks, so time and memory grow with
T (C + M) for blocks of C characters and not with T x T. Cell [i, m] is the span of m + 1 characters that starts at i.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from cige.nn.rotary import rotary_angles

MIN_BLOCK = 32  # characters of a block; smaller blocks make products too small for the processor
IMPOSSIBLE = float("-inf")


class PointerGrid(nn.Module):
    """Scores of spans, float[B, T, M, K].

    Args:
        in_width: width D of the character features.
        n_types: number K of entity types.
        head_width: width of queries and keys, an even number.
        efficient: whether all types share queries and keys (equation 3), with far fewer weights; otherwise each type
            has its own (equation 1).
    """

    def __init__(self, *, in_width: int, n_types: int, head_width: int = 64, efficient: bool = False):
        super().__init__()
        if head_width % 2:
            raise ValueError(f"given head_width={head_width}; expected an even number, because numbers turn in pairs")
        self.n_types, self.head_width, self.efficient = n_types, head_width, efficient
        self.pairs = nn.Linear(in_width, 2 * head_width * (1 if efficient else n_types))
        self.types = nn.Linear(4 * head_width, n_types) if efficient else None
        nn.init.xavier_uniform_(self.pairs.weight)
        nn.init.zeros_(self.pairs.bias)

    def forward(self, features: Tensor, band: int) -> Tensor:
        """The scores of spans of at most `band` characters (M), from the features float[B, T, D] of characters.

        Returns:
            float[B, T, M, K]: the score of the span [i, i + m + 1) and type k at [i, m, k]; any value beyond T.
        """
        projected = self.pairs(features).unflatten(2, (-1, 2, self.head_width))  # [B, T, K or 1, 2, D]
        scale = self.head_width**-0.5
        turned = rotated(projected)
        scores = banded_products(turned[:, :, :, 0] * scale, turned[:, :, :, 1], band)  # [B, T, M, K or 1]
        if self.types is None:
            return scores
        # w_k . [q_i; k_i; q_j; k_j] has a part of the start i and a part of the end j, [B, T, K] each.
        edges, (first, last) = projected.flatten(2), self.types.weight.chunk(2, 1)
        at_start, at_end = F.linear(edges, first, self.types.bias), F.linear(edges, last)
        return scores + at_start[:, :, None] + shifted(at_end, band)


def rotated(vectors: Tensor) -> Tensor:
    """float[B, T, ..., D]: each pair of numbers (2d, 2d + 1) of position i turned by i / base^(2d / D) radians."""
    n, width = vectors.shape[1], vectors.shape[-1]
    angles = torch.from_numpy(rotary_angles(n, width)).to(vectors.device)  # [T, D / 2]
    angles = angles.reshape(n, *[1] * (vectors.dim() - 3), width // 2)
    cosine, sine = angles.cos().to(vectors.dtype), angles.sin().to(vectors.dtype)
    even, odd = vectors[..., 0::2], vectors[..., 1::2]
    return torch.stack([even * cosine - odd * sine, odd * cosine + even * sine], -1).flatten(-2)


def banded_products(queries: Tensor, keys: Tensor, band: int) -> Tensor:
    """float[B, T, M, K]: q_i . k_{i + m} for 0 <= m < M, or 0 where i + m is not below T.

    Args:
        queries, keys: float[B, T, K, D].
        band: M.
    """
    n_sentences, n_chars, n_types, _ = queries.shape
    block = max(MIN_BLOCK, band)  # C
    n_blocks = -(-n_chars // block)
    reach = block + band - 1  # the keys that the queries of a block need
    queries = F.pad(queries, (0, 0, 0, 0, 0, n_blocks * block - n_chars))
    keys = F.pad(keys, (0, 0, 0, 0, 0, n_blocks * block + band - 1 - n_chars))
    of_block = queries.unflatten(1, (n_blocks, block)).transpose(2, 3)  # [B, n, K, C, D]
    scores = of_block @ keys.unfold(1, reach, block)  # [B, n, K, C, C + M - 1]
    # Row c of a block needs the columns c .. c + M - 1: in rows that are longer by one, they are the first M.
    skewed = F.pad(scores.flatten(3), (0, block)).unflatten(3, (block, reach + 1))[..., :band]  # [B, n, K, C, M]
    return skewed.permute(0, 1, 3, 4, 2).reshape(n_sentences, n_blocks * block, band, n_types)[:, :n_chars]


def shifted(values: Tensor, band: int) -> Tensor:
    """float[B, T, M, K]: values[i + m] of float[B, T, K], or 0 where i + m is not below T."""
    return F.pad(values, (0, 0, 0, band - 1)).unfold(1, band, 1).transpose(2, 3)


def span_mask(n_chars: Tensor, length: int, band: int) -> Tensor:
    """bool[B, T, M]: the cells of spans within their sentences of int64[B] characters; `length` is T."""
    ends = torch.arange(length, device=n_chars.device)[:, None] + torch.arange(1, band + 1, device=n_chars.device)
    return ends <= n_chars[:, None, None]


def multi_label_loss(scores: Tensor, gold: Tensor, mask: Tensor) -> Tensor:
    """float[B]: the loss of each sentence, summed over types (equation 2), of scores float[B, T, M, K].

    Args:
        gold: bool[B, T, M, K].
        mask: bool[B, T, M], the cells that count; others may have any score.
    """
    scores, inside = scores.float(), mask[..., None]
    negative = scores.masked_fill(~(inside & ~gold), IMPOSSIBLE).flatten(1, 2)  # [B, T * M, K]
    missed = (-scores).masked_fill(~(inside & gold), IMPOSSIBLE).flatten(1, 2)
    zero = scores.new_zeros(len(scores), 1, scores.shape[3])
    both = [torch.cat([zero, part], 1).logsumexp(1) for part in (negative, missed)]
    return (both[0] + both[1]).sum(1)
