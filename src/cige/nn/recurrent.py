"""Bidirectional recurrence over sentences of different lengths, whose results do not depend on padding.

For the backward direction, each sentence is mirrored and its padding stays behind it, so that both directions run
forwards over padded tensors. That is faster than packed sequences on a CPU (16 sentences of up to 60 characters,
100 numbers per direction, one thread: 10 ms against 17 ms, and 28 ms against 120 ms with gradients).
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

CELLS: dict[str, type[nn.LSTM] | type[nn.GRU]] = {"lstm": nn.LSTM, "gru": nn.GRU}


class BiRecurrent(nn.Module):
    """A bidirectional LSTM or GRU over characters.

    Weights are initialised as in PyTorch, uniformly in +-1 / sqrt(out_width / 2).

    Args:
        in_width: C, the number of features per character.
        out_width: D, of both directions together; an even number.
        n_layers: number of stacked layers, each of which reads both directions of the one below.
        cell: "lstm" or "gru".
    """

    def __init__(self, *, in_width: int, out_width: int, n_layers: int = 1, cell: Literal["lstm", "gru"] = "lstm"):
        super().__init__()
        if out_width % 2:
            raise ValueError(f"out_width is {out_width}; expected an even number, half of it for each direction")

        def layers() -> nn.ModuleList:
            widths = [in_width, *[out_width] * (n_layers - 1)]
            return nn.ModuleList(CELLS[cell](width, out_width // 2, batch_first=True) for width in widths)

        self.forward_layers, self.backward_layers = layers(), layers()
        self.out_width = out_width

    def forward(self, x: Tensor, n_chars: Tensor) -> Tensor:
        """float[B, T, C], int64[B] -> float[B, T, D]: forward states, then backward states; zero on padding."""
        positions = mirrored_positions(n_chars, x.shape[1])
        is_char = torch.arange(x.shape[1], device=x.device) < n_chars[:, None]  # [B, T]
        for from_left, from_right in zip(self.forward_layers, self.backward_layers, strict=True):
            right, _ = from_right(take(x, positions))
            x = torch.cat([from_left(x)[0], take(right, positions)], -1) * is_char[:, :, None]
        return x


def mirrored_positions(n_chars: Tensor, n_padded: int) -> Tensor:
    """int64[B, T]: the position of each character when the sentence is read from its end; padding stays in place.

    It is its own inverse: with `take`, it mirrors a sentence and mirrors it back.
    """
    position = torch.arange(n_padded, device=n_chars.device)
    mirrored = n_chars[:, None] - 1 - position
    return torch.where(mirrored >= 0, mirrored, position)


def take(x: Tensor, positions: Tensor) -> Tensor:
    """float[B, T, D] whose row t of sentence b is row positions[b, t] of `x`."""
    first = torch.arange(len(x), device=x.device)[:, None] * x.shape[1]  # whole rows are copied faster than by gather
    return x.flatten(0, 1).index_select(0, (positions + first).flatten()).view_as(x)
