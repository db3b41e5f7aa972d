"""The lattice as a graph: characters and words as nodes with spans, and the edges between them, for a batch.

    南京市长江大桥        nodes 0 .. T-1 are the characters, T .. T+W-1 the words, so indices below T are characters
    0 1 2 3 4 5 6
    南京市 市长 长江大桥   a word is the half-open span of its characters

Edges are a dense bool[B, N, N]: a sentence has 80 nodes on average, and attention over them is dense as well.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from cige.data.batch import LatticeBatch


@dataclass(frozen=True)
class NodeSpans:
    """The nodes of a batch: T characters, padding included, then W words.

    Attributes:
        starts, ends: int64[B, N], half-open spans in characters.
        is_word: bool[N].
        mask: bool[B, N], real nodes.
    """

    starts: Tensor
    ends: Tensor
    is_word: Tensor
    mask: Tensor

    @property
    def pairs(self) -> Tensor:
        """bool[B, N, N]: whether both nodes are real rather than padding."""
        return self.mask[:, :, None] & self.mask[:, None, :]

    @property
    def self_loops(self) -> Tensor:
        """bool[N, N]: self-loops of all nodes, including padding, so that every node has a neighbour."""
        return torch.eye(len(self.is_word), dtype=torch.bool, device=self.mask.device)

    @property
    def follows(self) -> Tensor:
        """bool[B, N, N]: whether node j begins where node i ends."""
        return (self.ends[:, :, None] == self.starts[:, None, :]) & self.pairs

    @property
    def contains(self) -> Tensor:
        """bool[B, N, N]: whether node i contains all characters of node j."""
        inside = (self.starts[:, :, None] <= self.starts[:, None, :]) & (self.ends[:, None, :] <= self.ends[:, :, None])
        return inside & self.pairs


def node_spans(batch: LatticeBatch, *, use_words: bool = True) -> NodeSpans:
    """The nodes of a batch; without words, only its characters."""
    position = torch.arange(batch.chars.shape[1], device=batch.chars.device).expand_as(batch.chars)  # [B, T]
    if not use_words:
        return NodeSpans(position, position + 1, torch.zeros_like(position[0], dtype=torch.bool), batch.char_mask)
    is_word = torch.arange(batch.chars.shape[1] + batch.words.shape[1], device=position.device) >= batch.chars.shape[1]
    return NodeSpans(
        starts=torch.cat([position, batch.word_starts], 1),
        ends=torch.cat([position + 1, batch.word_ends], 1),
        is_word=is_word,
        mask=torch.cat([batch.char_mask, batch.word_mask], 1),
    )


def containing_graph(nodes: NodeSpans) -> Tensor:
    """bool[B, N, N], symmetric with self-loops: a word and each of its characters."""
    edges = nodes.contains & nodes.is_word[:, None] & ~nodes.is_word
    return edges | edges.transpose(1, 2) | nodes.self_loops


def transition_graph(nodes: NodeSpans) -> Tensor:
    """bool[B, N, N], symmetric with self-loops: characters and words that follow each other directly."""
    edges = nodes.follows
    return edges | edges.transpose(1, 2) | nodes.self_loops


def begin_end_graph(nodes: NodeSpans) -> Tensor:
    """bool[B, N, N], symmetric with self-loops: neighbouring characters, and a word with its first and last one."""
    is_edge_of_word = nodes.starts[:, :, None] == nodes.starts[:, None, :]
    is_edge_of_word = is_edge_of_word | (nodes.ends[:, :, None] == nodes.ends[:, None, :])
    edges = nodes.pairs & is_edge_of_word & nodes.is_word[:, None] & ~nodes.is_word
    edges = edges | (nodes.follows & ~nodes.is_word[:, None] & ~nodes.is_word)
    return edges | edges.transpose(1, 2) | nodes.self_loops


SAME, LEFT, RIGHT, CONTAINS, INSIDE, CROSSES, BEFORE, AFTER = range(8)  # relation of node j to node i
N_NEAR = 6  # relations of nodes that share a character or are adjacent: SAME to CROSSES


def span_relations(nodes: NodeSpans) -> Tensor:
    """int64[B, N, N]: the relation of the span of node j to that of node i; each pair has one relation.

    SAME: the same characters (a node and itself, or two words at one position). LEFT, RIGHT: j ends where i begins, or
    begins where i ends. CONTAINS: j lies within i. INSIDE: i lies within j. CROSSES: they share some characters, and
    each has others. BEFORE, AFTER: there are characters between them. Values of padding are undefined.
    """
    starts_i, ends_i = nodes.starts[:, :, None], nodes.ends[:, :, None]
    starts_j, ends_j = nodes.starts[:, None, :], nodes.ends[:, None, :]
    code = torch.full_like(starts_i - starts_j, CROSSES)
    for relation, holds in (  # if two hold, the later one wins
        (CONTAINS, (starts_i <= starts_j) & (ends_j <= ends_i)),
        (INSIDE, (starts_j <= starts_i) & (ends_i <= ends_j)),
        (SAME, (starts_i == starts_j) & (ends_i == ends_j)),
        (BEFORE, ends_j < starts_i),
        (AFTER, ends_i < starts_j),
        (LEFT, ends_j == starts_i),
        (RIGHT, ends_i == starts_j),
    ):
        code = code.masked_fill(holds, relation)
    return code


@dataclass(frozen=True)
class MentionEdges:
    """The edges of each gazetteer's graph, from its start node along each mention to its end node (Multi-digraph).

    An edge that two mentions share exists once.

    Attributes:
        first: bool[B, G, T], whether a mention begins with character t: start node -> t.
        inner: bool[B, G, T], whether a mention continues after character t: t -> t + 1.
        last: bool[B, G, T], whether a mention ends with character t: t -> end node.
    """

    first: Tensor
    inner: Tensor
    last: Tensor


def mention_edges(batch: LatticeBatch, member: Tensor) -> MentionEdges:
    """The edges of G gazetteers, where bool[B, W, G] says which of them contain a word; none contains padding."""
    position = torch.arange(batch.chars.shape[1], device=batch.chars.device)
    starts, lasts = batch.word_starts[:, :, None], batch.word_ends[:, :, None] - 1
    belongs = (member & batch.word_mask[:, :, None]).transpose(1, 2).float()  # [B, G, W]

    def of_any_word(at: Tensor) -> Tensor:  # bool[B, W, T] -> bool[B, G, T]
        return belongs @ at.float() > 0

    return MentionEdges(
        first=of_any_word(position == starts),
        inner=of_any_word((starts <= position) & (position < lasts)),
        last=of_any_word(position == lasts),
    )
