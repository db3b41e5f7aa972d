"""Sequence labelling: a tag for each word piece of the character chain (§2.5); lattice words have no tags."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from cige.data.padding import pad_rows
from cige.data.sentence import Sentence, Span
from cige.data.tags import allowed_transitions, spans_to_tags, tag_set, tags_to_spans
from cige.errors import DataError
from cige.lattice_bert.encoder.network import LatticeBert
from cige.lattice_bert.encoder.token_lattice import TokenLattice
from cige.lattice_bert.encoder.tokenizer import LatticeTokenizer
from cige.lattice_bert.tasks.items import Head, Item, ReadPieces, Room, pieces_of, read_pieces, targets_of
from cige.nn.crf import CRF
from cige.nn.crf_numpy import NumpyCRF
from cige.text.windows import overlapping_windows

N_SPECIAL = 2  # [CLS] and [SEP]
UNTAGGED = -100  # padding, which cross_entropy ignores


class TaggingHead(Head[Sentence, np.ndarray, list[Span]]):
    """Predicts BMES tags from the vectors of pieces.

    Texts may have any length; long texts are read in windows that overlap by half. Decoding finds the best tag sequence
    of the whole text that the scheme allows.

    Args:
        has_outside: whether characters may be outside of all entities, which is not the case in word segmentation.
        crf: learn transition scores (as the released code) rather than a softmax per piece (the paper).
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
        tags = tag_set(labels)[0 if has_outside else 1 :]
        super().__init__(width=width, n_outputs=len(tags), dropout_prob=dropout_prob)
        self.labels, self.has_outside, self.has_crf, self.tags = list(labels), has_outside, crf, tags
        self._number = {tag: number for number, tag in enumerate(tags)}
        self.crf = CRF(n_tags=len(tags), allowed=allowed_transitions(tags), boundary_scores=crf)
        self.crf.transitions.requires_grad_(crf)

    @property
    def settings(self) -> dict[str, object]:
        return {"labels": self.labels, "has_outside": self.has_outside, "crf": self.has_crf}

    def items(self, number: int, example: Sentence, tokenizer: LatticeTokenizer, room: Room) -> list[Item[np.ndarray]]:
        """One item per window; none for a text without pieces. Targets are int64[P] tags. Raises a DataError if a label
        is not one of the head's labels."""
        lattice = tokenizer.tokenize(example.text)
        tags = self._piece_tags(example, lattice)
        items = []
        size = room.window_size(lattice, other_pieces=N_SPECIAL, other_tokens=N_SPECIAL)
        for window in overlapping_windows(lattice.n_pieces, size):
            start, end = window.start, window.end
            inputs = tokenizer.encode(lattice.part(start, end))
            core = slice(window.core_start - start, window.core_end - start)
            items.append(Item(number, (inputs,), tags[start:end], ReadPieces.of(inputs, 0, core)))
        return items

    def losses(self, bert: LatticeBert, items: Sequence[Item[np.ndarray]]) -> Tensor:
        emissions, n_pieces = self._emissions(bert, items)
        tags = torch.from_numpy(pad_rows(targets_of(items), fill=UNTAGGED)).to(emissions.device)
        if self.has_crf:
            summed = self.crf.negative_log_likelihood(emissions, tags.clamp(min=0), n_pieces)
        else:
            summed = F.cross_entropy(emissions.transpose(1, 2), tags, ignore_index=UNTAGGED, reduction="none").sum(1)
        return summed / n_pieces

    def outputs(self, bert: LatticeBert, items: Sequence[Item[np.ndarray]]) -> list[np.ndarray]:
        """float32[P, tags] for each item: the tag scores of its pieces."""
        emissions, n_pieces = self._emissions(bert, items)
        return [row[:n] for row, n in zip(emissions.cpu().numpy(), n_pieces.tolist(), strict=True)]

    def answer(self, example: Sentence, items: Sequence[Item[np.ndarray]], outputs: Sequence[np.ndarray]) -> list[Span]:
        """The entities or words, sorted, in code points of the text."""
        chain = piece_chain(items, outputs)
        if not chain.n_pieces:
            return []
        path = self.scores_of_tags().decode(chain.emissions[None], [chain.n_pieces])[0]
        return [chain.in_text(span) for span in self.piece_spans(path)]

    def piece_spans(self, path: Sequence[int]) -> list[Span]:
        """The spans that a tag sequence encodes, in pieces."""
        return tags_to_spans([self.tags[tag] for tag in path])

    def scores_of_tags(self) -> NumpyCRF:
        """The decoder of emissions; without a CRF, all transitions that the scheme allows have equal scores."""
        return self.crf.in_numpy()

    def _piece_tags(self, example: Sentence, lattice: TokenLattice) -> np.ndarray:
        """int64[P]: the tags of the pieces. A piece belongs to the span that contains its first code point.

        If a span begins or ends inside a piece, tags cannot express this, and the target is a span of whole pieces.
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

    def _emissions(self, bert: LatticeBert, items: Sequence[Item[np.ndarray]]) -> tuple[Tensor, Tensor]:
        """float32[B, P, tags], and int64[B], the number of pieces of each item."""
        hidden, n_pieces = read_pieces(bert, items, with_cls=False)
        return self.scores_of(hidden), n_pieces


@dataclass(frozen=True)
class PieceChain:
    """All pieces of a text with their tag scores."""

    emissions: np.ndarray  # float32[P, tags]
    char_starts: np.ndarray  # int32[P], half-open offsets [start, end) in code points of the text
    char_ends: np.ndarray

    @property
    def n_pieces(self) -> int:
        return len(self.emissions)

    def in_text(self, span: Span) -> Span:
        """Convert a span of pieces to code points."""
        return Span(int(self.char_starts[span.start]), int(self.char_ends[span.end - 1]), span.label)


def piece_chain(items: Sequence[Item[np.ndarray]], outputs: Sequence[np.ndarray]) -> PieceChain:
    """Merge the windows of a text: each piece gets its scores from the window in whose middle it lies."""
    windows = [pieces_of(item) for item in items]
    if not windows:
        nothing = np.zeros(0, np.int32)
        return PieceChain(np.zeros((0, 1), np.float32), nothing, nothing)
    return PieceChain(
        np.concatenate([output[w.core] for w, output in zip(windows, outputs, strict=True)]),
        np.concatenate([w.char_starts[w.core] for w in windows]),
        np.concatenate([w.char_ends[w.core] for w in windows]),
    )
