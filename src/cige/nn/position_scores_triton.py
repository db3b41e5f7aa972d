"""The position term of FLAT's attention as a Triton kernel: rows of R are read into registers and not stored again.

A program processes one query node of one sentence with all its heads. It reads the rows of R for a block of keys once
and multiplies them with the queries of all heads. It therefore moves only the table of distinct rows (which stays in
the cache), the queries, and H numbers per pair. In the backward pass, a query's gradient is accumulated in registers
over its keys, and the gradient of R is added atomically, row by row, so that its last bits may vary between runs.

Importing this file needs Triton, which comes with PyTorch's CUDA builds. Without CUDA the kernel runs in Triton's
interpreter (TRITON_INTERPRET=1), which is how it is tested.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
from torch import Tensor
from triton import language as tl

BLOCK = 32  # keys per block: with D = 160 (256 in registers), a block of R has 32 kB
LEAST_DOT = 16  # the minimum size for tl.dot


class PositionScores(torch.autograd.Function):
    """float[H, B, Q, N]: query[h, b, i] . relation[index[b, i, j]]; arguments as those of position_scores."""

    @staticmethod
    @torch.amp.custom_fwd(device_type="cuda", cast_inputs=torch.float32)
    def forward(ctx: Any, query: Tensor, relation: Tensor, index: Tensor) -> Tensor:
        query, relation, index = (x.contiguous() for x in (query, relation, index))
        ctx.save_for_backward(query, relation, index)
        n_heads, n_batch, n_queries, width = query.shape
        n_rows, n_keys = n_batch * n_queries, index.shape[2]
        scores = query.new_empty(n_heads, n_batch, n_queries, n_keys)
        _forward[(n_rows,)](query, relation, index, scores, n_rows, n_keys, width, **_blocks(query))
        return scores

    @staticmethod
    @torch.amp.custom_bwd(device_type="cuda")
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:  # type: ignore[override]
        query, relation, index = ctx.saved_tensors
        _, n_batch, n_queries, width = query.shape
        n_rows = n_batch * n_queries
        grad_query, grad_relation = torch.empty_like(query), torch.zeros_like(relation)
        tensors = (query, relation, index, grad.contiguous(), grad_query, grad_relation)
        _backward[(n_rows,)](*tensors, n_rows, index.shape[2], width, **_blocks(query))
        return grad_query, grad_relation, None


def _blocks(query: Tensor) -> dict[str, int]:
    n_heads, *_, width = query.shape
    return {"H": n_heads, "HEADS": _side(n_heads), "WIDTH": _side(width), "BLOCK": BLOCK}


def _side(n: int) -> int:
    return max(LEAST_DOT, 1 << (n - 1).bit_length())


@triton.jit
def _forward(query, relation, index, scores, n_rows, n, width,
            H: tl.constexpr, HEADS: tl.constexpr, WIDTH: tl.constexpr, BLOCK: tl.constexpr):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)  # of the B * Q queries
    head, column = tl.arange(0, HEADS)[:, None], tl.arange(0, WIDTH)[None, :]
    is_head, is_column = head < H, column < width
    q = tl.load(query + (head * n_rows + row) * width + column, mask=is_head & is_column, other=0.0)
    for start in range(0, n, BLOCK):
        key = start + tl.arange(0, BLOCK)
        u = tl.load(index + row * n + key, mask=key < n, other=0).to(tl.int64)
        r = tl.load(relation + u[:, None] * width + column, mask=(key < n)[:, None] & is_column, other=0.0)
        products = tl.dot(q, tl.trans(r), input_precision="ieee")  # [HEADS, BLOCK]
        tl.store(scores + (head * n_rows + row) * n + key[None, :], products, mask=is_head & (key < n)[None, :])


@triton.jit
def _backward(query, relation, index, grad, grad_query, grad_relation, n_rows, n, width,
             H: tl.constexpr, HEADS: tl.constexpr, WIDTH: tl.constexpr, BLOCK: tl.constexpr):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    head, column = tl.arange(0, HEADS)[:, None], tl.arange(0, WIDTH)[None, :]
    is_head, is_column = head < H, column < width
    place = (head * n_rows + row) * width + column
    q = tl.load(query + place, mask=is_head & is_column, other=0.0)
    total = tl.zeros((HEADS, WIDTH), dtype=tl.float32)
    for start in range(0, n, BLOCK):
        key = start + tl.arange(0, BLOCK)
        is_key = (key < n)[:, None] & is_column
        u = tl.load(index + row * n + key, mask=key < n, other=0).to(tl.int64)
        r = tl.load(relation + u[:, None] * width + column, mask=is_key, other=0.0)
        g = tl.load(grad + (head * n_rows + row) * n + key[None, :], mask=is_head & (key < n)[None, :], other=0.0)
        total += tl.dot(g, r, input_precision="ieee")  # [HEADS, WIDTH]
        per_pair = tl.dot(tl.trans(g), q, input_precision="ieee")  # [BLOCK, WIDTH]
        tl.atomic_add(grad_relation + u[:, None] * width + column, per_pair, mask=is_key)
    tl.store(grad_query + place, total, mask=is_head & is_column)
