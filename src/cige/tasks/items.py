"""Items: examples as a Lattice-BERT reads them, and what a head for a kind of task must offer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from cige.data.token_batch import TokenBatch, collate_tokens
from cige.lattice.token_inputs import TokenInputs
from cige.lattice.tokenizer import LatticeTokenizer
from cige.models.lattice_bert.network import LatticeBert
from cige.nn.budget import batches_by_budget

# Token pairs of one forward pass, of which training keeps several floats per layer and head. On a GPU small passes
# cost what large ones do: the time to start their kernels.
MAX_PAIRS = {"cpu": 2**20}
MAX_PAIRS_ELSEWHERE = 2**23


@dataclass(frozen=True)
class Room:
    """How much of an example a model reads.

    Attributes:
        max_tokens: lattice tokens; None for no limit but that of pieces.
        max_pieces: word pieces, [CLS] and [SEP] among them.
    """

    max_tokens: int | None
    max_pieces: int


@dataclass(frozen=True)
class Item:
    """What one example, or one window of it, gives a network to read.

    Attributes:
        example: number of the example in its list.
        inputs: what is read: one lattice, or one for each option.
        target: what to answer, as the head's `items` makes it; None where there is nothing to learn.
        about: what the head needs to put answers together.
    """

    example: int
    inputs: tuple[TokenInputs, ...]
    target: Any = None
    about: Any = None

    @property
    def n_tokens(self) -> int:
        """Of the longest of its inputs."""
        return max(one.n_tokens for one in self.inputs)


class Head(Protocol):
    """What stands on a Lattice-BERT for one kind of task; an nn.Module."""

    @property
    def settings(self) -> dict[str, Any]:
        """JSON values that the constructor takes besides `width` and `dropout_prob`."""
        ...

    def items(self, number: int, example: Any, tokenizer: LatticeTokenizer, room: Room) -> list[Item]:
        """What the network reads of an example; an empty list where there is nothing to read."""
        ...

    def losses(self, bert: LatticeBert, items: Sequence[Item]) -> Tensor:
        """float[len(items)]: the loss of each item, all of which have targets."""
        ...

    def outputs(self, bert: LatticeBert, items: Sequence[Item]) -> list[Any]:
        """What the network says about each item: numpy arrays."""
        ...

    def answer(self, example: Any, items: Sequence[Item], outputs: Sequence[Any]) -> Any:
        """The answer to an example, given all of its items and what was said about them."""
        ...


def token_batch(bert: LatticeBert, inputs: Sequence[TokenInputs]) -> TokenBatch:
    """Some inputs side by side, where the model is."""
    return collate_tokens(inputs).to(bert.pooler.weight.device)


def read_pooled(bert: LatticeBert, inputs: Sequence[TokenInputs]) -> Tensor:
    """float[B, D]: the pooled [CLS] of each input; the last layer computes nothing else."""
    batch = token_batch(bert, inputs)
    return bert(batch, torch.zeros(len(batch), 1, dtype=torch.long, device=batch.ids.device)).pooled


def max_pairs_on(device: torch.device) -> int:
    """How many token pairs a training pass may hold."""
    return MAX_PAIRS.get(device.type, MAX_PAIRS_ELSEWHERE)


def passes(items: Sequence[Item], *, max_items: int, max_pairs: int) -> Iterator[list[int]]:
    """Cut items into forward passes that fit memory; yields places in `items`.

    A pass holds at most `max_items` items and about `max_pairs` token pairs, one item at the least.
    """
    widest = max((len(item.inputs) for item in items), default=1)
    sizes = [item.n_tokens for item in items]
    return batches_by_budget(sizes, max_sentences=max_items, max_pairs=max_pairs // widest)
