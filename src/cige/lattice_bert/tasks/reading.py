"""Extractive reading comprehension: predict the first and last piece of an answer, over windows of the context."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from cige.lattice_bert.encoder.network import LatticeBert
from cige.lattice_bert.encoder.token_lattice import TokenLattice
from cige.lattice_bert.encoder.tokenizer import LatticeTokenizer
from cige.lattice_bert.tasks.examples import Answer, ReadingExample
from cige.lattice_bert.tasks.items import Head, Item, ReadPieces, Room, pieces_of, read_pieces, targets_of
from cige.text.windows import Window, strided_windows

N_SPECIAL = 3  # [CLS], and [SEP] after each text
NONE = 0  # the position of [CLS], which is the target of windows without the answer
STRIDE = 128  # pieces from the start of one window to the next
MAX_QUESTION = 64  # pieces; the end of longer questions is cut off
Place: TypeAlias = tuple[int, int]  # the first and the last piece of an answer
MAX_ANSWER = 100  # pieces; 99.5% of the answers of CMRC2018 have fewer characters


class ReadingHead(Head[ReadingExample, Place, Answer]):
    """Predicts where an answer begins and ends from the vectors of pieces.

    A window without the answer is trained to point to [CLS]. Scores are log-probabilities within a window, including
    [CLS], so that those of several windows are comparable. The answer is the best span over all windows.
    """

    def __init__(self, *, width: int, dropout_prob: float = 0.1):
        super().__init__(width=width, n_outputs=2, dropout_prob=dropout_prob)

    def items(self, number: int, example: ReadingExample, tokenizer: LatticeTokenizer, room: Room) -> list[Item[Place]]:
        """One item per window; none if the context has no pieces.

        Targets are the (first, last) piece of the window, counted from 1, or NONE twice if the answer is not in the
        window. If the context does not contain the answer, the items have no targets.
        """
        question, context = tokenizer.tokenize(example.question), tokenizer.tokenize(example.context)
        n_question = min(question.n_pieces, MAX_QUESTION, max(0, (room.max_pieces - N_SPECIAL) // 3))
        question = question.part(0, n_question)
        n_pieces, n_tokens = N_SPECIAL + question.n_pieces, N_SPECIAL + question.n_tokens
        size = room.window_size(context, other_pieces=n_pieces, other_tokens=n_tokens)
        answer = _answer_pieces(example, context)
        items = []
        for window in strided_windows(context.n_pieces, size, stride=STRIDE):
            inputs = tokenizer.encode(question, context.part(window.start, window.end))
            items.append(Item(number, (inputs,), _target(answer, window), ReadPieces.of(inputs, 1)))
        return items

    def losses(self, bert: LatticeBert, items: Sequence[Item[Place]]) -> Tensor:
        scores = self._scores(bert, items)
        targets = torch.tensor(targets_of(items), device=scores.device)  # [B, 2]
        return F.nll_loss(scores, targets, reduction="none").mean(1)

    def outputs(self, bert: LatticeBert, items: Sequence[Item[Place]]) -> list[np.ndarray]:
        """float32[2, 1 + P] for each item: log-probabilities of beginning and of ending at [CLS] and at each piece."""
        scores = self._scores(bert, items).permute(0, 2, 1).cpu().numpy()
        return [row[:, : 1 + len(pieces_of(item).chain)] for row, item in zip(scores, items, strict=True)]

    def answer(self, example: ReadingExample, items: Sequence[Item[Place]], outputs: Sequence[np.ndarray]) -> Answer:
        """The text of the best span; empty for a context without pieces."""
        if not items:
            return Answer("", -1)
        best = [best_span(output[0, 1:], output[1, 1:], max_length=MAX_ANSWER) for output in outputs]
        span, item = max(zip(best, items, strict=True), key=lambda one: one[0].score)
        window = pieces_of(item)
        start, end = int(window.char_starts[span.start]), int(window.char_ends[span.end])
        return Answer(example.context[start:end], start)

    def _scores(self, bert: LatticeBert, items: Sequence[Item[Place]]) -> Tensor:
        """float32[B, 1 + P, 2]: log-probabilities; -inf on padding."""
        hidden, n_pieces = read_pieces(bert, items, with_cls=True)
        is_padding = torch.arange(hidden.shape[1], device=hidden.device) > n_pieces[:, None]
        return F.log_softmax(self.scores_of(hidden).masked_fill(is_padding[:, :, None], -torch.inf), 1)


def _answer_pieces(example: ReadingExample, context: TokenLattice) -> tuple[int, int] | None:
    """The [first, last] piece of the first answer; None if the context does not contain it."""
    if not example.answers or example.answers[0].start < 0:
        return None
    answer = example.answers[0]
    first = int(np.searchsorted(context.piece_ends, answer.start, side="right"))
    last = int(np.searchsorted(context.piece_starts, answer.start + len(answer.text), side="left")) - 1
    return (first, last) if first <= last else None


def _target(answer: tuple[int, int] | None, window: Window) -> Place | None:
    if answer is None:
        return None
    first, last = answer
    is_within = window.start <= first and last < window.end
    return (first - window.start + 1, last - window.start + 1) if is_within else (NONE, NONE)


class BestSpan(NamedTuple):
    """A span [start, end] of a window in pieces, both ends inclusive, and its score."""

    score: float
    start: int
    end: int


def best_span(starts: np.ndarray, ends: np.ndarray, *, max_length: int) -> BestSpan:
    """The span with the largest starts[i] + ends[j], both float[P], where i <= j < i + max_length.

    Among spans with equal scores, the shortest is chosen, and among these the first.
    """
    best = BestSpan(-np.inf, 0, 0)
    for more in range(min(max_length, len(starts))):
        scores = starts[: len(starts) - more] + ends[more:]
        place = int(scores.argmax())
        if scores[place] > best.score:
            best = BestSpan(float(scores[place]), place, place + more)
    return best
