"""Classification of a text or a pair, and multiple choice: regression on the pooled [CLS] (§2.5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from cige.errors import DataError
from cige.lattice_bert.encoder.network import LatticeBert
from cige.lattice_bert.encoder.token_inputs import TokenInputs
from cige.lattice_bert.encoder.tokenizer import LatticeTokenizer
from cige.lattice_bert.tasks.examples import ChoiceExample, TextExample
from cige.lattice_bert.tasks.items import Head, Item, Room, read_pooled, targets_of


class ClassificationHead(Head[TextExample, int, str]):
    """Predicts one of several labels from [CLS]."""

    def __init__(self, *, width: int, labels: Sequence[str], dropout_prob: float = 0.1):
        super().__init__(width=width, n_outputs=len(labels), dropout_prob=dropout_prob)
        self.labels = list(labels)
        self._number = {label: number for number, label in enumerate(self.labels)}

    @property
    def settings(self) -> dict[str, object]:
        return {"labels": self.labels}

    def items(self, number: int, example: TextExample, tokenizer: LatticeTokenizer, room: Room) -> list[Item[int]]:
        """One item. If the input is too long, the end of the text (of a pair, of the longer text) is cut off. Raises a
        DataError if the label is not one of the head's labels."""
        if example.label is not None and example.label not in self._number:
            raise DataError(
                f"example {example.id}: label {example.label!r} is not one of the {len(self.labels)} that the training "
                f"data has ({', '.join(self.labels[:20])})"
            )
        inputs = tokenizer.encode(example.first, example.second, max_tokens=room.max_tokens, max_chars=room.max_pieces)
        target = None if example.label is None else self._number[example.label]
        return [Item(number, (inputs,), target)]

    def losses(self, bert: LatticeBert, items: Sequence[Item[int]]) -> Tensor:
        logits = self._logits(bert, items)
        targets = torch.tensor(targets_of(items), device=logits.device)
        return F.cross_entropy(logits, targets, reduction="none")

    def outputs(self, bert: LatticeBert, items: Sequence[Item[int]]) -> list[np.ndarray]:
        """float32[labels] for each item: log-probabilities."""
        return list(F.log_softmax(self._logits(bert, items), 1).cpu().numpy())

    def answer(self, example: TextExample, items: Sequence[Item[int]], outputs: Sequence[np.ndarray]) -> str:
        """The most probable label."""
        return self.labels[int(outputs[0].argmax())]

    def _logits(self, bert: LatticeBert, items: Sequence[Item[int]]) -> Tensor:
        return self.scores_of(read_pooled(bert, [item.inputs[0] for item in items]))  # [B, labels]


class ChoiceHead(Head[ChoiceExample, int, int]):
    """[CLS] of each option -> its score."""

    def __init__(self, *, width: int, dropout_prob: float = 0.1):
        super().__init__(width=width, n_outputs=1, dropout_prob=dropout_prob)

    def items(self, number: int, example: ChoiceExample, tokenizer: LatticeTokenizer, room: Room) -> list[Item[int]]:
        """One item with one input per option; the end of the longer text of a pair is cut off if it does not fit."""
        lattices = {text: tokenizer.tokenize(text) for pair in example.pairs for text in pair}  # options share texts
        inputs = []
        for first, second in example.pairs:
            pair = lattices[first], lattices[second]
            one = tokenizer.encode(*pair, max_tokens=room.max_tokens, max_chars=room.max_pieces)
            inputs.append(one if example.blank is None else _masked(one, example.blank, tokenizer.vocabulary.mask_id))
        return [Item(number, tuple(inputs), example.answer)]

    def losses(self, bert: LatticeBert, items: Sequence[Item[int]]) -> Tensor:
        scores = self._scores(bert, items)
        targets = torch.tensor(targets_of(items), device=scores.device)
        return F.cross_entropy(scores, targets, reduction="none")

    def outputs(self, bert: LatticeBert, items: Sequence[Item[int]]) -> list[np.ndarray]:
        """float32[options] for each item: log-probabilities."""
        scores = F.log_softmax(self._scores(bert, items), 1).cpu().numpy()
        return [row[: len(item.inputs)] for row, item in zip(scores, items, strict=True)]

    def answer(self, example: ChoiceExample, items: Sequence[Item[int]], outputs: Sequence[np.ndarray]) -> int:
        """The number of the most probable option, from 0."""
        return int(outputs[0].argmax())

    def _scores(self, bert: LatticeBert, items: Sequence[Item[int]]) -> Tensor:
        """float32[B, options]; -inf for options that an item does not have."""
        n_options = torch.tensor([len(item.inputs) for item in items])
        pooled = read_pooled(bert, [one for item in items for one in item.inputs])
        flat = self.scores_of(pooled).squeeze(1)
        is_option = (torch.arange(int(n_options.max())) < n_options[:, None]).to(flat.device)
        return torch.full(is_option.shape, -torch.inf, device=flat.device).masked_scatter(is_option, flat)


def _masked(inputs: TokenInputs, blank: int, mask_id: int) -> TokenInputs:
    """Replace the piece at code point `blank` of the second text by [MASK]."""
    is_blank = (inputs.sides == 1) & (inputs.starts == inputs.ends) & (inputs.char_starts == blank)
    return replace(inputs, ids=np.where(is_blank, np.int32(mask_id), inputs.ids))
