"""The distinct relative spans of a batch, so that R of FLAT (Eq. 4-8) is computed once for each."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class RelativeSpans:
    """The row of R for each pair of nodes (i, j).

    R_ij depends only on (head_i - head_j, length of i, length of j), so a batch has few distinct rows: U << B * N * N.

    Attributes:
        index: int32[B, Q, N], the row in [0, U) of each pair.
        head_distance: int64[U], head_i - head_j.
        query_reach: int64[U], tail_i - head_i of the query node (0 for a character).
        key_reach: int64[U], tail_j - head_j of the key node.
    """

    index: Tensor
    head_distance: Tensor
    query_reach: Tensor
    key_reach: Tensor

    def distance(self, name: str) -> Tensor:
        """int64[U], one of the four distances of Eq. 4-7: "hh", "ht", "th" or "tt" (query end first)."""
        query = self.query_reach if name[0] == "t" else 0
        key = self.key_reach if name[1] == "t" else 0
        return self.head_distance + query - key


def relative_spans(head: Tensor, tail: Tensor, *, n_char_queries: int | None = None) -> RelativeSpans:
    """Find the distinct pairs of int64[B, N] heads and inclusive tails; padding may hold any small value.

    Args:
        n_char_queries: Q, if only the characters 0..Q-1 of each sentence are queries; None: all N nodes are.
    """
    reaches, reach = torch.unique(tail - head, return_inverse=True)  # few distinct lengths
    n_reaches, span = len(reaches), int(head.max()) + 1
    if n_char_queries is None:
        asking, asking_reach = head, reach
    else:
        span = max(span, n_char_queries)
        asking = torch.arange(n_char_queries, device=head.device).expand(len(head), -1)  # [B, Q]
        asking_reach = torch.zeros_like(asking)  # characters have the shortest span: row 0 of `reaches`
        if int(reaches[0]) != 0:
            raise ValueError("queries are characters, and no node is one")
    distance = asking[:, :, None] - head[:, None, :] + (span - 1)  # [B, Q, N], >= 0
    code = (distance * n_reaches + asking_reach[:, :, None]) * n_reaches + reach[:, None, :]  # [B, Q, N]
    # A presence map over the small code space finds the distinct codes without sorting B * Q * N numbers.
    present = torch.zeros((2 * span - 1) * n_reaches * n_reaches, dtype=torch.bool, device=head.device)
    present[code.view(-1)] = True
    distinct = present.nonzero().squeeze(1)  # [U]
    row = torch.empty(present.shape, dtype=torch.int32, device=head.device)
    row[distinct] = torch.arange(len(distinct), dtype=torch.int32, device=head.device)
    pair = distinct % (n_reaches * n_reaches)
    return RelativeSpans(
        index=row[code],
        head_distance=distinct // (n_reaches * n_reaches) - (span - 1),
        query_reach=reaches[pair // n_reaches],
        key_reach=reaches[pair % n_reaches],
    )
