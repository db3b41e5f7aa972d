"""TENER's relative self-attention: directional, aware of distance, unscaled (Yan et al. 2019); DCSAN Eq. 15-22.

    A(t, j) = q_t . k_j + q_t . R_{t-j} + u . k_j + v . R_{t-j}        q = x W_Q, k = x (not projected)
    R_p     = [... sin(p f_i), cos(p f_i) ...]                         fixed, shared by heads, of a head's width

R_p and R_{-p} differ in their sines, so attention distinguishes left from right, whereas products of absolute sinusoids
lose this information after a projection. There are only 2T distances in a batch, so q and R are multiplied once per
distance and the products are shifted into place, without a [T, T, width] tensor.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from cige.nn.dropout import Dropout
from cige.nn.masked_attention import heads_first, softmax_over
from cige.nn.sinusoid import sinusoid

Sinusoid = Literal["interleaved", "concatenated"]


class RelativeSelfAttention(nn.Module):
    """Multi-head self-attention over a sequence, with sinusoidal encodings of distances.

    Args:
        width: D, of input and output; n_heads divides it into heads of an even width.
        scaled: whether to divide scores by sqrt(D / n_heads).
        key_projection: whether keys are x W_K; otherwise x itself, in n_heads parts.
        output_projection: whether to multiply the concatenated heads by W_O.
        key_positions: whether to add k_j . R_{j-t} (TENER's later code).
        reverse_distance: whether to use R_{j-t} instead of R_{t-j}, and the reverse for keys (released codes).
        form: order and frequencies of R (see `sinusoid`).
        dropout_prob: dropout on probabilities.
    """

    def __init__(
        self,
        *,
        width: int,
        n_heads: int,
        scaled: bool = False,
        key_projection: bool = False,
        output_projection: bool = False,
        key_positions: bool = False,
        reverse_distance: bool = False,
        form: Sinusoid = "interleaved",
        dropout_prob: float = 0.0,
    ):
        super().__init__()
        if problem := head_problem(width, n_heads):
            raise ValueError(problem)
        self.n_heads, self.head_width = n_heads, width // n_heads
        self.scale = self.head_width**-0.5 if scaled else 1.0
        self.key_positions, self.reverse_distance, self.form = key_positions, reverse_distance, form
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(width, width, bias=False) if key_projection else nn.Identity()
        self.value = nn.Linear(width, width, bias=False)
        self.output = nn.Linear(width, width, bias=False) if output_projection else nn.Identity()
        self.u = nn.Parameter(torch.empty(n_heads, self.head_width))
        self.v = nn.Parameter(torch.empty(n_heads, self.head_width))
        self.dropout = Dropout(dropout_prob)
        for linear in (self.query, self.key, self.value, self.output):
            if isinstance(linear, nn.Linear):
                nn.init.xavier_uniform_(linear.weight)
        for bias in (self.u, self.v):
            nn.init.xavier_normal_(bias)

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Attend from every character float[B, T, D] to every real one, bool[B, T], which come first in a row.

        Returns:
            float[B, T, D], and the probabilities float[H, B, T, T] before dropout (no gradient flows through these).
            Rows of padding are undefined, but contain no NaN.
        """
        query, key, value = (heads_first(layer(x), self.n_heads) for layer in (self.query, self.key, self.value))
        n_chars = x.shape[1]
        distance = torch.arange(1 - n_chars, n_chars + 1, device=x.device)  # j - t, the last is not used (see `slide`)
        distance = distance if self.reverse_distance else -distance
        table = sinusoid(distance, self.head_width, self.form).to(x)  # [2T, D / H]
        of_keys, of_distances = ((query + bias[:, None, None]) * self.scale for bias in (self.u, self.v))
        score = of_keys @ key.transpose(2, 3) + slide(of_distances @ table.t())  # [H, B, T, T]
        if self.key_positions:
            score = score + slide(key * self.scale @ table.t()).transpose(2, 3)
        probabilities = softmax_over(score, mask)
        read = self.dropout(probabilities) @ value  # [H, B, T, D / H]
        return self.output(read.permute(1, 2, 0, 3).flatten(2)), probabilities.detach()


def slide(by_distance: Tensor) -> Tensor:
    """Convert float[..., T, 2T], with a column for each j - t from 1 - T, to float[..., T, T], indexed by t and j.

    Row t of the result begins at column T - 1 - t of the input. In memory, each row therefore begins 2T - 1 elements
    after the previous one, so that a view of this width suffices (Dai et al. 2019, appendix B).
    """
    n = by_distance.shape[-2]
    line = by_distance.flatten(-2)[..., n - 1 : n - 1 + n * (2 * n - 1)]
    return line.unflatten(-1, (n, 2 * n - 1))[..., :n]


def head_problem(width: int, n_heads: int) -> str | None:
    """Why this attention cannot divide `width` into `n_heads` heads, or None if it can."""
    if width % n_heads or (width // n_heads) % 2:
        return f"{n_heads} heads in width {width}: expected a width that is an even multiple of the number of heads"
    return None
