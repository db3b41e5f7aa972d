"""Multi-digraph: one graph per gazetteer over the characters, and an adapted gated graph network over all of them.

Ding, Xie, Zhang, Lu, Li, Si: "A Neural Multi-digraph Model for Chinese NER with Gazetteers", ACL 2019.

            南 -> 京 -> 市 -> 长 -> 江 -> 大 -> 桥            the characters' own edges
    places  s -> 南 -> 京 -> 市 -> e    s -> 长 -> 江 -> 大 -> 桥 -> e
    people           s -> 市 -> 长 -> e                     each gazetteer has its own nodes s and e, and its own edges

§3.1  MentionEdges     the multi-digraph: a mention is a path from its gazetteer's start node to its end node
§3.2  AdaptedGgnn      a_v = concat over edge labels of sigmoid(alpha) * sum over edges (W h + b); h = GRU(a, h)
§3.3  BiRecurrent      an LSTM over the characters' states, then a linear layer and the CRF

The gazetteers are those of the recipe (`lexicon.gazetteers`), the rest of the lexicon, and one more for the user's own
words, whose two nodes are initialised with the vector that all user words share. The only information about a word is
which gazetteers contain it; other word vectors are not read. As in the released code, each label has edges in both
directions, each with its own weights, an edge has no other weight, and alpha is initialised to 1. Its errors are not
reproduced: mentions at the end of a sentence were missed, the last edge of other mentions started from the following
character, and both labels of neighbouring characters pointed backwards. The vector of the bigram that ends with a
character is that of the previous character, whereas the code has a second table. W is initialised from a normal
distribution with standard deviation 0.02 as in that code, the GRU and LSTM as in PyTorch.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from cige.data.batch import LatticeBatch
from cige.data.vocabulary import USER
from cige.models.config import ModelConfig
from cige.models.encoder import LatticeEncoder
from cige.nn.char_features import CharFeatures
from cige.nn.embeddings import InputSizes
from cige.nn.lattice_graph import MentionEdges, mention_edges
from cige.nn.recurrent import BiRecurrent


@dataclass(frozen=True, kw_only=True)
class MultiDigraphConfig(ModelConfig):
    """Multi-digraph's settings; widths and probabilities are those of the released code."""

    backward_bigrams: bool = True
    """If bigrams are read, whether to read the bigram that ends with a character as well."""
    use_words: bool = True
    """False keeps only the edges between characters: the same model without words."""
    state_width: int = 300
    """Width of a node's state."""
    n_steps: int = 2
    """Steps of the graph network."""
    lstm_width: int = 600
    """Width of the LSTM's output, half of it per direction."""
    n_layers: int = 2
    """LSTM layers."""
    output_dropout_prob: float = 0.0
    """Dropout before the tag scores; the released code has none."""

    def problems(self) -> list[str]:
        if self.lstm_width % 2:
            return [f"model.lstm_width is {self.lstm_width}, expected an even number (half for each direction)"]
        return []


