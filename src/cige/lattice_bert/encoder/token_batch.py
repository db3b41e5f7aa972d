"""TokenBatch: several token lattices as padded tensors, as a pre-trained lattice model reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from cige.data.padding import pad_rows
from cige.lattice_bert.encoder.token_inputs import TokenRow

_COLUMNS = [field.name for field in fields(TokenRow)]  # those of TokenBatch, in the same order


@dataclass(frozen=True)
class TokenBatch:
    """Padded token lattices. Padding has id, start, end and type 0.

    Attributes:
        ids: int64[B, N], rows of the joint vocabulary.
        starts, ends: int64[B, N], first and last position of each token, inclusive; only [CLS] is at position 0.
        types: int64[B, N], 0 for the first text with its [CLS] and [SEP], 1 for the second.
        n_tokens: int64[B], number of tokens of each lattice.
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
        """The same batch on `device`; copies from pinned memory run in parallel with other work."""
        return TokenBatch(*(getattr(self, field.name).to(device, non_blocking=True) for field in fields(self)))


def collate_tokens(lattices: Sequence[TokenRow]) -> TokenBatch:
    """Pad token lattices to one batch; ValueError if there is none, or one has no tokens, not even [CLS]."""
    lengths = [len(lattice.ids) for lattice in lattices]
    if not lengths or not min(lengths):
        what = "no lattice" if not lengths else f"lattice {lengths.index(0)} has no tokens"
        raise ValueError(f"{what}; a batch needs at least one lattice, and each needs its [CLS]")
    parts = {name: torch.from_numpy(pad_rows([getattr(row, name) for row in lattices])) for name in _COLUMNS}
    return TokenBatch(**parts, n_tokens=torch.tensor(lengths))
