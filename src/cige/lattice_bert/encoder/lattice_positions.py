"""Position scores: the part of an attention score that depends on the positions of two lattice tokens (Eq. 2, §2.3).

    P_ij = att_ij + b_ij + r_ij                           in every layer, for every head, added to the content score
    att  = scale ([PS[s_i]; PE[e_i]] W_q) ([PS[s_j]; PE[e_j]] W_k)^T                            absolute positions
    b    = b_ss[s_j - s_i] + b_se[s_j - e_i] + b_es[e_j - s_i] + b_ee[e_j - e_i]            clipped distances
    r    = one number for the relation of token j to token i

P_ij depends only on the two spans, and a batch has few distinct ones, because its sequences share the positions of
characters and most positions of short words. P is therefore computed once for each pair of distinct spans (b and r once
for each distinct relative span), and looked up for each pair of tokens. This takes one look-up instead of five, and
products over U spans instead of B * N tokens. [CLS] is the only token at position 0, so its reset scores are one row
and one column of P.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from cige.lattice_bert.encoder.network_config import RelationRule
from cige.lattice_bert.encoder.token_batch import TokenBatch
from cige.nn.relative_spans import RelativeSpans, relative_spans

RELATIONS = ("self", "left, detached", "left, overlapping", "containing", "contained", "right, overlapping",
             "right, detached")  # fmt: skip
"""The paper's seven relations of token j to token i, in the order of Figure 3; the codes of `paper_relation`."""
N_RELEASED_CODES = 32  # rows of the released table, of which only seven are used


def paper_relation(start_i: Tensor, end_i: Tensor, start_j: Tensor, end_j: Tensor) -> Tensor:
    """int64 codes 0 to 6, indices of RELATIONS, of spans with inclusive ends.

    If two spans share an edge, the paper's definitions of overlap and containment both apply; here, one is contained.
    """
    same = (start_i == start_j) & (end_i == end_j)
    rules = (
        same,
        end_j < start_i,
        (start_j < start_i) & (start_i <= end_j) & (end_j < end_i),
        (start_j <= start_i) & (end_i <= end_j) & ~same,
        (start_i <= start_j) & (end_j <= end_i) & ~same,
        (start_i < start_j) & (start_j <= end_i) & (end_i < end_j),
        end_i < start_j,
    )
    return sum(code * holds for code, holds in enumerate(rules))  # type: ignore[return-value]


def released_relation(start_i: Tensor, end_i: Tensor, start_j: Tensor, end_j: Tensor) -> Tensor:
    """int64 codes 0 to 31 of the released code, which classifies pairs with a shared edge differently."""
    tests = (
        start_j >= start_i,
        start_j > end_i,
        end_j >= start_i,
        end_j >= end_i,
        (start_i == start_j) & (end_i == end_j),
    )
    return sum(2**bit * holds for bit, holds in enumerate(tests))  # type: ignore[return-value]


_RULES: dict[str, tuple[Callable[[Tensor, Tensor, Tensor, Tensor], Tensor], int]] = {
    "paper": (paper_relation, len(RELATIONS)),
    "released": (released_relation, N_RELEASED_CODES),
}


@dataclass(frozen=True)
class DistinctSpans:
    """The U distinct spans of a batch, in order, including that of padding if there is any.

    Attributes:
        starts, ends: int64[U], inclusive; 0 on padding.
        is_padding: bool[U].
        index: int64[B, N], the row in [0, U) of each token.
    """

    starts: Tensor
    ends: Tensor
    is_padding: Tensor
    index: Tensor


