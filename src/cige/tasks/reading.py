"""Span reading: the first and the last piece of an answer, over windows of its context."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from cige.lattice.token_lattice import TokenLattice
from cige.lattice.tokenizer import LatticeTokenizer
from cige.models.lattice_bert.network import LatticeBert, initialise
from cige.nn.dropout import Dropout
from cige.tasks.best_span import BestSpan, best_span
from cige.tasks.examples import Answer, ReadingExample
from cige.tasks.items import Item, Room, token_batch
from cige.text.windows import Window, strided_windows

N_SPECIAL = 3  # [CLS], and [SEP] after each text
NONE = 0  # the place of [CLS], to which a window without the answer points
STRIDE = 128  # pieces from one window to the next
MAX_QUESTION = 64  # pieces; longer ones lose their end
MAX_ANSWER = 100  # pieces; 99.5% of the answers of CMRC2018 have fewer characters


@dataclass(frozen=True)
class ContextWindow:
    """The pieces of a context that an item reads.

    Attributes:
        chain: int64[P], their places among the item's tokens.
        char_starts, char_ends: int32[P], half-open [start, end) of each in code points of the context.
    """

    chain: np.ndarray
    char_starts: np.ndarray
    char_ends: np.ndarray


class ReadingHead(nn.Module):
    """Vectors of pieces -> where an answer begins and where it ends.

    A window without the answer learns to point to [CLS]. Scores are log-probabilities within a window, [CLS] among
    them, so that those of several windows compare; the answer is the best span over all windows.

    Args:
        width: D of the Lattice-BERT.
    """

    def __init__(self, *, width: int, dropout_prob: float = 0.1):
        super().__init__()
        self.dropout = Dropout(dropout_prob)
        self.linear = nn.Linear(width, 2)
        initialise(self.linear)

    @property
    def settings(self) -> dict[str, Any]:
        return {}

    def items(self, number: int, example: ReadingExample, tokenizer: LatticeTokenizer, room: Room) -> list[Item]:
        """An item for each window; none where the context has no pieces.

        Targets are (first, last) piece of the window from 1, both NONE where the answer is not in it. An example whose
        answer is nowhere has items without targets.
        """
        question, context = tokenizer.tokenize(example.question), tokenizer.tokenize(example.context)
        n_question = min(question.n_pieces, MAX_QUESTION, max(0, (room.max_pieces - N_SPECIAL) // 3))
        question = question.part(0, n_question)
        size = max(1, room.max_pieces - N_SPECIAL - n_question)
        answer = _answer_pieces(example, context)
        items = []
        for window in strided_windows(context.n_pieces, size, stride=STRIDE):
            inputs = tokenizer.encode(question, context.part(window.start, window.end))
            chain = inputs.chain(1)
            about = ContextWindow(chain, inputs.char_starts[chain], inputs.char_ends[chain])
            items.append(Item(number, (inputs,), _target(answer, window), about))
        return items

    def losses(self, bert: LatticeBert, items: Sequence[Item]) -> Tensor:
        scores = self._scores(bert, items)
        targets = torch.tensor([item.target for item in items], device=scores.device)  # [B, 2]
        return F.nll_loss(scores, targets, reduction="none").mean(1)

    def outputs(self, bert: LatticeBert, items: Sequence[Item]) -> list[np.ndarray]:
        """float32[2, 1 + P] of each: log-probabilities of beginning and of ending at [CLS] and at each piece."""
        scores = self._scores(bert, items).permute(0, 2, 1).cpu().numpy()
        return [row[:, : 1 + len(item.about.chain)] for row, item in zip(scores, items, strict=True)]

    def answer(self, example: ReadingExample, items: Sequence[Item], outputs: Sequence[np.ndarray]) -> Answer:
        """The best span as the context has it; an empty one for a context without pieces."""
        found: list[tuple[BestSpan, ContextWindow]] = []
        for item, output in zip(items, outputs, strict=True):
            span = best_span(output[0, 1:], output[1, 1:], max_length=MAX_ANSWER)
            found.append((span, item.about))
        if not found:
            return Answer("", -1)
        span, window = max(found, key=lambda one: one[0].score)
        start, end = int(window.char_starts[span.start]), int(window.char_ends[span.end])
        return Answer(example.context[start:end], start)

    def _scores(self, bert: LatticeBert, items: Sequence[Item]) -> Tensor:
        """float32[B, 1 + P, 2]: log-probabilities; -inf on padding."""
        batch = token_batch(bert, [item.inputs[0] for item in items])
        n_pieces = torch.tensor([len(item.about.chain) for item in items])
        rows = torch.zeros(len(items), 1 + int(n_pieces.max()), dtype=torch.long)
        for row, item in zip(rows, items, strict=True):
            row[1 : 1 + len(item.about.chain)] = torch.from_numpy(item.about.chain)
        hidden = bert.encode(batch, rows.to(batch.ids.device))
        logits = self.linear(self.dropout(hidden)).float()
        is_padding = (torch.arange(rows.shape[1]) > n_pieces[:, None]).to(logits.device)
        return F.log_softmax(logits.masked_fill(is_padding[:, :, None], -torch.inf), 1)


def _answer_pieces(example: ReadingExample, context: TokenLattice) -> tuple[int, int] | None:
    """[first, last] piece of the first answer; None where it is nowhere."""
    if not example.answers or example.answers[0].start < 0:
        return None
    answer = example.answers[0]
    first = int(np.searchsorted(context.piece_ends, answer.start, side="right"))
    last = int(np.searchsorted(context.piece_starts, answer.start + len(answer.text), side="left")) - 1
    return (first, last) if first <= last else None


def _target(answer: tuple[int, int] | None, window: Window) -> tuple[int, int] | None:
    if answer is None:
        return None
    first, last = answer
    is_within = window.start <= first and last < window.end
    return (first - window.start + 1, last - window.start + 1) if is_within else (NONE, NONE)
