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

Characters and words are rows without padding, and attention runs along the few edges between them (nn/edges.py); only
the global node's attention, which reads everything, is over padded rows.
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
from cige.nn.edges import Edges, edge_attention
from cige.nn.embeddings import InputSizes, no_word_vector
from cige.nn.gated_sum import gated_sum, quick_tanh
from cige.nn.masked_attention import Relations, attention_of_one, by_head
from cige.nn.modules_of import ModulesOf
from cige.nn.ragged import RealRows, SpacedRows, masked_mean, spaced_rows
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
    """The M words of a batch as edges over the N rows of its characters, in the order of one direction.

    Attributes:
        chars: the rows of characters; words: the rows of words.
        begins: int64[M], the first character of each word in this direction.
        to_nodes: from each character to the words that end at it, and to the no-word edge, which is key M.
        to_words: from each word to its characters.
        places: int64, for the edges of `to_words` the position in the word: BEGIN, MIDDLE or END in the order of the
            text, independent of the direction.
        lengths: int64[M], the number of characters of each word.
    """

    chars: SpacedRows
    words: RealRows
    begins: Tensor
    to_nodes: Edges
    to_words: Edges
    places: Tensor
    lengths: Tensor


def word_graph(batch: LatticeBatch, chars: SpacedRows, words: RealRows, *, backward: bool) -> WordGraph:
    """The forward graph, or the backward graph, which is that of the reversed sentences."""
    starts, ends, sentence = words.pack(batch.word_starts), words.pack(batch.word_ends), words.sentence  # [M]
    n_words, n_rows, lengths = len(starts), len(chars.is_real), ends - starts
    position = batch.n_chars[sentence] - ends if backward else starts
    begins = chars.rows.numbers[sentence, position]
    last = begins + lengths - 1
    order = last.argsort(stable=True)
    without_no_word = Edges(last[order], order, n_rows, n_words)
    to_nodes, _ = without_no_word.with_one_more(torch.full_like(chars.rows.places, n_words), n_words + 1)

    word = torch.repeat_interleave(lengths)
    offset = torch.arange(len(word), device=word.device) - (lengths.cumsum(0) - lengths)[word]
    at_last = offset == lengths[word] - 1
    is_begin, is_end = (at_last, offset == 0) if backward else (offset == 0, at_last)
    places = torch.where(is_end, END, torch.where(is_begin, BEGIN, MIDDLE))
    to_words = Edges(word, begins[word] + offset, n_words, n_rows)
    return WordGraph(chars, words, begins, to_nodes, to_words, places, lengths)


