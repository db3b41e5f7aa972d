"""TokenBatch: several token lattices as padded tensors, as a pre-trained lattice model reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor


class TokenArrays(Protocol):
    """What a batch needs of one token lattice: four int arrays of its N tokens, [CLS] first."""

    @property
    def ids(self) -> np.ndarray: ...
    @property
    def starts(self) -> np.ndarray: ...
    @property
    def ends(self) -> np.ndarray: ...
    @property
    def types(self) -> np.ndarray: ...


@dataclass(frozen=True)
class TokenBatch:
    """Token lattices side by side. Padding has id, start, end and type 0.

    Attributes:
        ids: int64[B, N], rows of the joint vocabulary.
        starts, ends: int64[B, N], first and last position of each token, inclusive; [CLS] alone is at position 0.
        types: int64[B, N], 0 for the first text with its [CLS] and [SEP], 1 for the second.
        n_tokens: int64[B], real tokens of each lattice.
    """

    ids: Tensor
    starts: Tensor
    ends: Tensor
    types: Tensor
    n_tokens: Tensor

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def mask(self) -> Tensor:
        """bool[B, N]: real tokens."""
        return torch.arange(self.ids.shape[1], device=self.ids.device) < self.n_tokens[:, None]

    def to(self, device: torch.device | str) -> TokenBatch:
        """The same batch on `device`; copies from pinned memory run beside other work."""
        parts = (self.ids, self.starts, self.ends, self.types, self.n_tokens)
        return TokenBatch(*(part.to(device, non_blocking=True) for part in parts))


def collate_tokens(lattices: Sequence[TokenArrays]) -> TokenBatch:
    """Pad some token lattices to one batch.

    Raises:
        ValueError: there is no lattice, or one without tokens; a token lattice holds at least [CLS].
    """
    lengths = [len(lattice.ids) for lattice in lattices]
    if not lengths or not min(lengths):
        what = "no lattice" if not lengths else f"lattice {lengths.index(0)} has no tokens"
        raise ValueError(f"{what}; a batch needs at least one lattice, and each its [CLS]")
    padded = np.zeros((4, len(lattices), max(lengths)), np.int64)
    for row, (lattice, n) in enumerate(zip(lattices, lengths, strict=True)):
        padded[:, row, :n] = (lattice.ids, lattice.starts, lattice.ends, lattice.types)
    ids, starts, ends, types = torch.from_numpy(padded)
    return TokenBatch(ids=ids, starts=starts, ends=ends, types=types, n_tokens=torch.tensor(lengths))