class MultiDigraphEncoder(LatticeEncoder[MultiDigraphConfig]):
    """Encodes a lattice batch to character features."""

    def __init__(self, *, config: MultiDigraphConfig, sizes: InputSizes, features: CharFeatures | None = None):
        super().__init__(config, sizes, features)
        self.n_groups = sizes.n_groups + 1 if config.use_words else 0  # G, the user's own words last
        self.bigram_width = sizes.widths[1] if config.use_bigrams and config.backward_bigrams else 0
        width = config.state_width
        self.char_projection = nn.Linear(self.char_width + self.bigram_width, width)
        self.gazetteers = GazetteerNodes(self.n_groups, self.embeddings.word_width, width) if self.n_groups else None
        self.graph = AdaptedGgnn(self.n_groups, width, config.n_steps)
        self.lstm = BiRecurrent(in_width=width, out_width=config.lstm_width, n_layers=config.n_layers)
        self.out_width = config.lstm_width
        nn.init.xavier_uniform_(self.char_projection.weight)

    def forward(self, batch: LatticeBatch) -> Tensor:
        """float[B, T, lstm_width]."""
        chars = self.read_chars(batch)
        if self.bigram_width:
            begin = self.embeddings.char_width - self.bigram_width
            bigrams = chars[:, :, begin : begin + self.bigram_width]
            chars = torch.cat([chars, F.pad(bigrams, (0, 0, 1, -1))], -1)  # zeros before the first character
        states = self.char_projection(chars) * batch.char_mask[:, :, None]
        edges = mention_edges(batch, self._member(batch))
        ends = states.new_zeros(len(states), 2, 0, states.shape[2])
        if self.gazetteers is not None:
            ends = self.gazetteers(self._user_vector(batch)).expand(len(states), -1, -1, -1)
        return self.lstm(self.graph(states, ends, edges, batch.char_mask), batch.n_chars)

    def read_words(self, batch: LatticeBatch) -> tuple[Tensor, Tensor]:
        """Character features, and each word's share float[B, T, W] of the edges that lead to a character.

        This model has no attention. The weight of each edge is sigmoid(alpha) of its label; each character of a word
        has edges of the word's gazetteers from both sides, in addition to those of its neighbours.
        """
        features = self(batch)
        weights = torch.sigmoid(self.graph.alpha)  # [2 + 2G]
        own, of_groups = weights[:2], weights[2:].view(2, -1).sum(0)
        position = torch.arange(features.shape[1], device=features.device)
        covers = (batch.word_starts[:, None] <= position[:, None]) & (position[:, None] < batch.word_ends[:, None])
        by_word = covers * (self._member(batch).float() @ of_groups * batch.word_mask)[:, None]  # [B, T, W]
        by_chars = own[0] * (position > 0) + own[1] * (position + 1 < batch.n_chars[:, None])  # [B, T]
        total = by_word.sum(2) + by_chars
        return features, by_word / total.clamp(min=1e-6)[:, :, None] * batch.char_mask[:, :, None]

    def _member(self, batch: LatticeBatch) -> Tensor:
        """bool[B, W, G]: the gazetteers of each word."""
        if not self.n_groups:
            return batch.words[:, :, None].new_zeros(*batch.words.shape, 0, dtype=torch.bool)
        bit = torch.arange(self.n_groups - 1, device=batch.words.device)
        of_base = (batch.word_groups[:, :, None] >> bit) & 1 == 1
        return torch.cat([of_base, (batch.words == USER)[:, :, None]], 2)

    def _user_vector(self, batch: LatticeBatch) -> Tensor:
        """float[word_width]: the vector that all user words share."""
        assert self.embeddings.word is not None
        return self.embeddings.word(torch.tensor([USER], device=batch.chars.device))[0]


class GazetteerNodes(nn.Module):
    """The initial states of the start and end node of each gazetteer, each a linear function of its own vector."""

    def __init__(self, n_groups: int, in_width: int, width: int):
        super().__init__()
        self.vectors = nn.Parameter(torch.randn(2, n_groups, in_width))
        self.weight = nn.Parameter(torch.empty(n_groups, in_width, width))
        self.bias = nn.Parameter(torch.zeros(n_groups, width))
        for weight in self.weight:
            nn.init.xavier_uniform_(weight.data)

    def forward(self, user_vector: Tensor) -> Tensor:
        """float[2, G, width]: the start nodes, then the end nodes; those of user words, the last, use `user_vector`."""
        own = F.pad(user_vector[None], (0, 0, self.vectors.shape[1] - 1, 0))  # [G, in_width], zero but for the last row
        return torch.einsum("egi,giw->egw", self.vectors + own, self.weight) + self.bias