class LgnEncoder(LatticeEncoder[LgnConfig]):
    def __init__(self, *, config: LgnConfig, sizes: InputSizes, features: CharFeatures | None = None):
        super().__init__(config, sizes, features)
        width, word_width = config.width, self.embeddings.word_width
        self.word_projection = nn.Identity() if word_width == width else nn.Linear(word_width, width)
        self.parts = SharedParts(config)
        self.directions = nn.ModuleList(DirectedGraph(config, self.char_width) for _ in range(2))
        self.step_weight = nn.Linear(2 * width, 1)
        self.out_width = 2 * width
        for linear in (self.word_projection, self.step_weight):
            if isinstance(linear, nn.Linear):
                nn.init.xavier_uniform_(linear.weight)

    def read_words(self, batch: LatticeBatch) -> tuple[Tensor, Tensor]:
        """Character features, and the nodes' attention to words float[B, T, W], averaged over steps, heads, directions.

        In the forward graph, the last character of a word attends to it, and in the backward graph the first one.
        """
        features, attention = self.encode(batch)
        n_chars, n_words = features.shape[1], batch.words.shape[1]
        shares = features.new_zeros(len(features), n_chars, n_words)
        for graph, of_steps, last in zip(
            *zip(*attention, strict=True), (batch.word_ends - 1, batch.word_starts), strict=True
        ):
            is_word = graph.to_nodes.key < graph.to_nodes.n_keys - 1
            word = graph.words.places[graph.to_nodes.key[is_word]]  # in [B * W]
            place = word // max(1, n_words) * n_chars + last.flatten()[word]  # in [B * T]
            share = torch.stack(of_steps)[:, is_word].mean((0, 2)).to(shares.dtype) / len(attention)
            shares.view(-1).index_add_(0, place * n_words + word % max(1, n_words), share)
        return features, shares

    def encode(self, batch: LatticeBatch) -> tuple[Tensor, list[tuple[WordGraph, list[Tensor]]]]:
        """Character features, and for each direction its graph and each step's attention of nodes float[E, H]."""
        if not self.config.use_words:
            batch = replace(batch, n_words=torch.zeros_like(batch.n_words))
        chars, spaced, words = self.read_chars(batch), spaced_rows(batch.char_mask, gap=1), RealRows.of(batch.word_mask)
        vectors = self.word_projection(words.pack(self.embeddings.words(batch)))
        forward, backward = self.directions
        graph = word_graph(batch, spaced, words, backward=False)
        ahead, attention = forward(chars, vectors, graph, self.parts)
        mirrored = mirrored_positions(batch.n_chars, chars.shape[1])
        reversed_graph = word_graph(batch, spaced, words, backward=True)
        from_end, more = backward(take(chars, mirrored), vectors, reversed_graph, self.parts)
        numbers = spaced.rows.numbers
        mirrored_rows = spaced.rows.pack(numbers.gather(1, mirrored_positions(batch.n_chars, numbers.shape[1])))
        in_order = torch.stack(from_end, 1).index_select(0, mirrored_rows)
        stacked = torch.cat([torch.stack(ahead, 1), in_order], 2)  # [N, n_steps + 1, 2 * width]
        weights = torch.softmax(torch.sigmoid(self.step_weight(stacked)), 1)
        features = spaced.rows.pad((weights * stacked).sum(1))[:, : chars.shape[1]]
        return features, [(graph, attention), (reversed_graph, more)]


class SharedParts(nn.Module):
    """Parts that both directions share: vectors of lengths, of positions and of the no-word edge, and the LN."""

    def __init__(self, config: LgnConfig):
        super().__init__()
        self.lengths = nn.Embedding(config.max_length, config.place_width)
        self.places = nn.Embedding(N_PLACES, config.place_width)
        self.no_word = no_word_vector(config.width)
        self.norm = nn.LayerNorm(config.width)


