"""Multiple choice: softmax regression over the pooled [CLS] of all options (§2.5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from cige.lattice.token_inputs import TokenInputs
from cige.lattice.tokenizer import LatticeTokenizer
from cige.models.lattice_bert.network import LatticeBert, initialise
from cige.nn.dropout import Dropout
from cige.tasks.examples import ChoiceExample
from cige.tasks.items import Item, Room, read_pooled


class ChoiceHead(nn.Module):
    """[CLS] of each option -> its score.

    Args:
        width: D of the Lattice-BERT.
    """

    def __init__(self, *, width: int, dropout_prob: float = 0.1):
        super().__init__()
        self.dropout = Dropout(dropout_prob)
        self.linear = nn.Linear(width, 1)
        initialise(self.linear)

    @property
    def settings(self) -> dict[str, Any]:
        return {}

    def items(self, number: int, example: ChoiceExample, tokenizer: LatticeTokenizer, room: Room) -> list[Item]:
        """One item with an input for each option; the longer text of a pair loses its end where there is no room."""
        lattices = {text: tokenizer.tokenize(text) for pair in example.pairs for text in pair}  # options share texts
        inputs = []
        for first, second in example.pairs:
            pair = lattices[first], lattices[second]
            one = tokenizer.encode(*pair, max_tokens=room.max_tokens, max_chars=room.max_pieces)
            inputs.append(one if example.blank is None else _masked(one, example.blank, tokenizer.vocabulary.mask_id))
        return [Item(number, tuple(inputs), example.answer)]

    def losses(self, bert: LatticeBert, items: Sequence[Item]) -> Tensor:
        scores = self._scores(bert, items)
        targets = torch.tensor([item.target for item in items], device=scores.device)
        return F.cross_entropy(scores, targets, reduction="none")

    def outputs(self, bert: LatticeBert, items: Sequence[Item]) -> list[np.ndarray]:
        """float32[options] of each: log-probabilities."""
        scores = F.log_softmax(self._scores(bert, items), 1).cpu().numpy()
        return [row[: len(item.inputs)] for row, item in zip(scores, items, strict=True)]

    def answer(self, example: ChoiceExample, items: Sequence[Item], outputs: Sequence[np.ndarray]) -> int:
        """The number of the most probable option, from 0."""
        return int(outputs[0].argmax())

    def _scores(self, bert: LatticeBert, items: Sequence[Item]) -> Tensor:
        """float32[B, options]; -inf where an item has fewer than others."""
        n_options = torch.tensor([len(item.inputs) for item in items])
        pooled = read_pooled(bert, [one for item in items for one in item.inputs])
        flat = self.linear(self.dropout(pooled)).float().squeeze(1)
        is_option = (torch.arange(int(n_options.max())) < n_options[:, None]).to(flat.device)
        return torch.full(is_option.shape, -torch.inf, device=flat.device).masked_scatter(is_option, flat)


def _masked(inputs: TokenInputs, blank: int, mask_id: int) -> TokenInputs:
    """[MASK] in place of the piece at code point `blank` of the second text."""
    is_blank = (inputs.sides == 1) & (inputs.starts == inputs.ends) & (inputs.char_starts == blank)
    return replace(inputs, ids=np.where(is_blank, np.int32(mask_id), inputs.ids))
