"""LGN: characters as nodes, words as edges between their first and last character, and a global node.

Gui, Zou, Zhang, Peng, Fu, Wei, Huang: "A Lexicon-Based Graph Neural Network for Chinese NER", EMNLP 2019.

        ---- 南京市 ---->    ---- 长江大桥 ---->          each word is an edge with a state;
       南    京    市    长    江    大    桥             in the backward graph, all arrows are reversed
        \\_____\\_____\\_____\\____\\____/____/              the global node g reads every node and edge

§3.1  WordGraph         words as edges; a forward graph and a backward graph
§3.2  Aggregation       y = LN(q + LeakyReLU(W_O attention)), 10 heads: a node attends to the edges that end in it, an
                        edge to its characters, g to all nodes and all edges
      LatticeCell       z = [states; attention output; that of g]; gates are sigmoids, then a softmax over them;
                        state = gates . (tanh(W z), states)
§3.3  T steps; the output is a weighted sum of the states of all steps, both directions concatenated -> CRF

As in the released code: nodes are initialised with the states of an LSTM in the direction of their graph, edges with
word vectors, and g with the sum of their means; the state that a step reads is LN(sum of all states so far), with one
LN for all; keys include vectors of a word's length and of a character's position in it (B, M, E); and every node can
attend to a no-word edge, which is never updated. Each step has its own attention and LN; cells are shared by all steps.
The backward graph is the forward one over the mirrored sentence. If word vectors have another width than the states, a
linear layer converts them. Linear layers are initialised by Xavier's method, the LSTM as in PyTorch.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from cige.data.batch import LatticeBatch
from cige.models.config import ModelConfig
from cige.models.encoder import LatticeEncoder
from cige.nn.char_features import CharFeatures
from cige.nn.dropout import Dropout
from cige.nn.embeddings import InputSizes
from cige.nn.masked_attention import Relations, attention_of_one, by_head, masked_attention
from cige.nn.recurrent import mirrored_positions, take

BEGIN, MIDDLE, END = range(3)  # position of a character in a word
N_PLACES = 3


@dataclass(frozen=True, kw_only=True)
class LgnConfig(ModelConfig):
    """LGN's settings; widths and probabilities are those of the released code."""

    use_bigrams: bool = False
    """Whether to read character bigrams in addition to characters; the paper reads only characters."""
    use_words: bool = True
    """False leaves all words out of the graphs except the no-word edge: the same model without words."""
    width: int = 50
    """Width of the states of nodes, edges and the global node."""
    n_steps: int = 4
    """T, the number of update steps."""
    n_heads: int = 10
    """Attention heads."""
    head_width: int = 20
    """Width of a head."""
    place_width: int = 10
    """Width of the vectors of word lengths and of positions in a word."""
    max_length: int = 5
    """Longer words use the length vector of this number of characters."""
    attention_dropout_prob: float = 0.1
    """Dropout on attention probabilities."""
    cell_dropout_prob: float = 0.2
    """Dropout on the inputs of a state's update other than states."""
    output_dropout_prob: float = 0.0
    """Dropout before the tag scores; the released code has none."""

    def problems(self) -> list[str]:
        if self.n_steps < 2:
            return ["model.n_steps is 1, expected 2 or more: edges and the global node change from the second step on"]
        if self.max_length < 1:
            return [f"model.max_length is {self.max_length}, expected at least 1"]
        return []


@dataclass(frozen=True)
class WordGraph:
    """The words of a batch as edges over characters, in the order of one direction.

    Attributes:
        begins: int64[B, W], the first character of each word in this direction; 0 for padding.
        ends_at: bool[B, T, 1 + W], whether a character is the last one of a word in this direction; index 0 is the
            no-word edge, which ends at every character.
        places: int64[B, W, T], the position of a character in a word: BEGIN, MIDDLE or END in the order of the text,
            independent of the direction; undefined outside the word.
        covers: bool[B, W, T], the characters of each word; all False for padding.
        lengths: int64[B, W], the number of characters of each word.
        word_mask: bool[B, W]. char_mask: bool[B, T].
    """

    begins: Tensor
    ends_at: Tensor
    places: Tensor
    covers: Tensor
    lengths: Tensor
    word_mask: Tensor
    char_mask: Tensor


