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
from torch import Tensor, nn

from cige.lattice_bert.encoder.network import LatticeBert
from cige.lattice_bert.encoder.token_inputs import TokenInputs
from cige.lattice_bert.tasks.items import Item


class UsedRows:
    """Replaces a model's token tables until `put_back`.

    Args:
        bert: the model whose tables are replaced.
        items: every item that the model will read in the meantime; they must be passed through `renumber`.
    """

    def __init__(self, bert: LatticeBert, items: Sequence[Item[Any]]):
        ids = [inputs.ids for item in items for inputs in item.inputs]
        self.rows = np.unique(np.concatenate(ids)) if ids else np.zeros(0, np.int32)
        self._tables: list[tuple[nn.Module, str, nn.Embedding, Tensor]] = []  # owner, attribute, whole table, rows
        first = 0
        for owner, name in bert.token_tables:
            whole = getattr(owner, name)
            last = first + whole.num_embeddings
            rows = torch.from_numpy(self.rows[(self.rows >= first) & (self.rows < last)]).long() - first
            if not len(rows):
                rows = torch.zeros(1, dtype=torch.long)  # an empty table could not be read, even at padding
            self._tables.append((owner, name, whole, rows))
            setattr(owner, name, nn.Embedding.from_pretrained(whole.weight.detach()[rows].clone(), freeze=False))
            first = last

    def renumber(self, items: Sequence[Item[Any]]) -> list[Item[Any]]:
        """The same items with token ids of the smaller tables."""

        def renumbered(inputs: TokenInputs) -> TokenInputs:
            return replace(inputs, ids=np.searchsorted(self.rows, inputs.ids).astype(np.int32))

        return [replace(item, inputs=tuple(map(renumbered, item.inputs))) for item in items]

    @torch.no_grad()
    def put_back(self) -> None:
        """Restore the model's whole tables, with the rows that were trained."""
        for owner, name, whole, rows in self._tables:
            whole.weight[rows] = getattr(owner, name).weight.to(whole.weight.device)
            setattr(owner, name, whole)