class DirectedGraph(nn.Module):
    """One direction, which computes the states of its nodes after each step from characters and words."""

    def __init__(self, config: LgnConfig, in_width: int):
        super().__init__()
        width, place_width, n_steps = config.width, config.place_width, config.n_steps

        def attention(key_width: int, n: int) -> ModulesOf[Aggregation]:
            return ModulesOf(Aggregation(config, key_width) for _ in range(n))

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
        """float[N, width] for each of n_steps + 1 states, and each step's attention along `to_nodes` float[E, H].

        Args:
            chars: float[B, T, C]; words: float[M, width].
        """
        is_real, of_node, of_word = graph.chars.is_real[:, None], graph.chars.rows.sentence, graph.words.sentence
        is_node = graph.chars.is_padded_real  # [B, T + 1]
        is_edge = F.pad(graph.words.mask, (1, 0), value=True)  # [B, 1 + W], first the no-word edge
        no_word = parts.no_word[None]  # [1, width]
        lengths = parts.lengths(graph.lengths.clamp(1, parts.lengths.num_embeddings) - 1)
        lengths = F.pad(lengths, (0, 0, 0, 1))  # [M + 1, place_width]

        nodes, edges = graph.chars.pack(self.lstm(chars)[0]) * is_real, words
        whole = masked_mean(self._every_edge(no_word, edges, graph), is_edge)
        whole = whole + masked_mean(graph.chars.rows.pad(nodes), is_node)
        node_sum, edge_sum, global_sum = nodes, edges, whole  # whole is g, [B, width]
        states, attention = [nodes], []
        for k, edges_to_node in enumerate(self.edges_to_node):
            begins = F.pad(nodes.index_select(0, graph.begins), (0, 0, 0, 1))
            keys = torch.cat([torch.cat([edges, no_word]), begins, lengths], 1)  # [M + 1, ..], last the no-word edge
            at_nodes, weights = edges_to_node(nodes, keys, graph.to_nodes)
            attention.append(weights)
            whole_of_nodes = self.nodes_to_global.at(k).of_one(whole, graph.chars.rows.pad(nodes), is_node)
            whole_of_edges = self.edges_to_global.at(k).of_one(whole, self._every_edge(no_word, edges, graph), is_edge)
            at_whole = torch.cat([whole_of_nodes, whole_of_edges], 1)  # [B, 2 * width]
            previous = F.pad(nodes, (0, 0, 1, -1))  # the state of the previous character, zeros for the first
            new_nodes = self.node_cell([nodes, previous], [at_nodes, at_whole.index_select(0, of_node)]) * is_real
            states.append(new_nodes)
            if k == len(self.nodes_to_edge):
                break
            places = (graph.places, parts.places.weight)
            at_edges, _ = self.nodes_to_edge[k](edges, nodes, graph.to_words, places=places)
            edge_sum = edge_sum + self.edge_cell([edges], [at_edges, at_whole.index_select(0, of_word)])
            node_sum, global_sum = node_sum + new_nodes, global_sum + self.global_cell([whole], [at_whole])
            nodes, edges, whole = parts.norm(node_sum) * is_real, parts.norm(edge_sum), parts.norm(global_sum)
        return states, attention

    @staticmethod
    def _every_edge(no_word: Tensor, edges: Tensor, graph: WordGraph) -> Tensor:
        """float[B, 1 + W, width]: the no-word edge and the words of each sentence."""
        padded = graph.words.pad(edges)
        return torch.cat([no_word.expand(len(padded), 1, -1), padded], 1)


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
        self, query: Tensor, keys: Tensor, edges: Edges, *, places: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, Tensor]:
        """float[n_queries, width], and the attention along the edges float[E, H], from `query` float[n_queries, width].

        Args:
            keys: float[n_keys, ..], which are the values too.
            places: int64[E] codes, and a vector for each code, which is appended to the key.
        """
        key, value, relations = self._project(keys, places)
        queries = self.query(query) * self.scale
        read, probabilities = edge_attention(
            queries, key, value, edges, self.n_heads, relations=relations, dropout=self.dropout
        )
        return self.norm(query + F.leaky_relu(self.output(read))), probabilities

    def of_one(self, query: Tensor, keys: Tensor, allowed: Tensor) -> Tensor:
        """float[B, width]: one query float[B, width] for each sentence, keys float[B, K, width] and bool[B, K]."""
        queries = by_head(self.query(query)[:, None] * self.scale, self.n_heads)
        read, _ = attention_of_one(
            queries, keys, allowed[:, None], key=self.key, value=self.value, dropout=self.dropout
        )
        return self.norm(query + F.leaky_relu(self.output(read[:, 0])))

    def _project(self, keys: Tensor, places: tuple[Tensor, Tensor] | None) -> tuple[Tensor, Tensor, Relations | None]:
        """Keys and values float[n_keys, H * d], and the parts that places add to them."""
        own, weights = keys.shape[1], (self.key.weight, self.value.weight)
        key, value = (F.linear(keys, linear.weight[:, :own], linear.bias) for linear in (self.key, self.value))
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
        """float[N, width], the updated `states[0]`."""
        z = self.gates(torch.cat([*states, *(self.dropout(x) for x in read)], -1))
        n_gates = self.n_gates * states[0].shape[-1]
        return gated_sum(z[:, :n_gates], quick_tanh(z[:, n_gates:]), *states)