def word_graph(batch: LatticeBatch, *, backward: bool) -> WordGraph:
    """The forward graph, or the backward graph, which is that of the reversed sentences with padding at their end."""
    first, last = batch.word_starts, batch.word_ends - 1
    if backward:
        first, last = batch.n_chars[:, None] - 1 - first, batch.n_chars[:, None] - 1 - last
    begins, ends = torch.minimum(first, last), torch.maximum(first, last)
    position = torch.arange(batch.chars.shape[1], device=first.device)
    places = torch.where(position == first[:, :, None], BEGIN, MIDDLE)
    places = torch.where(position == last[:, :, None], END, places)
    covers = (begins[:, :, None] <= position) & (position <= ends[:, :, None]) & batch.word_mask[:, :, None]
    ends_at = (ends[:, None] == position[:, None]) & batch.word_mask[:, None]
    return WordGraph(
        begins=begins * batch.word_mask,
        ends_at=F.pad(ends_at, (1, 0), value=True),
        places=places,
        covers=covers,
        lengths=batch.word_ends - batch.word_starts,
        word_mask=batch.word_mask,
        char_mask=batch.char_mask,
    )


class LgnEncoder(LatticeEncoder[LgnConfig]):
    """Encodes a lattice batch to character features."""

    def __init__(self, *, config: LgnConfig, sizes: InputSizes, features: CharFeatures | None = None):
        super().__init__(config, sizes, features)
        width, word_width = config.width, self.embeddings.word_width
        self.word_projection = nn.Identity() if word_width == width else nn.Linear(word_width, width)
        self.parts = SharedParts(config)
        in_width = self.char_width
        self.directions = nn.ModuleList(DirectedGraph(config, in_width) for _ in range(2))
        self.step_weight = nn.Linear(2 * width, 1)
        self.out_width = 2 * width
        for linear in (self.word_projection, self.step_weight):
            if isinstance(linear, nn.Linear):
                nn.init.xavier_uniform_(linear.weight)

    def forward(self, batch: LatticeBatch) -> Tensor:
        """float[B, T, 2 * width]."""
        return self._encode(batch)[0]

    def read_words(self, batch: LatticeBatch) -> tuple[Tensor, Tensor]:
        """Character features, and the nodes' attention to words float[B, T, W], averaged over steps, heads, directions.

        In the forward graph, the last character of a word attends to it, and in the backward graph the first one.
        """
        features, attention = self._encode(batch)
        return features, torch.stack(attention).mean(0) * batch.char_mask[:, :, None]

    def _encode(self, batch: LatticeBatch) -> tuple[Tensor, list[Tensor]]:
        """Character features, and for each direction and step the nodes' attention to words float[B, T, W]."""
        if not self.config.use_words:
            batch = replace(batch, n_words=torch.zeros_like(batch.n_words))
        chars = self.read_chars(batch)
        words = self.word_projection(self.embeddings.words(batch))
        mirrored = mirrored_positions(batch.n_chars, chars.shape[1])
        forward, backward = self.directions
        ahead, attention = forward(chars, words, word_graph(batch, backward=False), self.parts)
        from_end, more = backward(take(chars, mirrored), words, word_graph(batch, backward=True), self.parts)
        states = [torch.cat([a, take(b, mirrored)], -1) for a, b in zip(ahead, from_end, strict=True)]
        stacked = torch.stack(states, 2)  # [B, T, n_steps + 1, 2 * width]
        weights = torch.softmax(torch.sigmoid(self.step_weight(stacked)), 2)
        return (weights * stacked).sum(2), [*attention, *(take(a, mirrored) for a in more)]


