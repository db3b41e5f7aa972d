"""GraphBuilder: build ONNX graphs with code that looks like NumPy; large constants are stored in a separate file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET, IR_VERSION = 18, 9  # read by every ONNX Runtime since 1.14
_INLINE_BYTES = 1024  # constants up to this size stay in the graph
_PAGE = 4096  # constants are aligned to pages in the file, so that they can be mapped
_NO_SHAPE = None

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
            [_described(name, dtype, _NO_SHAPE) for name, (_, dtype) in zip(names, inputs, strict=True)],
            [_described(result, np.float32, _NO_SHAPE)],
        )
        self._nodes = around
        return self.Scan(*(name for name, _ in inputs), body=inner, num_scan_inputs=len(inputs))

    def save(
        self, path: Path, *, inputs: dict[str, Sequence[str]], outputs: Mapping[str, tuple[str, Sequence[Any]]]
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
