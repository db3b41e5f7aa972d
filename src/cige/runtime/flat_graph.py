"""FLAT as an ONNX graph: the equations of `cige.models.flat`, arranged for fast matrix products.

R_ij depends only on the spans i and j. Queries are characters, so a batch has T distinct query spans. Its keys are T
characters and the S - T distinct spans of its words, many of which occur in several sentences. Thus R has T * S rows
for the whole batch, and the scores of all sentences and heads are one product per character, [B * H, D] x [D, S], from
which each word selects the column of its span. In the last layer, words are not queries, because its output for words
is not used.

In tensors, the position comes before the sentence ([T, B, ..]), so that a product per character needs no copy.
"""

from __future__ import annotations

import numpy as np
import torch

from cige.data.vocabulary import PAD
from cige.models.flat_config import DISTANCES, FlatConfig
from cige.nn.sinusoid import sinusoid
from cige.runtime.onnx_graph import LayerBuilder

INPUTS = {"chars": ["B", "T"], "bigrams": ["B", "T"], "n_chars": ["B"]}  # and their axes
WORD_INPUTS = {"words": ["B", "W"], "word_starts": ["B", "W"], "word_ends": ["B", "W"], "n_words": ["B"]}
LABEL_INPUTS = {"word_labels": ["B", "W"]}
MAX_RELATION = 16_000_000  # elements of R in memory (64 MB); larger R are processed in blocks of characters
_HIDDEN = np.array(-1e30, np.float32)  # added to the scores of masked pairs; finite, to avoid NaN