class AdaptedGgnn(nn.Module):
    """§3.2: n_steps of a gated graph network with weights for each edge label.

    The labels are: from the previous character, from the next character, along the edges of each gazetteer, and in the
    opposite direction of these edges.

    Attributes:
        alpha: float[2 + 2G]; sigmoid(alpha) is the weight of the edges of each label.
    """

    def __init__(self, n_groups: int, width: int, n_steps: int):
        super().__init__()
        n_labels = 2 + 2 * n_groups
        self.n_groups, self.n_steps = n_groups, n_steps
        self.weight = nn.Parameter(torch.empty(n_labels, width, width).normal_(0, 0.02))
        self.bias = nn.Parameter(torch.zeros(n_labels, width))
        self.alpha = nn.Parameter(torch.ones(n_labels))
        self.cell = nn.GRUCell(n_labels * width, width)

    def forward(self, chars: Tensor, ends: Tensor, edges: MentionEdges, mask: Tensor) -> Tensor:
        """The final states of characters, float[B, T, D].

        Args:
            chars: float[B, T, D], initial states.
            ends: float[B, 2, G, D], initial states of the gazetteers' start and end nodes.
            edges: bool[B, G, T] each.
            mask: bool[B, T], real characters.
        """
        first, inner, last = (
            x.transpose(1, 2)[..., None].to(chars.dtype) for x in (edges.first, edges.inner, edges.last)
        )  # float[B, T, G, 1]
        share = torch.sigmoid(self.alpha)
        weight, bias = self.weight * share[:, None, None], self.bias * share[:, None]
        states = torch.cat([chars, ends.flatten(1, 2)], 1)  # [B, T + 2G, D]
        for _ in range(self.n_steps):
            read = self._read(states, weight, bias, (first, inner, last), mask)  # [B, T + 2G, labels * D]
            states = self.cell(read.flatten(0, 1), states.flatten(0, 1)).view_as(states)
        return states[:, : chars.shape[1]]

    def _read(
        self, states: Tensor, weight: Tensor, bias: Tensor, edges: tuple[Tensor, Tensor, Tensor], mask: Tensor
    ) -> Tensor:
        """a_v of every node, given the labels' matrices float[labels, D, D] and biases float[labels, D]."""
        n_groups, (first, inner, last) = self.n_groups, edges
        n_chars = states.shape[1] - 2 * n_groups
        chars, ends = states[:, :n_chars], states[:, n_chars:].unflatten(1, (2, n_groups))
        sent = F.linear(chars, weight.transpose(1, 2).flatten(0, 1), bias.flatten())  # all labels in one product
        sent = sent.unflatten(2, bias.shape) * mask[:, :, None, None]  # [B, T, labels, D]
        along, against = sent[:, :, 2:].split(n_groups, 2) if n_groups else (sent[:, :, 2:], sent[:, :, 2:])
        of_start, of_end = slice(2, 2 + n_groups), slice(2 + n_groups, None)
        from_start = torch.einsum("bgi,giw->bgw", ends[:, 0], weight[of_start]) + bias[of_start]
        from_end = torch.einsum("bgi,giw->bgw", ends[:, 1], weight[of_end]) + bias[of_end]
        to_chars = torch.cat(
            [
                _from_previous(sent[:, :, :1]),
                _from_next(sent[:, :, 1:2]),
                first * from_start[:, None] + _from_previous(inner * along),
                last * from_end[:, None] + inner * _from_next(against),
            ],
            2,
        )  # [B, T, labels, D]
        gazetteer = torch.arange(n_groups, device=states.device)
        to_ends = sent.new_zeros(len(sent), 2, n_groups, *sent.shape[2:])  # [B, 2, G, labels, D]
        to_ends[:, 0, gazetteer, 2 + n_groups + gazetteer] = (first * against).sum(1)
        to_ends[:, 1, gazetteer, 2 + gazetteer] = (last * along).sum(1)
        return torch.cat([to_chars, to_ends.flatten(1, 2)], 1).flatten(2)


def _from_previous(x: Tensor) -> Tensor:
    """The message of the previous character, with zeros at the first. [B, T, labels, D]."""
    return F.pad(x, (0, 0, 0, 0, 1, -1))


def _from_next(x: Tensor) -> Tensor:
    """The message of the next character, with zeros at the last. [B, T, labels, D]."""
    return F.pad(x, (0, 0, 0, 0, -1, 1))
