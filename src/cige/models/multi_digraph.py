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

Characters are rows without padding. Most labels have edges to few characters or, as that of user words, to none in most
batches: messages are computed where there are edges, and products of zeros are left out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from cige.data.batch import LatticeBatch
from cige.data.vocabulary import USER
from cige.models.config import ModelConfig, odd_widths
from cige.models.encoder import LatticeEncoder
from cige.nn.char_features import CharFeatures
from cige.nn.embeddings import InputSizes
from cige.nn.lattice_graph import MentionEdges, mention_edges
from cige.nn.ragged import SpacedRows, spaced_rows
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
        return odd_widths(lstm_width=self.lstm_width)


class MultiDigraphEncoder(LatticeEncoder[MultiDigraphConfig]):
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
        spaced = spaced_rows(batch.char_mask, gap=1)
        states = self.char_projection(spaced.pack(chars)) * spaced.is_real[:, None]  # [N, D]
        mentions: list[Mentions] = []
        if self.gazetteers is not None:
            assert self.embeddings.word is not None
            of_user = self.embeddings.word(torch.tensor([USER], device=chars.device))[0]  # all user words share it
            ends = self.gazetteers(of_user)
            mentions = mentions_in(mention_edges(batch, self._member(batch)), ends, spaced)
        padded = spaced.rows.pad(self.graph(states, mentions, spaced))
        return self.lstm(padded[:, : chars.shape[1]], batch.n_chars)

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


@dataclass(frozen=True)
class Mentions:
    """The edges of one gazetteer, whose ends are rows of the characters of a batch, and its two nodes.

    Attributes:
        gazetteer: its number.
        first: int64[F], the characters with which mentions begin; first_sentence: int64[F].
        inner: int64[I], the characters after which a mention continues.
        last: int64[K], the characters with which mentions end; last_sentence: int64[K].
        start, end: float[B, D], the states of the start node and the end node in each sentence.
    """

    gazetteer: int
    first: Tensor
    first_sentence: Tensor
    inner: Tensor
    last: Tensor
    last_sentence: Tensor
    start: Tensor
    end: Tensor


def mentions_in(edges: MentionEdges, ends: Tensor, spaced: SpacedRows) -> list[Mentions]:
    """The mentions of each gazetteer that has any; `ends` are the initial states of its nodes, float[2, G, D]."""
    n_sentences, _, n_chars = edges.first.shape
    numbers = spaced.rows.numbers[:, :n_chars]  # [B, T]
    found = []
    for g, has_mentions in enumerate(edges.first.any(2).any(0).tolist()):
        if not has_mentions:
            continue
        first, inner, last = (x[:, g].nonzero(as_tuple=True) for x in (edges.first, edges.inner, edges.last))
        start, end = (state.expand(n_sentences, -1) for state in ends[:, g])
        found.append(Mentions(g, numbers[first], first[0], numbers[inner], numbers[last], last[0], start, end))
    return found


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

    def forward(self, chars: Tensor, mentions: list[Mentions], spaced: SpacedRows) -> Tensor:
        """The final states of characters, float[N, D], from the initial ones."""
        for step in range(self.n_steps):
            new_chars = self._update(self._to_chars(chars, mentions, spaced), chars) * spaced.is_real[:, None]
            if step + 1 < self.n_steps:  # start and end nodes are not read after the last step
                mentions = [self._update_ends(chars, own) for own in mentions]
            chars = new_chars
        return chars

    def _to_chars(self, chars: Tensor, mentions: list[Mentions], spaced: SpacedRows) -> Tensor:
        """The sum of what a_v adds to the GRU's gates, float[N, 3 * D]."""
        width = chars.shape[1]
        sent = self._messages(chars, slice(0, 2)) * spaced.is_real[:, None]  # [N, 2 * D], to the next and the previous
        sent = F.pad(sent, (0, 0, 1, 1))
        received = torch.cat([sent[:-2, :width], sent[2:, width:]], 1)
        sums = F.linear(received, self.cell.weight_ih[:, : 2 * width], self.cell.bias_ih)
        for own in mentions:
            along, against = self._labels(own)
            before, after = own.inner, own.inner + 1
            for label, senders, rows, end, ends_at, sentences in (
                (along, before, after, own.start, own.first, own.first_sentence),
                (against, after, before, own.end, own.last, own.last_sentence),
            ):
                received = torch.cat([self._messages(chars[senders], label), self._messages(end, label)[sentences]])
                added = self._to_gates(received, label).to(sums.dtype)
                sums = sums.index_add(0, torch.cat([rows, ends_at]), added)
        return sums

    def _update_ends(self, chars: Tensor, own: Mentions) -> Mentions:
        """The mentions with the next states of the start node and the end node."""
        along, against = self._labels(own)

        def updated(state: Tensor, rows: Tensor, sentence: Tensor, label: slice) -> Tensor:
            messages = self._messages(chars[rows], label)
            received = messages.new_zeros(state.shape).index_add(0, sentence, messages)
            return self._update(self._to_gates(received, label) + self.cell.bias_ih, state)

        start = updated(own.start, own.first, own.first_sentence, against)
        end = updated(own.end, own.last, own.last_sentence, along)
        return replace(own, start=start, end=end)

    def _labels(self, own: Mentions) -> tuple[slice, slice]:
        """The labels of the gazetteer's edges, and of those in the opposite direction."""
        along, against = 2 + own.gazetteer, 2 + self.n_groups + own.gazetteer
        return slice(along, along + 1), slice(against, against + 1)

    def _messages(self, states: Tensor, labels: slice) -> Tensor:
        """sigmoid(alpha) (W h + b) for each label, float[N, labels * D]."""
        share = torch.sigmoid(self.alpha[labels])
        weight, bias = self.weight[labels] * share[:, None, None], self.bias[labels] * share[:, None]
        return F.linear(states, weight.transpose(1, 2).flatten(0, 1), bias.flatten())

    def _to_gates(self, received: Tensor, label: slice) -> Tensor:
        """What a label's part of a_v adds to the GRU's gates, without the bias: float[N, 3 * D]."""
        width = received.shape[1]
        return F.linear(received, self.cell.weight_ih[:, label.start * width : label.stop * width])

    def _update(self, of_input: Tensor, states: Tensor) -> Tensor:
        """The GRU, given the sums of its gates over a_v with their bias."""
        width = states.shape[1]
        of_state = F.linear(states, self.cell.weight_hh, self.cell.bias_hh)
        reset, update = torch.sigmoid(of_input[:, : 2 * width] + of_state[:, : 2 * width]).chunk(2, 1)
        new = torch.tanh(of_input[:, 2 * width :] + reset * of_state[:, 2 * width :])
        return new + update * (states - new)
