"""Sinusoidal encodings of positions and distances (Vaswani et al. 2017), in the two orders that papers use."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def sinusoid(position: Tensor, width: int, form: str) -> Tensor:
    """float[n, width] for int64[n] positions, which may be negative; `width` is even.

    "interleaved" is Vaswani's form: alternating sines and cosines, frequencies 10000^(-2k / width). "concatenated" is
    that of tensor2tensor, which released codes use: all sines before all cosines, frequencies
    10000^(-k / (width/2 - 1)).
    """
    half = width // 2
    step = math.log(10000.0) / (half if form == "interleaved" else max(1, half - 1))
    angle = position[:, None].double() * torch.exp(torch.arange(half, device=position.device).double() * -step)
    waves = [angle.sin(), angle.cos()]
    joined = torch.stack(waves, 2).flatten(1) if form == "interleaved" else torch.cat(waves, 1)
    return joined.float()
