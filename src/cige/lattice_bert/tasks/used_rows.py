"""UsedRows: during fine-tuning, a token table of only the rows that the task's examples use.

A vocabulary has a hundred thousand tokens, but a task uses only some thousands of them. Every step of Adam processes
the whole table, which for short texts on a CPU costs half as much as the rest of the step, and every checkpoint holds
it three times. Rows that no example uses have no gradient and stay as they were in pre-training.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import nn

from cige.lattice_bert.encoder.network import LatticeBert
from cige.lattice_bert.tasks.items import Item


class UsedRows:
    """Replaces a model's token table until `put_back`.

    Args:
        bert: the model whose table is replaced.
        items: every item that the model will read in the meantime; they must be passed through `renumber`.
    """

    def __init__(self, bert: LatticeBert, items: Sequence[Item[Any]]):
        self._bert = bert
        self._whole: nn.Embedding = bert.embeddings.tokens
        ids = [inputs.ids for item in items for inputs in item.inputs]
        self.rows = np.unique(np.concatenate(ids)) if ids else np.zeros(0, np.int32)
        part = self._whole.weight.detach()[torch.from_numpy(self.rows).long()].clone()
        bert.embeddings.tokens = nn.Embedding.from_pretrained(part, freeze=False)

    def renumber(self, items: Sequence[Item[Any]]) -> list[Item[Any]]:
        """The same items with token ids of the smaller table."""
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
        """Restore the model's whole table, with the rows that were trained."""
        learnt = self._bert.embeddings.tokens.weight.to(self._whole.weight.device)
        self._whole.weight[torch.from_numpy(self.rows).long()] = learnt
        self._bert.embeddings.tokens = self._whole