class SharedParts(nn.Module):
    """Parts that both directions share: vectors of lengths, of positions and of the no-word edge, and the LN."""

    def __init__(self, config: LgnConfig):
        super().__init__()
        self.lengths = nn.Embedding(config.max_length, config.place_width)
        self.places = nn.Embedding(N_PLACES, config.place_width)
        self.no_word = nn.Parameter(torch.empty(config.width).uniform_(-1, 1) * (3 / config.width) ** 0.5)
        self.norm = nn.LayerNorm(config.width)

    def length_vectors(self, lengths: Tensor) -> Tensor:
        """int64[B, W] -> float[B, W, place_width]."""
        return self.lengths(lengths.clamp(1, self.lengths.num_embeddings) - 1)


class DirectedGraph(nn.Module):
    """One direction, which computes the states of its nodes after each step from characters and words."""

    def __init__(self, config: LgnConfig, in_width: int):
        super().__init__()
        width, place_width, n_steps = config.width, config.place_width, config.n_steps

        def attention(key_width: int, n: int) -> nn.ModuleList:
            return nn.ModuleList(Aggregation(config, key_width) for _ in range(n))

        self.lstm = nn.LSTM(in_width, width, batch_first=True)
        self.edges_to_node = attention(2 * width + place_width, n_steps)
        self.nodes_to_edge = attention(width + place_width, n_steps - 1)  # edges are not used after the last step
        self.nodes_to_global = attention(width, n_steps)
        self.edges_to_global = attention(width, n_steps)
        self.node_cell = LatticeCell(config, n_states=2, n_read=3)
        self.edge_cell = LatticeCell(config, n_states=1, n_read=3)
        self.global_cell = LatticeCell(config, n_states=1, n_read=2)

    def forward(
        self, chars: Tensor, words: Tensor, graph: WordGraph, parts: SharedParts
    ) -> tuple[list[Tensor], list[Tensor]]:
        """float[B, T, width] for each of n_steps + 1 states, and each step's attention to words float[B, T, W]."""
        is_edge = F.pad(graph.word_mask, (1, 0), value=True)  # [B, 1 + W], first the no-word edge
        no_word = parts.no_word.expand(len(chars), 1, -1)
        lengths = F.pad(parts.length_vectors(graph.lengths), (0, 0, 1, 0))  # [B, 1 + W, place_width]

        nodes, _ = self.lstm(chars)
        nodes = nodes * graph.char_mask[:, :, None]
        edges = words * graph.word_mask[:, :, None]
        whole = _mean(torch.cat([no_word, edges], 1), is_edge) + _mean(nodes, graph.char_mask)  # g, [B, 1, width]
        node_sum, edge_sum, global_sum = nodes, edges, whole
        states, attention = [nodes], []
        for k, edges_to_node in enumerate(self.edges_to_node):
            every_edge = torch.cat([no_word, edges], 1)  # [B, 1 + W, width]
            begins = nodes.gather(1, graph.begins[:, :, None].expand(-1, -1, nodes.shape[2]))  # [B, W, width]
            keys = torch.cat([every_edge, F.pad(begins, (0, 0, 1, 0)), lengths], 2)
            at_nodes, weights = edges_to_node(nodes, keys, graph.ends_at)
            whole_of_nodes, _ = self.nodes_to_global[k](whole, nodes, graph.char_mask[:, None])
            whole_of_edges, _ = self.edges_to_global[k](whole, every_edge, is_edge[:, None])
            at_whole = torch.cat([whole_of_nodes, whole_of_edges], 2)  # [B, 1, 2 * width]
            previous = F.pad(nodes, (0, 0, 1, -1))  # the state of the previous character, zeros for the first
            new_nodes = self.node_cell([nodes, previous], [at_nodes, at_whole.expand(-1, nodes.shape[1], -1)])
            states.append(new_nodes)
            attention.append(weights.mean(1)[..., 1:])
            if k == len(self.nodes_to_edge):
                break
            at_edges, _ = self.nodes_to_edge[k](edges, nodes, graph.covers, places=(graph.places, parts.places.weight))
            edge_sum = edge_sum + self.edge_cell([edges], [at_edges, at_whole.expand(-1, edges.shape[1], -1)])
            node_sum, global_sum = node_sum + new_nodes, global_sum + self.global_cell([whole], [at_whole])
            nodes, edges, whole = parts.norm(node_sum), parts.norm(edge_sum), parts.norm(global_sum)
        return states, attention


