"""GraphBuilder: build ONNX graphs with code that looks like NumPy; LayerBuilder: the layers of cige.nn as nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from cige.data.vocabulary import UNK

OPSET, IR_VERSION = 18, 9  # read by every ONNX Runtime since 1.14
_INLINE_BYTES = 1024  # constants up to this size stay in the graph
_PAGE = 4096  # constants are aligned to pages in the file, so that they can be mapped
# Processors without VNNI add pairs of products of 8-bit numbers in 16 bits, which overflows unless weights have only
# 7 bits. With 7 bits, every processor gives the same result.
_INT8_MAX = 63
_TABLES = "encoder.embeddings."

Value = str | int | Sequence[int] | np.ndarray | np.generic


class GraphBuilder:
    """Collects nodes; `g.MatMul(x, weight)` adds a node and returns the name of its output.

    An argument is the name of a value, or a constant: an int (int64 scalar), a list of ints (int64 vector) or an array.

    Args:
        data_path: the file of large constants, in the folder of the graph; runtimes map it and load pages on demand.
    """

    def __init__(self, data_path: Path):
        self._data_path = data_path
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[TensorProto] = []
        self._n_names = 0
        data_path.write_bytes(b"")

    def __getattr__(self, op_type: str) -> Callable[..., str]:
        if not op_type[0].isupper():
            raise AttributeError(op_type)

        def add(*inputs: Value, **attributes: Any) -> str:
            return self.several(op_type, 1, *inputs, **attributes)[0]

        return add

    def several(self, op_type: str, n_outputs: int, *inputs: Value, **attributes: Any) -> list[str]:
        """Add a node with several outputs; returns their names."""
        outputs = [self._name() for _ in range(n_outputs)]
        self._nodes.append(helper.make_node(op_type, [self._value(x) for x in inputs], outputs, **attributes))
        return outputs

    def constant(self, array: np.ndarray) -> str:
        """Add a constant and return its name; useful for constants that several nodes use."""
        name, array = self._name(), np.ascontiguousarray(array)
        if array.nbytes <= _INLINE_BYTES:
            self._constants.append(numpy_helper.from_array(array, name))
            return name
        with open(self._data_path, "ab") as file:
            file.write(bytes(-file.tell() % _PAGE))
            place = {"location": self._data_path.name, "offset": str(file.tell()), "length": str(array.nbytes)}
            array.tofile(file)
        tensor = TensorProto(name=name, dims=array.shape, data_type=helper.np_dtype_to_tensor_dtype(array.dtype))
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in place.items():
            tensor.external_data.add(key=key, value=value)
        self._constants.append(tensor)
        return name

    def scan(self, body: Callable[..., str], *inputs: tuple[str, type]) -> str:
        """Apply `body` to each slice of `inputs` (name, dtype) along their first axis, and stack the results.

        The body may use values of the enclosing graph.
        """
        around, self._nodes = self._nodes, []
        names = [self._name() for _ in inputs]
        result = body(*names)
        inner = helper.make_graph(
            self._nodes,
            "body",
            [_described(name, dtype, None) for name, (_, dtype) in zip(names, inputs, strict=True)],
            [_described(result, np.float32, None)],
        )
        self._nodes = around
        return self.Scan(*(name for name, _ in inputs), body=inner, num_scan_inputs=len(inputs))

    def save(
        self, path: Path, *, inputs: Mapping[str, Sequence[str]], outputs: Mapping[str, tuple[str, Sequence[Any]]]
    ) -> None:
        """Write the graph and check it.

        Args:
            inputs: name -> axes, all int64.
            outputs: name -> (value, axes), all float32.
        """
        for name, (value, _) in outputs.items():
            self._nodes.append(helper.make_node("Identity", [value], [name]))
        graph = helper.make_graph(
            self._nodes,
            "cige",
            [_described(name, np.int64, axes) for name, axes in inputs.items()],
            [_described(name, np.float32, axes) for name, (_, axes) in outputs.items()],
            self._constants,
        )
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION, producer_name="cige"
        )
        path.write_bytes(model.SerializeToString())
        onnx.checker.check_model(str(path))

    def _value(self, x: Value) -> str:
        if isinstance(x, str):
            return x
        return self.constant(np.asarray(x) if isinstance(x, np.ndarray | np.generic) else np.array(x, np.int64))

    def _name(self) -> str:
        self._n_names += 1
        return f"v{self._n_names}"


def _described(name: str, dtype: type, axes: Sequence[Any] | None) -> onnx.ValueInfoProto:
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    return helper.make_tensor_value_info(name, kind, list(axes) if axes is not None else None)


class LayerBuilder:
    """Adds layers, which are identified by the names of their weights, to a graph.

    Args:
        weights: the state dict of a Tagger.
        int8: use 8-bit weights in products, and quantise the inputs at run time (dynamic quantisation).
    """

    def __init__(self, graph: GraphBuilder, weights: dict[str, np.ndarray], *, int8: bool = False):
        self.graph, self.weights, self._int8 = graph, weights, int8

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
