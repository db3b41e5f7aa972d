"""PyTorch's fused attention with additional scores, limited to backends that are correct with such scores.

Since version 2.11, PyTorch prefers cuDNN's attention on recent GPUs. If there is a mask, that backend has no gradient
of the mask, may return NaN gradients of queries, silently misreads a mask whose dtype differs from that of the queries,
and plans again for every shape of a batch. The memory-efficient kernel has none of these problems, so with a mask only
this kernel and plain operations are allowed.
"""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

ON_GPU = [SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]


def fused_attention(
    query: Tensor, key: Tensor, value: Tensor, scores: Tensor, *, scale: float, dropout_prob: float = 0.0
) -> Tensor:
    """float[.., M, e]: softmax(scale Q K^T + scores) V.

    Args:
        query: float[.., M, d].
        key: float[.., N, d]; value: float[.., N, e].
        scores: float[.., M, N], -inf for hidden keys; or bool[.., M, N], True for visible keys.
        dropout_prob: dropout on the probabilities (0 outside training).
    """

    def attended() -> Tensor:
        return F.scaled_dot_product_attention(query, key, value, attn_mask=scores, dropout_p=dropout_prob, scale=scale)

    if not query.is_cuda:
        return attended()
    with sdpa_kernel(ON_GPU):
        return attended()
