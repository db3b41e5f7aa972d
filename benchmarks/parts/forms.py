"""The same weights in each form that can run them."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cige.api import NER
from cige.runtime.native_model import NativeModel


def load_forms(folder: str | Path, forms: Iterable[str], work_dir: Path | None = None) -> dict[str, NER]:
    """A tagger for each of the forms.

    Args:
        forms: `native`, the runtime in C; `numpy`, its form without a compiler; `torch`; `literal`, PyTorch with every
            number that the paper's equations name; `gpu`, PyTorch on CUDA; `onnx` and `int8`, for ONNX Runtime.
        work_dir: where the forms for ONNX Runtime are exported to.
    """
    return {form: NER(_load(Path(folder), form, work_dir)) for form in forms}


def _load(folder: Path, form: str, work_dir: Path | None) -> Any:
    if form in ("native", "numpy"):
        return NativeModel.load(folder, kernels="off" if form == "numpy" else None)
    if form == "gpu":
        return NER.from_pretrained(folder, device="cuda").model
    from cige.models.model import LatticeModel

    model = LatticeModel.load(folder)
    if form in ("onnx", "int8"):
        from cige.runtime.export import export_onnx
        from cige.runtime.onnx_model import OnnxModel

        assert work_dir is not None
        export_onnx(model, work_dir / form, int8=form == "int8")
        return OnnxModel.load(work_dir / form)
    return model if form == "torch" else _literal(model)


def _literal(model: Any) -> Any:
    import torch

    from benchmarks.parts.literal_flat import literal_encode
    from cige.models.model import LatticeModel

    @dataclass
    class LiteralModel(LatticeModel):
        @torch.inference_mode()
        def emissions(self, lattices: Any) -> Any:
            return self.tagger.output(literal_encode(self.tagger.encoder, self.batch(lattices))).numpy()

    return LiteralModel(**vars(model))
