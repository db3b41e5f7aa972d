"""LatticeBatch: several encoded lattices as padded tensors, and batches that fit a node budget."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cige.data.vocabulary import PAD, EncodedLattice


@dataclass(frozen=True)
class LatticeBatch:
    """What every lattice model reads. Padding is row PAD, position 0.

    Attributes:
        chars, bigrams: int64[B, T] rows.
        n_chars: int64[B].
        words: int64[B, W] rows; word_starts, word_ends: int64[B, W] half-open spans.
        word_counts: int64[B, W], how often training text uses each word (see Vocabulary); 0 on user words.
        word_groups: int64[B, W], bit g is set if a word is in gazetteer g; 0 on user words.
        n_words: int64[B].
        texts: the B normalised texts.
        tags: int64[B, T] gold tag ids, or None.
    """

    chars: Tensor
    bigrams: Tensor
    n_chars: Tensor
    words: Tensor
    word_starts: Tensor
    word_ends: Tensor
    word_counts: Tensor
    word_groups: Tensor
    n_words: Tensor
    texts: tuple[str, ...]
    tags: Tensor | None = None

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def char_mask(self) -> Tensor:
        """bool[B, T]."""
        return torch.arange(self.chars.shape[1], device=self.chars.device) < self.n_chars[:, None]

    @property
    def word_mask(self) -> Tensor:
        """bool[B, W]."""
        return torch.arange(self.words.shape[1], device=self.words.device) < self.n_words[:, None]

    def to(self, device: torch.device | str) -> LatticeBatch:
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        moved: dict[str, Any] = {k: v.to(device) for k, v in values.items() if isinstance(v, Tensor)}
        return replace(self, **moved)


def collate(lattices: Sequence[EncodedLattice], tags: Sequence[np.ndarray] | None = None) -> LatticeBatch:
    """Pad `lattices` to one batch; `tags` are int64[T] each."""

    def pad(parts: Sequence[np.ndarray]) -> Tensor:
        out = np.full((len(parts), max(1, *(len(p) for p in parts)) if parts else 1), PAD, np.int64)
        for row, part in zip(out, parts, strict=True):
            row[: len(part)] = part
        return torch.from_numpy(out)

    return LatticeBatch(
        chars=pad([x.chars for x in lattices]),
        bigrams=pad([x.bigrams for x in lattices]),
        n_chars=torch.tensor([len(x.chars) for x in lattices]),
        words=pad([x.words for x in lattices]),
        word_starts=pad([x.starts for x in lattices]),
        word_ends=pad([x.ends for x in lattices]),
        word_counts=pad([x.counts for x in lattices]),
        word_groups=pad([x.groups for x in lattices]),
        n_words=torch.tensor([len(x.words) for x in lattices]),
        texts=tuple(x.text for x in lattices),
        tags=pad(tags) if tags is not None else None,
    )


def batches_by_budget(n_nodes: Sequence[int], *, max_sentences: int, max_pairs: int) -> Iterator[list[int]]:
    """Cut a sequence of sentences, in the order given, into batches that fit memory.

    A batch holds at most `max_sentences` sentences and costs at most `max_pairs` node pairs, counted as
    sentences x (longest sentence)^2, since scores are stored padded. A sentence over the budget is a batch alone.

    Yields:
        Lists of positions in `n_nodes`.
    """
    batch: list[int] = []
    longest = 0
    for position, n in enumerate(n_nodes):
        grown = max(longest, n)
        if batch and (len(batch) == max_sentences or (len(batch) + 1) * grown * grown > max_pairs):
            yield batch
            batch, grown = [], n
        batch.append(position)
        longest = grown
    if batch:
        yield batch
