"""Items: examples in the form that a Lattice-BERT reads, and Head: the base of the heads for each kind of task."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from cige.data.padding import pad_rows
from cige.lattice_bert.encoder.network import LatticeBert, initialise
from cige.lattice_bert.encoder.token_batch import TokenBatch, collate_tokens
from cige.lattice_bert.encoder.token_inputs import TokenInputs
from cige.lattice_bert.encoder.token_lattice import TokenLattice
from cige.lattice_bert.encoder.tokenizer import LatticeTokenizer
from cige.nn.budget import batches_by_budget
from cige.nn.dropout import Dropout

Example = TypeVar("Example")  # of a task
Target = TypeVar("Target")  # what an item is trained to predict
Answer = TypeVar("Answer")  # to an example

# Maximum token pairs of one forward pass; training keeps several floats per pair, layer and head. On a GPU, small
# passes cost as much as large ones, because the time goes into launching kernels.
MAX_PAIRS = {"cpu": 2**20}
MAX_PAIRS_ELSEWHERE = 2**23


@dataclass(frozen=True)
class Room:
    """The maximum size of an input, including [CLS] and [SEP]."""

    max_tokens: int | None  # lattice tokens; None if only pieces are limited
    max_pieces: int  # word pieces

    def window_size(self, text: TokenLattice, *, other_pieces: int, other_tokens: int) -> int:
        """The number of pieces of a window of a text that fits beside what else an input holds, given the text's number
        of tokens per piece."""
        n_pieces = self.max_pieces - other_pieces
        n_tokens = text.n_tokens if self.max_tokens is None else max(0, self.max_tokens - other_tokens)
        if text.n_tokens > n_tokens:
            n_pieces = min(n_pieces, n_tokens * text.n_pieces // text.n_tokens)
        return max(1, n_pieces)


@dataclass(frozen=True)
class ReadPieces:
    """The P pieces of a text that an item reads.

    Attributes:
        chain: int64[P], their indices among the item's tokens.
        char_starts, char_ends: int32[P], half-open offsets [start, end) in code points of the text.
        core: the pieces, from 0, that have more context in this window than in its neighbours; all by default.
    """

    chain: np.ndarray
    char_starts: np.ndarray
    char_ends: np.ndarray
    core: slice = field(default_factory=lambda: slice(None))

    @classmethod
    def of(cls, inputs: TokenInputs, side: int, core: slice = slice(None)) -> ReadPieces:
        """The pieces of the first (`side` 0) or the second (1) text of an input."""
        chain = inputs.chain(side)
        return cls(chain, inputs.char_starts[chain], inputs.char_ends[chain], core)


@dataclass(frozen=True)
class Item(Generic[Target]):
    """The input of the network for one example, or for one window of it.

    Attributes:
        example: number of the example in its list.
        inputs: one lattice, or one per option.
        target: the correct answer in the form of the head's `items`; None if the item cannot be used for training.
        pieces: the pieces of the text in which the head finds spans; None if it finds none.
    """

    example: int
    inputs: tuple[TokenInputs, ...]
    target: Target | None = None
    pieces: ReadPieces | None = None

    @property
    def n_tokens(self) -> int:
        """The number of tokens of the longest input."""
        return max(one.n_tokens for one in self.inputs)


class Head(nn.Module, Generic[Example, Target, Answer]):
    """The head on a Lattice-BERT for one kind of task: dropout and a linear layer, and what a subclass adds.

    Args:
        width: D of the Lattice-BERT.
        n_outputs: width of the linear layer's output.
    """

    def __init__(self, *, width: int, n_outputs: int, dropout_prob: float):
        super().__init__()
        self.dropout = Dropout(dropout_prob)
        self.linear = nn.Linear(width, n_outputs)
        initialise(self.linear)

    @property
    def settings(self) -> dict[str, object]:
        """The constructor's arguments besides `width` and `dropout_prob`, as JSON values."""
        return {}

    def items(self, number: int, example: Example, tokenizer: LatticeTokenizer, room: Room) -> list[Item[Target]]:
        """The items of an example; an empty list if there is nothing to read."""
        raise NotImplementedError

    def losses(self, bert: LatticeBert, items: Sequence[Item[Target]]) -> Tensor:
        """float[len(items)]: the loss of each item; all items must have targets."""
        raise NotImplementedError

    def outputs(self, bert: LatticeBert, items: Sequence[Item[Target]]) -> list[np.ndarray]:
        """The output of the network for each item."""
        raise NotImplementedError

    def answer(self, example: Example, items: Sequence[Item[Target]], outputs: Sequence[np.ndarray]) -> Answer:
        """The answer to an example, given all of its items and their outputs."""
        raise NotImplementedError

    def scores_of(self, vectors: Tensor) -> Tensor:
        """float[..., D] -> float32[..., n_outputs]: dropout and the linear layer."""
        return self.linear(self.dropout(vectors)).float()


def targets_of(items: Sequence[Item[Target]]) -> list[Target]:
    """The target of each item; ValueError if one has none."""
    targets = [item.target for item in items if item.target is not None]
    if len(targets) < len(items):
        raise ValueError(f"{len(items) - len(targets)} of {len(items)} items have no target; expected one for each")
    return targets


def pieces_of(item: Item[Any]) -> ReadPieces:
    """The pieces of an item whose head finds spans."""
    if item.pieces is None:
        raise ValueError(f"an item of example {item.example} lists no pieces, but its head finds spans of pieces")
    return item.pieces


def token_batch(bert: LatticeBert, inputs: Sequence[TokenInputs]) -> TokenBatch:
    """A batch of inputs on the model's device."""
    return collate_tokens(inputs).to(bert.pooler.weight.device)


def read_pooled(bert: LatticeBert, inputs: Sequence[TokenInputs]) -> Tensor:
    """float[B, D]: the pooled [CLS] of each input; the last layer computes only [CLS]."""
    batch = token_batch(bert, inputs)
    return bert(batch, torch.zeros(len(batch), 1, dtype=torch.long, device=batch.ids.device)).pooled


def read_pieces(bert: LatticeBert, items: Sequence[Item[Any]], *, with_cls: bool) -> tuple[Tensor, Tensor]:
    """Vectors float[B, P, D] of each item's pieces, and their numbers int64[B]; the last layer computes only these.

    With `with_cls`, the vector of [CLS] comes before those of the pieces: float[B, 1 + P, D].
    """
    batch = token_batch(bert, [item.inputs[0] for item in items])
    chains = [pieces_of(item).chain for item in items]
    rows = pad_rows([np.append(0, chain) for chain in chains] if with_cls else chains)
    device = batch.ids.device
    return bert.encode(batch, torch.from_numpy(rows).to(device)), torch.tensor([len(c) for c in chains], device=device)


def max_pairs_on(device: torch.device) -> int:
    """The maximum number of token pairs in a training pass."""
    return MAX_PAIRS.get(device.type, MAX_PAIRS_ELSEWHERE)


def passes(items: Sequence[Item[Any]], *, max_items: int, max_pairs: int) -> Iterator[list[int]]:
    """Divide items into forward passes that fit into memory; yields indices of `items`.

    A pass holds at most `max_items` items and about `max_pairs` token pairs, but at least one item.
    """
    widest = max((len(item.inputs) for item in items), default=1)
    sizes = [item.n_tokens for item in items]
    return batches_by_budget(sizes, max_sentences=max_items, max_pairs=max_pairs // widest)
