"""CharComponents: a vector of each character from its components, such as radicals.

Wu, Song, Feng: "MECT: Multi-Metadata Embedding based Cross-Transformer for Chinese Named Entity Recognition", ACL 2021.

    河 -> 氵 可      vectors of the m components, [m, E]
                     convolution of width 3 and ReLU, [m, E]
                     maximum over the m components, [E]
                     linear layer, [D]

A character that no training text has shares components with others, so its vector says something about it. The vector
depends on nothing else in the text, so characters with the same components share one computation in a batch.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from cige.data.batch import LatticeBatch
from cige.data.components import NO_SEQUENCE, PAD, ComponentTable
from cige.data.vocabulary import char_codes
from cige.nn.dropout import Dropout


class CharComponents(nn.Module):
    """Lattice batch -> float[B, T, D]; zero on padding.

    Args:
        table: the components of characters.
        embedding_width: width E of the vector of a component.
        width: width D of the result.
        dropout_prob: dropout on the vectors of components, which all characters of a batch with these components share,
            and on the result.
        unknown_prob: how often training replaces the components of a character by the unknown component.
    """

    def __init__(
        self, table: ComponentTable, *, embedding_width: int, width: int, dropout_prob: float, unknown_prob: float
    ):
        super().__init__()
        self.width = width
        self.table = table
        self.unknown_prob = unknown_prob
        self.embedding = nn.Embedding(table.n_components, embedding_width, padding_idx=PAD)
        self.convolution = nn.Conv1d(embedding_width, embedding_width, kernel_size=3, padding=1)
        self.output = nn.Linear(embedding_width, width)
        self.dropout = Dropout(dropout_prob)
        bound = (3 / embedding_width) ** 0.5
        nn.init.uniform_(self.embedding.weight, -bound, bound)
        with torch.no_grad():
            self.embedding.weight[PAD] = 0

    def forward(self, batch: LatticeBatch) -> Tensor:
        sequences = self.table.look_up(char_codes("".join(batch.texts)))  # of all characters of the batch
        device, shape = batch.chars.device, (*batch.chars.shape, self.width)
        if not len(sequences):
            return torch.zeros(shape, device=device)
        if self.training and self.unknown_prob > 0:
            sequences[torch.rand(len(sequences)).numpy() < self.unknown_prob] = NO_SEQUENCE
        distinct, place = np.unique(sequences, return_inverse=True)
        vectors = self.vectors(torch.from_numpy(self.table.padded(distinct)).to(device))
        out = vectors.new_zeros(shape)
        out[batch.char_mask] = vectors[torch.from_numpy(place.reshape(-1)).to(device)]
        return self.dropout(out)

    def vectors(self, components: Tensor) -> Tensor:
        """float[n, D]: the vectors of n sequences of components, int64[n, M], which are padded at the end."""
        x = self.dropout(self.embedding(components))  # [n, M, E]; padding stays 0
        x = torch.relu(self.convolution(x.transpose(1, 2)))  # [n, E, M]
        x = x.masked_fill((components == PAD)[:, None], 0)  # no real position is below 0, so padding is no maximum
        out: Tensor = self.output(x.amax(2))
        return out
