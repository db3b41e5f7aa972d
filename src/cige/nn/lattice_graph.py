"""The lattice as a graph: characters and words as nodes with spans, and the edges between them, for a batch.

    南京市长江大桥        nodes 0 .. T-1 are the characters, T .. T+W-1 the words, so indices below T are characters
    0 1 2 3 4 5 6
    南京市 市长 长江大桥   a word is the half-open span of its characters

A graph says which pairs of nodes have an edge: of all pairs of a padded batch, bool[B, N, N], or of the pairs of near
nodes alone, bool[E]. All edges of all graphs are between near nodes, which share a character or are adjacent; a node
has some eight of them, itself included, and a sentence has 80 nodes on average.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from cige.data.batch import LatticeBatch
from cige.nn.edges import Edges
from cige.nn.ragged import RealRows


@dataclass(frozen=True)
class NodeSpans:
    """The nodes of a batch: T characters, padding included, then W words.

    Attributes:
        starts, ends: int64[B, N], half-open spans in characters.
        n_chars: T; the first nodes are characters, the others are words.
        mask: bool[B, N], real nodes.
    """

    starts: Tensor
    ends: Tensor
    n_chars: int
    mask: Tensor

    @property
    def pairs(self) -> Tensor:
        """bool[B, N, N]: whether both nodes are real rather than padding."""
        return self.mask[:, :, None] & self.mask[:, None, :]


@dataclass(frozen=True)
class Side:
    """One node of each pair: its span, int64 half-open, and whether it is a word, bool."""

    starts: Tensor
    ends: Tensor
    is_word: Tensor


@dataclass(frozen=True)
class NodePairs:
    """Pairs of real nodes (i, j); all tensors have one shape, or are broadcast to one.

    Attributes:
        i, j: the nodes.
        is_self: bool, whether i is j.
    """

    i: Side
    j: Side
    is_self: Tensor

    @property
    def backward(self) -> NodePairs:
        """The pairs (j, i)."""
        return NodePairs(self.j, self.i, self.is_self)

    @property
    def follows(self) -> Tensor:
        """Whether node j begins where node i ends."""
        return self.i.ends == self.j.starts

    @property
    def contains(self) -> Tensor:
        """Whether node i contains all characters of node j."""
        return (self.i.starts <= self.j.starts) & (self.j.ends <= self.i.ends)


def node_spans(batch: LatticeBatch, *, use_words: bool = True) -> NodeSpans:
    """The nodes of a batch; without words, only its characters."""
    n_chars = batch.chars.shape[1]
    position = torch.arange(n_chars, device=batch.chars.device).expand_as(batch.chars)  # [B, T]
    chars = NodeSpans(position, position + 1, n_chars, batch.char_mask)
    if not use_words:
        return chars
    return replace(
        chars,
        starts=torch.cat([chars.starts, batch.word_starts], 1),
        ends=torch.cat([chars.ends, batch.word_ends], 1),
        mask=torch.cat([chars.mask, batch.word_mask], 1),
    )


def every_pair(nodes: NodeSpans) -> NodePairs:
    """All pairs of the nodes of each sentence, [B, N, N]; those of padding are undefined (see `NodeSpans.pairs`)."""
    is_word = torch.arange(nodes.mask.shape[1], device=nodes.mask.device) >= nodes.n_chars
    rows = Side(nodes.starts[:, :, None], nodes.ends[:, :, None], is_word[:, None])
    columns = Side(nodes.starts[:, None], nodes.ends[:, None], is_word)
    return NodePairs(rows, columns, torch.eye(len(is_word), dtype=torch.bool, device=is_word.device))


@dataclass(frozen=True)
class NearGraph:
    """The near nodes of each node of a batch, itself included, over real nodes alone.

    Attributes:
        rows: the real nodes among the padded ones [B, T + W]; nodes are numbered in this order.
        edges: the pairs (i, j) of near nodes, sorted by i.
        pairs: the spans of both nodes of each edge, int64[E].
        chars: int64[M], the characters among the nodes.
    """

    rows: RealRows
    edges: Edges
    pairs: NodePairs
    chars: Tensor


def near_graph(nodes: NodeSpans) -> NearGraph:
    """The edges between all nodes that share a character or are adjacent."""
    rows = RealRows.of(nodes.mask)
    # Spans of padding are near nothing.
    starts = nodes.starts.masked_fill(~nodes.mask, nodes.n_chars + 2)
    ends = nodes.ends.masked_fill(~nodes.mask, -1)
    begins_before_end = starts[:, :, None] <= ends[:, None]  # [B, N, N], whether i begins at or before the end of j
    pairs = (begins_before_end & begins_before_end.transpose(1, 2)).flatten().nonzero()[:, 0]
    n_nodes = nodes.mask.shape[1]
    i = pairs // max(1, n_nodes)  # in [B * N]
    sentence = i // max(1, n_nodes)
    first = sentence * n_nodes  # of the sentence's nodes
    j = pairs - i * n_nodes + first
    starts, ends, numbers = nodes.starts.flatten(), nodes.ends.flatten(), rows.numbers.flatten()
    of_i, of_j = (
        Side(starts.index_select(0, node), ends.index_select(0, node), node - first >= nodes.n_chars) for node in (i, j)
    )
    n_real = len(rows.places)
    edges = Edges(numbers.index_select(0, i), numbers.index_select(0, j), n_real, n_real)
    chars = rows.numbers[:, : nodes.n_chars][nodes.mask[:, : nodes.n_chars]]
    return NearGraph(rows, edges, NodePairs(of_i, of_j, i == j), chars)


def containing_graph(pairs: NodePairs) -> Tensor:
    """bool, symmetric with self-loops: a word and each of its characters."""
    holds = pairs.contains & pairs.i.is_word & ~pairs.j.is_word
    back = pairs.backward
    return holds | (back.contains & back.i.is_word & ~back.j.is_word) | pairs.is_self


def transition_graph(pairs: NodePairs) -> Tensor:
    """bool, symmetric with self-loops: characters and words that follow each other directly."""
    return pairs.follows | pairs.backward.follows | pairs.is_self


def begin_end_graph(pairs: NodePairs) -> Tensor:
    """bool, symmetric with self-loops: neighbouring characters, and a word with its first and last one."""
    shares_an_end = (pairs.i.starts == pairs.j.starts) | (pairs.i.ends == pairs.j.ends)
    of_chars = (pairs.follows | pairs.backward.follows) & ~pairs.i.is_word & ~pairs.j.is_word
    return (shares_an_end & (pairs.i.is_word != pairs.j.is_word)) | of_chars | pairs.is_self


SAME, LEFT, RIGHT, CONTAINS, INSIDE, CROSSES, BEFORE, AFTER = range(8)  # relation of node j to node i
N_NEAR = 6  # relations of nodes that share a character or are adjacent: SAME to CROSSES


def span_relations(pairs: NodePairs) -> Tensor:
    """int64: the relation of the span of node j to that of node i; each pair has one relation.

    SAME: the same characters (a node and itself, or two words at one position). LEFT, RIGHT: j ends where i begins, or
    begins where i ends. CONTAINS: j lies within i. INSIDE: i lies within j. CROSSES: they share some characters, and
    each has others. BEFORE, AFTER: there are characters between them.
    """
    i, j = pairs.i, pairs.j
    code = torch.full_like(i.starts - j.starts, CROSSES)
    for relation, holds in (  # if two hold, the later one wins
        (CONTAINS, pairs.contains),
        (INSIDE, pairs.backward.contains),
        (SAME, (i.starts == j.starts) & (i.ends == j.ends)),
        (BEFORE, j.ends < i.starts),
        (AFTER, i.ends < j.starts),
        (LEFT, j.ends == i.starts),
        (RIGHT, i.ends == j.starts),
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
