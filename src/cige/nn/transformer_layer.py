"""TransformerLayer: any attention and a feed-forward network, each with a residual connection and normalisation."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from torch.nn import functional as F

from cige.nn.dropout import Dropout


class TransformerLayer(nn.Module):
    """Attention and a feed-forward network, each followed by a residual connection and layer normalisation.

    Args:
        attention: float[B, N, D] and further inputs -> float[B, Q, D] for the first Q of N, and its probabilities.
        width: D; ff_width: inner width of the feed-forward network.
        dropout_prob: dropout inside and after the feed-forward network.
        residual: False doubles the output of a sub-layer instead of adding its input.
        shared_norm: whether both sub-layers share one layer normalisation.
    """

    def __init__(
        self,
        attention: nn.Module,
        *,
        width: int,
        ff_width: int,
        dropout_prob: float = 0.0,
        residual: bool = True,
        shared_norm: bool = False,
    ):
        super().__init__()
        self.residual = residual
        self.attention = attention
        self.attention_norm = nn.LayerNorm(width)
        self.ff_in = nn.Linear(width, ff_width)
        self.ff_out = nn.Linear(ff_width, width)
        self.ff_norm = None if shared_norm else nn.LayerNorm(width)
        self.dropout = Dropout(dropout_prob)
        for linear in (self.ff_in, self.ff_out):
            nn.init.xavier_uniform_(linear.weight)

    def forward(self, x: Tensor, *inputs: Any, **options: Any) -> tuple[Tensor, Any]:
        """float[B, Q, D] and the probabilities of the attention; `inputs` and `options` are those of the attention."""
        attended, probabilities = self.attention(x, *inputs, **options)
        x = x[:, : attended.shape[1]]
        x = self.attention_norm(attended + (x if self.residual else attended))
        changed = self.dropout(self.ff_out(self.dropout(F.relu(self.ff_in(x)))))
        norm = self.ff_norm or self.attention_norm
        return norm(changed + (x if self.residual else changed)), probabilities