def distinct_spans(batch: TokenBatch) -> DistinctSpans:
    n_positions = batch.ends.max() + 1
    code = (batch.starts * n_positions + batch.ends).masked_fill(~batch.mask, -1)
    codes, index = torch.unique(code, return_inverse=True)
    spans = codes.clamp(min=0)
    return DistinctSpans(spans // n_positions, spans % n_positions, codes < 0, index)


class LatticePositionScores(nn.Module):
    """Computes P of a token batch, once for all layers; for the settings, see LatticeBertConfig.

    Args:
        max_positions: rows of PS and PE, whose width is `position_width`; positions are 0 to max_positions - 1.
        scale: factor of att (1 / sqrt(d_k), or 1 / sqrt(2 d_k)).
        cls_reset: whether P[0, j] and P[i, 0] are one learned score per head (Ke et al. 2020) instead of Eq. 2.
    """

    def __init__(
        self,
        *,
        n_heads: int,
        head_width: int,
        position_width: int,
        max_positions: int,
        scale: float,
        relations: RelationRule | None = "paper",
        distances: bool = True,
        clip_distance: int = 128,
        cls_reset: bool = True,
    ):
        super().__init__()
        self.n_heads, self.max_positions, self.scale = n_heads, max_positions, scale
        self.relation_rule, self.clip_distance = relations, clip_distance
        self.starts = nn.Embedding(max_positions, position_width)  # PS
        self.ends = nn.Embedding(max_positions, position_width)  # PE
        self.query = nn.Linear(2 * position_width, n_heads * head_width)
        self.key = nn.Linear(2 * position_width, n_heads * head_width)
        # Matrices rather than vectors, so that they have weight decay, as in the released code.
        self.resets = nn.Parameter(torch.zeros(2, 2 * position_width)) if cls_reset else None
        self.distances = nn.Parameter(torch.zeros(4, 2 * clip_distance + 1, n_heads)) if distances else None
        self.relations = nn.Parameter(torch.zeros(_RULES[relations][1], n_heads)) if relations else None

    def forward(self, batch: TokenBatch) -> Tensor:
        """float32[B, H, N, N]: P_ij for query i and key j, and -inf where j is padding. Raises a ValueError if a token
        ends beyond the last position."""
        spans = distinct_spans(batch)
        if int(spans.ends.max()) >= self.max_positions:
            raise ValueError(
                f"a token at position {int(spans.ends.max())}; this model has {self.max_positions} positions, "
                "so a text must be cut to fewer pieces"
            )
        with torch.autocast(batch.ids.device.type, enabled=False):  # small, and its gradient is a sum over layers
            table = self.span_scores(spans).flatten(1)  # [H, U * U]
        index = spans.index
        n = index.shape[1]
        if index.is_cuda:  # fused attention on CUDA copies a bias whose rows do not start at multiples of 8, per layer
            index = F.pad(index, (0, -n % 8), value=int(index[0, 0]))
        pairs = index[:, :n, None] * len(spans.starts) + index[:, None, :]  # [B, N, N]
        return table.index_select(1, pairs.view(-1)).view(self.n_heads, *pairs.shape).transpose(0, 1)[..., :n]

    def span_scores(self, spans: DistinctSpans) -> Tensor:
        """float[H, U, U]: P for each pair of distinct spans."""
        places = torch.cat([self.starts(spans.starts), self.ends(spans.ends)], 1)  # [U, 2E]
        is_cls = (spans.ends == 0) & ~spans.is_padding
        has_place = ~(is_cls | spans.is_padding if self.resets is not None else spans.is_padding)[:, None]  # [U, 1]
        query, key = (self._by_head(linear(places) * has_place) for linear in (self.query, self.key))
        pairs = relative_spans(spans.starts[None], spans.ends[None])
        # The scores that replace Eq. 2 are rows of the table of relative scores, which saves a pass over [H, U, U].
        of_padding = places.new_full((1, self.n_heads), -inf)
        table = torch.cat([self._relative_scores(pairs), *self._reset_scores(), of_padding])
        n_rows, index = len(pairs.head_distance), pairs.index[0].long()
        if self.resets is not None:
            index = index.masked_fill(is_cls[:, None], n_rows).masked_fill(is_cls, n_rows + 1)
        index = index.masked_fill(spans.is_padding, len(table) - 1)
        relative = table.t().index_select(1, index.view(-1)).view(self.n_heads, *index.shape)
        return torch.baddbmm(relative, query, key.transpose(1, 2), alpha=self.scale)

    def _relative_scores(self, pairs: RelativeSpans) -> Tensor:
        """float[R, H]: b + r for each distinct relative span."""
        total = self.starts.weight.new_zeros(len(pairs.head_distance), self.n_heads)
        if self.distances is not None:
            clip = self.clip_distance
            for table, name in zip(self.distances, ("hh", "th", "ht", "tt"), strict=True):
                # A name consists of i's edge and j's edge; their distance is i - j here, and j - i in Eq. 2.
                total = total + F.embedding((-pairs.distance(name)).clamp(-clip, clip) + clip, table)
        if self.relations is not None:
            rule, _ = _RULES[self.relation_rule or ""]
            start_i, start_j = torch.zeros_like(pairs.head_distance), -pairs.head_distance
            codes = rule(start_i, pairs.query_reach, start_j, start_j + pairs.key_reach)
            total = total + F.embedding(codes, self.relations)
        return total

    def _reset_scores(self) -> tuple[Tensor, ...]:
        """float[1, H] twice: the scores of [CLS] as a query and as a key; empty if they are not reset."""
        if self.resets is None:
            return ()
        query, key = self._by_head(self.query(self.resets)), self._by_head(self.key(self.resets))  # [H, 2, d]
        return ((query * key).sum(2).t() * self.scale).split(1)

    def _by_head(self, x: Tensor) -> Tensor:
        """[U, H * d] -> [H, U, d]."""
        return x.view(len(x), self.n_heads, -1).transpose(0, 1)
