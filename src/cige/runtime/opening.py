"""Open a model folder with the runtime that computes it; PyTorch and ONNX Runtime are imported only if they do."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from cige.errors import ModelError
from cige.folders.kinds import GRID_TAGGER
from cige.lexicon.names_list import Names, names_list

if TYPE_CHECKING:
    from cige.models.model import LatticeModel
    from cige.runtime.native_model import NativeModel
    from cige.runtime.onnx_model import OnnxModel

BACKENDS = ("auto", "native", "torch")


def open_tagger(
    folder: Path,
    *,
    kind: str,
    device: str = "cpu",
    backend: str = "auto",
    precision: str = "auto",
    names: Names | None = None,
    n_threads: int | None = None,
) -> NativeModel | LatticeModel:
    """Open a folder that a LatticeModel or a GridModel wrote; the other options are those of `cige.load`.

    Args:
        kind: the kind in its manifest, which says which of the two.

    Raises:
        ModelError: as `cige.load`.
    """
    from cige.runtime.precision import FLOAT32, chosen
    from cige.runtime.tagger_folder import is_readable

    if backend not in BACKENDS:
        raise ModelError(f"backend {backend!r}: expected one of {', '.join(BACKENDS)}")
    if backend == "native" and device != "cpu":
        raise ModelError(f"device {device!r}: cige's own runtime computes on the CPU; use backend='torch'")
    listed = None if names is None else names_list(names)
    if backend == "native" or (backend == "auto" and device == "cpu" and is_readable(folder, kind)):
        options: dict[str, Any] = {"precision": precision, "names": listed, "n_threads": n_threads}
        if kind != GRID_TAGGER:
            from cige.runtime.native_model import NativeModel

            return NativeModel.load(folder, **options)
        from cige.runtime.native_grid import NativeGridModel

        return NativeGridModel.load(folder, **options)
    if n_threads is not None:
        raise ModelError(f"given n_threads={n_threads}; PyTorch computes this model, so call torch.set_num_threads")
    chosen(precision, [FLOAT32], of="PyTorch, which computes this model,")
    from cige.models.model import GridModel, LatticeModel
    from cige.nn.device import prediction_device

    where = prediction_device(device)
    model = (GridModel if kind == GRID_TAGGER else LatticeModel).load(folder, listed)
    model.tagger.to(where)
    return model


def open_onnx(folder: Path, *, device: str = "cpu") -> OnnxModel:
    """Open a folder that `cige export onnx` wrote; raises a ModelError for another device than the CPU."""
    from cige.runtime.onnx_model import OnnxModel

    if device != "cpu":
        raise ModelError(f"{folder}: a model exported for ONNX Runtime runs on the CPU; given device {device!r}")
    return OnnxModel.load(folder)