class Aggregation(nn.Module):
    """§3.2: y = LN(q + LeakyReLU(W_O attention(q; keys)))."""

    def __init__(self, config: LgnConfig, key_width: int):
        super().__init__()
        inner = config.n_heads * config.head_width
        self.n_heads, self.scale = config.n_heads, config.head_width**-0.5
        self.query = nn.Linear(config.width, inner)
        self.key = nn.Linear(key_width, inner)
        self.value = nn.Linear(key_width, inner)
        self.output = nn.Linear(inner, config.width)
        self.norm = nn.LayerNorm(config.width)
        self.dropout = Dropout(config.attention_dropout_prob)
        for linear in (self.query, self.key, self.value, self.output):
            nn.init.xavier_uniform_(linear.weight)

    def forward(
        self, query: Tensor, keys: Tensor, allowed: Tensor, *, places: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, Tensor]:
        """float[B, Q, width], and the attention float[B, H, Q, K].

        Args:
            query: float[B, Q, width].
            keys: float[B, K, ..], which are the values too.
            allowed: bool[B, Q, K].
            places: int64[B, Q, K] codes, and a vector for each code, which is appended to the key.
        """
        queries = by_head(self.query(query) * self.scale, self.n_heads)
        if query.shape[1] == 1 and places is None:
            read, probabilities = attention_of_one(
                queries, keys, allowed, key=self.key, value=self.value, dropout=self.dropout
            )
        else:
            key, value, relations = self._project(keys, places)
            read, probabilities = masked_attention(
                queries, key, value, allowed, relations=relations, dropout=self.dropout
            )
        return self.norm(query + F.leaky_relu(self.output(read))), probabilities

    def _project(self, keys: Tensor, places: tuple[Tensor, Tensor] | None) -> tuple[Tensor, Tensor, Relations | None]:
        """Keys and values float[B, H, K, d], and the parts that places add to them."""
        own, weights = keys.shape[2], (self.key.weight, self.value.weight)
        both = F.linear(  # one product for keys and values
            keys, torch.cat([weight[:, :own] for weight in weights]), torch.cat([self.key.bias, self.value.bias])
        )
        key, value = (by_head(x, self.n_heads) for x in both.chunk(2, -1))
        if places is None:
            return key, value, None
        codes, vectors = places
        tables = [by_head(F.linear(vectors, weight[:, own:])[None], self.n_heads)[0] for weight in weights]
        return key, value, Relations(codes, *tables)


class LatticeCell(nn.Module):
    """The update of a state, with gates between the new content and the states that a softmax normalises."""

    def __init__(self, config: LgnConfig, *, n_states: int, n_read: int):
        super().__init__()
        self.n_gates = 1 + n_states
        self.gates = nn.Linear((n_states + n_read) * config.width, (self.n_gates + 1) * config.width)
        self.dropout = Dropout(config.cell_dropout_prob)
        for block in self.gates.weight.data.chunk(self.n_gates + 1):
            nn.init.xavier_uniform_(block)

    def forward(self, states: list[Tensor], read: list[Tensor]) -> Tensor:
        """float[B, N, width], the updated `states[0]`."""
        z = torch.cat([*states, *(self.dropout(x) for x in read)], -1)
        *gates, new = self.gates(z).chunk(self.n_gates + 1, -1)
        shares = torch.softmax(torch.sigmoid(torch.stack(gates)), 0)
        return (shares * torch.stack([torch.tanh(new), *states])).sum(0)


def _mean(x: Tensor, mask: Tensor) -> Tensor:
    """The masked mean of float[B, N, D] over N, float[B, 1, D]; zeros if the mask bool[B, N] is empty."""
    return (x * mask[:, :, None]).sum(1, keepdim=True) / mask.sum(1).clamp(min=1)[:, None, None]
