"""Sequence labelling: a tag for each word piece of the character chain (§2.5); lattice words carry none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from cige.data.sentence import Sentence, Span
from cige.data.tags import allowed_transitions, spans_to_tags, tag_set, tags_to_spans
from cige.errors import DataError
from cige.lattice.token_lattice import TokenLattice
from cige.lattice.tokenizer import LatticeTokenizer
from cige.models.lattice_bert.network import LatticeBert, initialise
from cige.nn.crf import CRF
from cige.nn.crf_numpy import NumpyCRF
from cige.nn.dropout import Dropout
from cige.tasks.items import Item, Room, token_batch
from cige.text.windows import overlapping_windows

N_SPECIAL = 2  # [CLS] and [SEP]
UNTAGGED = -100  # padding; what cross_entropy passes over


@dataclass(frozen=True)
class PieceWindow:
    """The pieces that an item reads, and which of them it answers for.

    Attributes:
        chain: int64[P], their places among the item's tokens.
        char_starts, char_ends: int32[P], half-open [start, end) of each in code points of the text.
        first, last: half-open, from 0: those that this window sees with more context than its neighbours do.
    """

    chain: np.ndarray
    char_starts: np.ndarray
    char_ends: np.ndarray
    first: int
    last: int


class TaggingHead(nn.Module):
    """Vectors of pieces -> BMES tags.

    A text of any length is read: one that is too long in windows that share their halves. Decoding finds the best
    sequence of the whole text that the scheme allows.

    Args:
        width: D of the Lattice-BERT.
        labels: types of entity.
        has_outside: whether characters may be outside of all entities; in word segmentation none is.
        crf: learn scores of transitions (the released code) in place of a softmax for each piece (the paper).
    """

    def __init__(
        self,
        *,
        width: int,
        labels: Sequence[str],
        has_outside: bool = True,
        crf: bool = False,
        dropout_prob: float = 0.1,
    ):
        super().__init__()
        self.labels, self.has_outside, self.has_crf = list(labels), has_outside, crf
        self.tags = tag_set(labels)[0 if has_outside else 1 :]
        self._number = {tag: number for number, tag in enumerate(self.tags)}
        self.dropout = Dropout(dropout_prob)
        self.linear = nn.Linear(width, len(self.tags))
        initialise(self.linear)
        self.crf = CRF(n_tags=len(self.tags), allowed=allowed_transitions(self.tags), boundary_scores=crf)
        self.crf.transitions.requires_grad_(crf)

    @property
    def settings(self) -> dict[str, Any]:
        return {"labels": self.labels, "has_outside": self.has_outside, "crf": self.has_crf}

    def items(self, number: int, example: Sentence, tokenizer: LatticeTokenizer, room: Room) -> list[Item]:
        """An item for each window; none for a text without pieces. Targets are int64[P] tags.

        Raises:
            DataError: a label that is none of the head's.
        """
        lattice = tokenizer.tokenize(example.text)
        tags = self._piece_tags(example, lattice)
        items = []
        for window in overlapping_windows(lattice.n_pieces, _n_at_once(lattice, room)):
            start, end = window.start, window.end
            part = lattice if end - start == lattice.n_pieces else lattice.part(start, end)
            inputs = tokenizer.encode(part)
            chain = inputs.chain(0)
            about = PieceWindow(
                chain,
                inputs.char_starts[chain],
                inputs.char_ends[chain],
                first=window.core_start - start,
                last=window.core_end - start,
            )
            items.append(Item(number, (inputs,), tags[start:end], about))
        return items

    def losses(self, bert: LatticeBert, items: Sequence[Item]) -> Tensor:
        emissions, n_pieces = self._emissions(bert, items)
        tags = torch.full(emissions.shape[:2], UNTAGGED)
        for row, item in enumerate(items):
            tags[row, : len(item.target)] = torch.from_numpy(item.target)
        tags = tags.to(emissions.device)
        if self.has_crf:
            summed = self.crf.negative_log_likelihood(emissions, tags.clamp(min=0), n_pieces)
        else:
            summed = F.cross_entropy(emissions.transpose(1, 2), tags, ignore_index=UNTAGGED, reduction="none").sum(1)
        return summed / n_pieces

    def outputs(self, bert: LatticeBert, items: Sequence[Item]) -> list[np.ndarray]:
        """float32[P, tags] of each: scores of the tags of its pieces."""
        emissions, n_pieces = self._emissions(bert, items)
        return [row[:n] for row, n in zip(emissions.cpu().numpy(), n_pieces.tolist(), strict=True)]

    def answer(self, example: Sentence, items: Sequence[Item], outputs: Sequence[np.ndarray]) -> list[Span]:
        """The entities or words, sorted, in code points of the text."""
        chain = piece_chain(items, outputs)
        if not chain.n_pieces:
            return []
        path = self.scores_of_tags().decode(chain.emissions[None], [chain.n_pieces])[0]
        return [chain.in_text(span) for span in self.piece_spans(path)]

    def piece_spans(self, path: Sequence[int]) -> list[Span]:
        """The spans that some tags spell, in pieces."""
        return tags_to_spans([self.tags[tag] for tag in path])

    def scores_of_tags(self) -> NumpyCRF:
        """What decodes emissions; without a CRF all sequences that the scheme allows score alike."""
        return self.crf.in_numpy()

    def _piece_tags(self, example: Sentence, lattice: TokenLattice) -> np.ndarray:
        """int64[P]. A piece belongs to the span that holds its first code point.

        Where a span begins or ends inside a piece, no tags can say so: the span learnt is that of whole pieces.
        """
        spans: list[Span] = []
        for span in example.spans:
            if span.label not in self.labels:
                raise DataError(
                    f"{example.text[:20]!r}: label {span.label!r} is not one of those the training data has "
                    f"({', '.join(self.labels)})"
                )
            first, last = np.searchsorted(lattice.piece_starts, [span.start, span.end]).tolist()
            if first < last:
                spans.append(Span(first, last, span.label))
        tags = spans_to_tags(lattice.n_pieces, spans)
        outside = self._number.get("O", UNTAGGED)
        return np.array([self._number.get(tag, outside) for tag in tags], np.int64)

    def _emissions(self, bert: LatticeBert, items: Sequence[Item]) -> tuple[Tensor, Tensor]:
        """(float32[B, P, tags], int64[B]: pieces of each item); the last layer computes the chain alone."""
        batch = token_batch(bert, [item.inputs[0] for item in items])
        n_pieces = torch.tensor([len(item.about.chain) for item in items])
        rows = torch.zeros(len(items), int(n_pieces.max()), dtype=torch.long)
        for row, item in zip(rows, items, strict=True):
            row[: len(item.about.chain)] = torch.from_numpy(item.about.chain)
        hidden = bert.encode(batch, rows.to(batch.ids.device))
        return self.linear(self.dropout(hidden)).float(), n_pieces.to(batch.ids.device)


@dataclass(frozen=True)
class PieceChain:
    """All pieces of a text with the scores of their tags.

    Attributes:
        emissions: float32[P, tags].
        char_starts, char_ends: int32[P], half-open [start, end) of each in code points of the text.
    """

    emissions: np.ndarray
    char_starts: np.ndarray
    char_ends: np.ndarray

    @property
    def n_pieces(self) -> int:
        return len(self.emissions)

    def in_text(self, span: Span) -> Span:
        """A span of pieces in code points."""
        return Span(int(self.char_starts[span.start]), int(self.char_ends[span.end - 1]), span.label)


def piece_chain(items: Sequence[Item], outputs: Sequence[np.ndarray]) -> PieceChain:
    """Put the windows of a text together: each piece has the scores of the window in whose middle it lies."""
    windows = [item.about for item in items]
    if not windows:
        nothing = np.zeros(0, np.int32)
        return PieceChain(np.zeros((0, 1), np.float32), nothing, nothing)
    return PieceChain(
        np.concatenate([output[w.first : w.last] for w, output in zip(windows, outputs, strict=True)]),
        np.concatenate([w.char_starts[w.first : w.last] for w in windows]),
        np.concatenate([w.char_ends[w.first : w.last] for w in windows]),
    )


def _n_at_once(lattice: TokenLattice, room: Room) -> int:
    """Pieces a window: as many as there is room for, at the text's own rate of tokens a piece."""
    n_pieces = room.max_pieces - N_SPECIAL
    if room.max_tokens is not None and lattice.n_tokens > room.max_tokens - N_SPECIAL:
        n_pieces = min(n_pieces, (room.max_tokens - N_SPECIAL) * lattice.n_pieces // lattice.n_tokens)
    return max(1, n_pieces)