class FlatGraph:
    """Adds FLAT to a graph whose inputs are the arrays of PaddedLattices.

    Args:
        layers: creates the nodes of layers.
        config: the configuration of the model.
        max_chars: maximum T of a batch.
    """

    def __init__(self, layers: LayerBuilder, config: FlatConfig, *, max_chars: int):
        self.g, self.layers, self.config = layers.graph, layers, config
        self.max_chars = max_chars
        self.reads_labels = config.reads_word_labels or config.reads_gazetteers
        self.inputs = INPUTS | (WORD_INPUTS if config.use_words else {}) | (LABEL_INPUTS if self.reads_labels else {})

    def build(self) -> tuple[str, str | None]:
        """Emissions float[B, T, L], and attention to words float[B, T, W], as in FlatEncoder.read_words."""
        g, config = self.g, self.config
        if config.use_words:
            self._find_word_spans()
        self._measure()
        chars, bigrams = (g.Transpose(self._padded(name), perm=[1, 0]) for name in ("chars", "bigrams"))
        vectors = self.layers.char_vectors(chars=chars, bigrams=bigrams)
        if config.reads_char_words:
            vectors = g.Concat(vectors, self.layers.table("char_word", chars), axis=-1)
        x = self.layers.linear(vectors, "encoder.char_projection")
        words = None
        if config.use_words:
            vectors = self.layers.table("word", g.Transpose("words", perm=[1, 0]))
            words = self.layers.linear(vectors, "encoder.word_projection")
        if self.reads_labels:
            rows = g.Transpose("word_labels", perm=[1, 0])
            words = g.Add(words, g.Gather(self.layers.weights["encoder.word_labels.weight"], rows))
        self._relate()
        attentions = []
        for k in range(config.n_layers):
            nodes = g.Concat(x, words, axis=0) if words is not None else x  # [N, B, D]
            is_last = k == config.n_layers - 1
            x, attention = self._layer(f"encoder.layers.{k}", x if is_last else nodes, nodes)
            attentions.append(attention)
            if words is not None and not is_last:
                words = g.Slice(x, self.n_chars, [2**31 - 1], [0])
                x = g.Slice(x, [0], self.n_chars, [0])
        emissions = g.Transpose(self.layers.linear(x, "output"), perm=[1, 0, 2])
        outputs = [emissions, self._to_words(attentions)] if config.use_words else [emissions]
        emissions, *to_words = (g.Slice(output, [0], self.n_given, [1]) for output in outputs)
        return emissions, to_words[0] if to_words else None

    # -- relative spans (Eq. 4-10) -----------------------------------------------------------------------------------

    def _find_word_spans(self) -> None:
        """The distinct spans of the words of the batch, and the index of each word's span."""
        g, stride = self.g, self.max_chars + 1
        self.heads = g.Transpose("word_starts", perm=[1, 0])  # [W, B]
        self.tails = g.Max(g.Transpose(g.Sub("word_ends", 1), perm=[1, 0]), self.heads)  # padding: head and tail 0
        codes, _, number, _ = g.several("Unique", 4, g.Add(g.Mul(self.heads, stride), self.tails))
        self.span_heads = g.Div(codes, stride)
        self.span_reaches = g.Sub(g.Mod(codes, stride), self.span_heads)
        self.span_of_word = g.Transpose(g.Reshape(number, g.Shape(self.heads)), perm=[1, 0])  # [B, W]

    def _measure(self) -> None:
        """T, rounded up so that all blocks of R have the same size, and positions 0 to T - 1."""
        g = self.g
        self.n_given = g.Shape("chars", start=1, end=2)  # [1], like the following values
        n_spans = g.Add(self.n_given, g.Shape(self.span_heads)) if self.config.use_words else self.n_given
        n_numbers = g.Mul(g.Mul(self.n_given, n_spans), self.config.width)
        self.n_blocks = g.Add(g.Div(n_numbers, MAX_RELATION), 1)
        self.block = g.Div(g.Sub(g.Add(self.n_given, self.n_blocks), 1), self.n_blocks)  # characters per block
        self.n_chars = g.Mul(self.block, self.n_blocks)
        self.place = g.Range(0, g.Squeeze(self.n_chars), 1)  # [T]

    def _padded(self, rows: str) -> str:
        """Pad [B, T before rounding] to int64[B, T]."""
        g = self.g
        return g.Pad(rows, g.Concat([0, 0, 0], g.Sub(self.n_chars, self.n_given), axis=0), PAD)

    def _relate(self) -> None:
        """The rows of R, and int64[T, S], the row of each pair of a character and a span."""
        g, config = self.g, self.config
        heads, reaches = self.place, g.Mul(self.place, 0)
        if config.use_words:
            heads = g.Concat(heads, self.span_heads, axis=0)  # [S]
            reaches = g.Concat(reaches, self.span_reaches, axis=0)
        self.n_spans = g.Shape(heads)
        # First a table with a row per span length and head distance, then the row of each pair.
        n_distances = g.Sub(g.Add(self.n_chars, self.n_chars), 1)  # [1]: from -(T - 1) to T - 1
        distance = g.Sub(g.Range(0, g.Squeeze(n_distances), 1), g.Sub(self.n_chars, 1))
        reach = g.Unsqueeze(g.Range(0, g.Add(g.ReduceMax(reaches, keepdims=0), 1), 1), [1])
        to_head, to_tail = self._distance_tables(("hh", "th"), ("ht", "tt"))
        by_head = g.Gather(to_head, self._row_of(distance))
        by_tail = g.Gather(to_tail, self._row_of(g.Sub(distance, reach)))
        self.table = g.Reshape(g.Relu(g.Add(by_head, by_tail)), [-1, config.width])  # [reaches * distances, D]
        row = g.Add(g.Mul(reaches, n_distances), g.Sub(g.Sub(self.n_chars, 1), heads))  # [S]
        self.pairs = g.Add(g.Unsqueeze(self.place, [1]), row)

    def _distance_tables(self, *groups: tuple[str, ...]) -> list[np.ndarray]:
        """For each group of distances, float[2M - 1, D]: the sum of their W_k p_d for d from -(M - 1) to M - 1.

        The bias of W_r is included in the first table.
        """
        config, weights = self.config, self.layers.weights
        position = torch.arange(1 - self.max_chars, self.max_chars) + config.position_offset
        encoding = sinusoid(position, config.width, config.sinusoid).numpy().astype(np.float64)
        blocks = np.split(weights["encoder.fusion.weight.weight"].astype(np.float64), len(config.distances), axis=1)
        of_distance = {name: encoding @ block.T for name, block in zip(config.distances, blocks, strict=True)}
        sums = [sum((of_distance[n] for n in group if n in of_distance), np.zeros_like(encoding)) for group in groups]
        sums[0] = sums[0] + weights.get("encoder.fusion.weight.bias", 0.0)
        return [table.astype(np.float32) for table in sums]

    def _row_of(self, distance: str) -> str:
        """The row of a distance in these tables; only distances of padding are outside their range."""
        g, furthest = self.g, self.max_chars - 1
        return g.Clip(g.Add(distance, furthest), 0, 2 * furthest)

    # -- a layer (Eq. 11 and §2) -------------------------------------------------------------------------------------

    def _layer(self, name: str, queries: str, nodes: str) -> tuple[str, str]:
        """float[Q, B, D] and attention float[B, H, Q, N]; queries are the characters, or all nodes."""
        g, layers, residual = self.g, self.layers, self.config.residual
        attended, attention = self._attend(f"{name}.attention", queries, nodes)
        x = layers.layer_norm(g.Add(attended, queries if residual else attended), f"{name}.attention_norm")
        changed = layers.linear(g.Relu(layers.linear(x, f"{name}.ff_in")), f"{name}.ff_out")
        norm = "attention_norm" if self.config.shared_layer_norm else "ff_norm"
        return layers.layer_norm(g.Add(changed, x if residual else changed), f"{name}.{norm}"), attention

    def _attend(self, name: str, queries: str, nodes: str) -> tuple[str, str]:
        g, config, weights = self.g, self.config, self.layers.weights
        by_head = [0, 0, config.n_heads, config.head_width]
        scale = config.score_scale
        query = self.layers.linear(queries, f"{name}.query", scale=scale)
        key = self.layers.linear(nodes, f"{name}.key") if config.key_projection else nodes
        value = self.layers.linear(nodes, f"{name}.value")
        content_query = g.Add(query, (weights[f"{name}.u"] * scale).reshape(-1))
        content_query = g.Transpose(g.Reshape(content_query, by_head), perm=[1, 2, 0, 3])  # [B, H, Q, d]
        content = g.MatMul(content_query, g.Transpose(g.Reshape(key, by_head), perm=[1, 2, 3, 0]))
        words_are_queries = queries == nodes and config.use_words
        score = g.Add(
            content, self._position_scores(name, query, scale, words_are_queries=words_are_queries)
        )  # [B, H, Q, N]
        hidden = self._hidden(words_are_queries=words_are_queries)
        attention = g.Softmax(g.Add(score, hidden), axis=-1)
        if config.max_distance is not None and config.max_distance < 0:  # only then a query may have no key at all
            attention = g.Mul(attention, g.Cast(g.Equal(hidden, np.float32(0)), to=1))
        value = g.Transpose(g.Reshape(value, by_head), perm=[1, 2, 0, 3])  # [B, H, N, d]
        out = g.Transpose(g.MatMul(attention, value), perm=[2, 0, 1, 3])
        return g.Reshape(out, [0, 0, config.width]), attention

    def _position_scores(self, name: str, query: str, scale: float, *, words_are_queries: bool) -> str:
        """float[B, H, Q, N]."""
        g, config = self.g, self.config
        if config.position_score == "bias":
            scores, relation_query = self._biases(name), None
        else:
            relation_query = self._relation_query(name, query, scale)  # [Q, B * H, D]
            of_chars = g.Slice(relation_query, [0], self.n_chars, [0]) if words_are_queries else relation_query
            scores = self._products(of_chars)
        scores = g.Transpose(scores, perm=[1, 2, 0, 3])  # [B, H, T, S]
        if not config.use_words:
            return scores
        n_batch, n_words = g.Shape("words", end=1), g.Shape("words", start=1)
        shape = g.Concat(n_batch, [config.n_heads], self.n_chars, n_words, axis=0)
        columns = g.Expand(g.Unsqueeze(g.Add(self.span_of_word, self.n_chars), [1, 2]), shape)
        if config.position_score == "bias":
            scores = g.Expand(scores, g.Concat(n_batch, [1, 1, 1], axis=0))
        to_words = g.GatherElements(scores, columns, axis=3)
        to_chars = g.Slice(scores, [0], self.n_chars, [3])
        scores = g.Concat(to_chars, to_words, axis=3)  # [B, H, T, N]
        if not words_are_queries:
            return scores
        return g.Concat(scores, self._scores_of_words(name, relation_query), axis=2)

    def _relation_query(self, name: str, query: str, scale: float) -> str:
        """float[Q, B * H, D]: W_kR^T (q_i + v), scaled."""
        g, config, weights = self.g, self.config, self.layers.weights
        n_heads, head_width = config.n_heads, config.head_width
        shifted = g.Add(query, (weights[f"{name}.v"] * scale).reshape(-1))
        shifted = g.Transpose(g.Reshape(shifted, [0, 0, n_heads, head_width]), perm=[2, 0, 1, 3])
        blocks = weights[f"{name}.relation_key.weight"].reshape(n_heads, head_width, config.width)
        turned = g.MatMul(g.Reshape(shifted, [n_heads, -1, head_width]), blocks)  # [H, Q * B, D]
        n_queries = g.Shape(query, end=1)
        return g.Reshape(g.Transpose(turned, perm=[1, 0, 2]), g.Concat(n_queries, [-1, config.width], axis=0))

    def _products(self, relation_query: str) -> str:
        """float[T, B, H, S]: products of each character's queries with its rows of R."""
        g, config = self.g, self.config

        def of_block(query: str, pairs: str) -> str:  # [block, B * H, D], [block, S] -> [block, B * H, S]
            return g.MatMul(query, g.Transpose(g.Gather(self.table, pairs), perm=[0, 2, 1]))

        in_blocks = g.Concat(self.n_blocks, self.block, axis=0)
        query = g.Reshape(relation_query, g.Concat(in_blocks, [-1, config.width], axis=0))
        pairs = g.Reshape(self.pairs, g.Concat(in_blocks, [-1], axis=0))
        scores = g.scan(of_block, (query, np.float32), (pairs, np.int64))
        return g.Reshape(scores, g.Concat(self.n_chars, [-1, config.n_heads], self.n_spans, axis=0))

    def _biases(self, name: str) -> str:
        """float[T, 1, H, S]: position scores in the form "bias", which has one number per head."""
        g = self.g
        of_row = g.MatMul(self.table, self.layers.weights[f"{name}.relation_bias.weight"].T)
        return g.Unsqueeze(g.Transpose(g.Gather(of_row, self.pairs), perm=[0, 2, 1]), [1])

    def _scores_of_words(self, name: str, relation_query: str | None) -> str:
        """float[B, H, W, N]: position scores of words as queries, computed for one word per sentence at a time.

        Few of these pairs share a row of R, and the rows of all pairs would have W * B * N * D elements.
        """
        g, config = self.g, self.config
        tables = [g.constant(t) for t in self._distance_tables(*((name,) for name in DISTANCES))]
        key_heads, key_tails = self._key_spans()

        def relation_of(head: str, tail: str) -> str:  # [B], [B] -> [B, N, D]
            ends = [(query, key) for key in (key_heads, key_tails) for query in (head, tail)]
            rows = [self._row_of(g.Sub(g.Unsqueeze(query, [1]), key)) for query, key in ends]
            return g.Relu(g.Sum(*(g.Gather(table, row) for table, row in zip(tables, rows, strict=True))))

        def biases(head: str, tail: str) -> str:  # [B, H, N]
            weight = self.layers.weights[f"{name}.relation_bias.weight"]
            return g.Transpose(g.MatMul(relation_of(head, tail), weight.T), perm=[0, 2, 1])

        def products(query: str, head: str, tail: str) -> str:  # [B * H, D], [B], [B] -> [B, H, N]
            query = g.Reshape(query, [-1, config.n_heads, config.width])
            return g.MatMul(query, g.Transpose(relation_of(head, tail), perm=[0, 2, 1]))

        spans = [(self.heads, np.int64), (self.tails, np.int64)]
        if relation_query is None:
            scores = g.scan(biases, *spans)
        else:
            of_words = g.Slice(relation_query, self.n_chars, [2**31 - 1], [0])
            scores = g.scan(products, (of_words, np.float32), *spans)
        return g.Transpose(scores, perm=[1, 2, 0, 3])

    # -- masks -------------------------------------------------------------------------------------------------------

    def _hidden(self, *, words_are_queries: bool) -> str:
        """float[B, 1, Q or 1, N]: the attention mask, 0 or a large negative number."""
        g, config = self.g, self.config
        is_char = g.Less(self.place, g.Unsqueeze(g.Max("n_chars", 1), [1]))  # an empty sentence attends to one node
        if config.use_words:
            order = g.Range(0, g.Squeeze(g.Shape("words", start=1)), 1)
            is_char = g.Concat(is_char, g.Less(order, g.Unsqueeze("n_words", [1])), axis=1)
        hidden = g.Unsqueeze(g.Not(is_char), [1])  # [B, 1, N]
        key_heads, key_tails = (g.Unsqueeze(x, [1]) for x in self._key_spans())
        heads = tails = g.Unsqueeze(self.place, [0, 2])  # [1, T, 1]
        if words_are_queries:
            heads, tails = (g.Unsqueeze(x, [2]) for x in self._key_spans())  # [B, N, 1]
        if config.mask_self_matched and config.use_words:
            contains = g.And(g.LessOrEqual(key_heads, heads), g.LessOrEqual(tails, key_tails))
            is_word = g.Concat(g.Less(self.place, 0), g.GreaterOrEqual(order, 0), axis=0)  # [N]
            from_char = g.Not(g.Unsqueeze(is_word, [1])) if words_are_queries else np.array(True)
            hidden = g.Or(hidden, g.And(g.And(contains, is_word), from_char))
        if config.max_distance is not None:
            gap = g.Max(g.Sub(heads, key_tails), g.Sub(key_heads, tails))
            hidden = g.Or(hidden, g.Greater(gap, config.max_distance))
        return g.Unsqueeze(g.Where(hidden, _HIDDEN, np.float32(0)), [1])

    def _key_spans(self) -> tuple[str, str]:
        """Heads and tails of all nodes, int64[B, N]."""
        g = self.g
        places = g.Expand(self.place, g.Concat(g.Shape("chars", end=1), self.n_chars, axis=0))
        if not self.config.use_words:
            return places, places
        heads, tails = (g.Concat(places, g.Transpose(x, perm=[1, 0]), axis=1) for x in (self.heads, self.tails))
        return heads, tails

    def _to_words(self, attentions: list[str]) -> str:
        """float[B, T, W]: attention of characters to words, averaged over layers and heads."""
        g = self.g
        chars_to_words = [
            g.Slice(attention, g.Concat([0], self.n_chars, axis=0), g.Concat(self.n_chars, [2**31 - 1], axis=0), [2, 3])
            for attention in attentions
        ]
        return g.ReduceMean(g.Mean(*chars_to_words), [1], keepdims=0)
