"""UsedRows: while a task is learnt, a token table of the rows that its examples use.

A vocabulary has a hundred thousand tokens and a task some thousands. Every step of Adam goes over the whole table,
which for short texts on a CPU costs half as much as the rest of the step, and every checkpoint holds it three times.
Rows that no example uses have no gradient: they stay as they were in pre-training.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import nn

from cige.models.lattice_bert.network import LatticeBert
from cige.tasks.items import Item


class UsedRows:
    """Takes the place of a model's token table until `put_back`.

    Args:
        bert: whose table is replaced.
        items: every item that the model will read meanwhile; `renumber` them.
    """

    def __init__(self, bert: LatticeBert, items: Sequence[Item]):
        self._bert = bert
        self._whole: nn.Embedding = bert.embeddings.tokens
        ids = [inputs.ids for item in items for inputs in item.inputs]
        self.rows = np.unique(np.concatenate(ids)) if ids else np.zeros(0, np.int32)
        part = self._whole.weight.detach()[torch.from_numpy(self.rows).long()].clone()
        bert.embeddings.tokens = nn.Embedding.from_pretrained(part, freeze=False)

    def renumber(self, items: Sequence[Item]) -> list[Item]:
        """The same items for the smaller table."""
        return [
            replace(
                item,
                inputs=tuple(
                    replace(one, ids=np.searchsorted(self.rows, one.ids).astype(np.int32)) for one in item.inputs
                ),
            )
            for item in items
        ]

    @torch.no_grad()
    def put_back(self) -> None:
        """Give the model its whole table again, with what was learnt."""
        learnt = self._bert.embeddings.tokens.weight.to(self._whole.weight.device)
        self._whole.weight[torch.from_numpy(self.rows).long()] = learnt
        self._bert.embeddings.tokens = self._whole
