"""LayerBuilder: the layers of cige.nn as ONNX nodes, identified by the names of their weights."""

from __future__ import annotations

import numpy as np

from cige.data.vocabulary import UNK
from cige.runtime.onnx_graph import GraphBuilder

# Processors without VNNI add pairs of products of 8-bit numbers in 16 bits, which overflows unless weights have only
# 7 bits. With 7 bits, every processor gives the same result.
_INT8_MAX = 63
_TABLES = "encoder.embeddings."


class LayerBuilder:
    """Adds layers to a graph.

    Args:
        graph: the graph to which nodes are added.
        weights: the state dict of a Tagger.
        int8: use 8-bit weights in products, and quantise the inputs at run time (dynamic quantisation).
    """

    def __init__(self, graph: GraphBuilder, weights: dict[str, np.ndarray], *, int8: bool = False):
        self.graph = graph
        self.weights = weights
        self._int8 = int8

    def linear(self, x: str, name: str, *, scale: float = 1.0) -> str:
        """nn.Linear: float[..., in] -> float[..., out], times `scale`."""
        g, weight = self.graph, (self.weights[f"{name}.weight"].T * scale).astype(np.float32)
        product = self._int8_product(x, weight) if self._int8 else g.MatMul(x, weight)
        bias = self.weights.get(f"{name}.bias")
        return product if bias is None else g.Add(product, (bias * scale).astype(np.float32))

    def _int8_product(self, x: str, weight: np.ndarray) -> str:
        g = self.graph
        step = np.maximum(np.abs(weight).max(0) / _INT8_MAX, 1e-12).astype(np.float32)  # of columns
        rounded = np.round(weight / step).astype(np.int8)
        x_int8, x_step, x_zero = g.several("DynamicQuantizeLinear", 3, x)
        product = g.Cast(g.MatMulInteger(x_int8, rounded, x_zero), to=1)
        return g.Mul(product, g.Mul(x_step, step))

    def layer_norm(self, x: str, name: str) -> str:
        """nn.LayerNorm over the last axis."""
        weight, bias = self.weights[f"{name}.weight"], self.weights[f"{name}.bias"]
        return self.graph.LayerNormalization(x, weight, bias, axis=-1, epsilon=1e-5)

    def char_vectors(self, *, chars: str, bigrams: str) -> str:
        """LatticeVectors.chars for int64[T, B] rows: float[T, B, C]."""
        g = self.graph
        vectors = self.table("char", chars)
        if f"{_TABLES}bigram.tuned" not in self.weights:
            return vectors
        pairs = self.table("bigram", bigrams)
        if f"{_TABLES}backoff.weight" in self.weights:
            following = g.Pad(g.Slice(vectors, [1], [2**31 - 1], [0]), [0, 0, 0, 1, 0, 0])
            composed = self.linear(g.Concat(vectors, following, axis=-1), f"{_TABLES}backoff")
            pairs = g.Where(g.Unsqueeze(g.Equal(bigrams, UNK), [-1]), composed, pairs)
        return g.Concat(vectors, pairs, axis=-1)

    def table(self, name: str, rows: str) -> str:
        """SplitEmbedding for int64[W, B] rows: float[W, B, C].

        The first n_tuned rows are in a float32 table, others in a float16 or scaled int8 table.
        """
        g = self.graph
        tuned, fixed, scale = (self.weights[f"{_TABLES}{name}.{part}"] for part in ("tuned", "fixed", "scale"))
        if not len(fixed):
            return g.Gather(tuned, rows)
        row_in_fixed = g.Sub(rows, len(tuned))
        is_tuned = g.Less(row_in_fixed, 0)
        row_in_fixed = g.Max(row_in_fixed, 0)
        vectors = g.Cast(g.Gather(fixed, row_in_fixed), to=1)
        if len(scale):
            vectors = g.Mul(vectors, g.Cast(g.Gather(scale, row_in_fixed), to=1))
        return g.Where(g.Unsqueeze(is_tuned, [-1]), g.Gather(tuned, g.Where(is_tuned, rows, 0)), vectors)
