"""Export a trained model to a folder for ONNX Runtime, which does not need PyTorch."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from cige.errors import ModelError
from cige.models.flat_config import FlatConfig
from cige.models.model import LatticeModel
from cige.runtime.onnx_model import DATA, GRAPH, write_onnx_folder

MAX_CHARS = 256  # of a lattice: windows are shorter, but sentences of labelled files are read whole


def export_onnx(model: LatticeModel, folder: Path | str, *, int8: bool = False) -> None:
    """Write a folder that `cige.load` can read; `int8` stores weights and tables in 8 bits, and changes scores.

    Raises:
        ModelError: the architecture cannot be exported, `onnx` is not installed, or the folder cannot be written.
    """
    config = model.config
    if not isinstance(config, FlatConfig):
        raise ModelError(f"a model of architecture {model.architecture!r} cannot be exported to ONNX, only 'flat' can")
    if config.bert is not None:
        raise ModelError("a model that reads BERT features cannot be exported to ONNX; train one without `bert`")
    try:
        import onnx  # noqa: F401
    except ModuleNotFoundError as missing:
        raise ModelError(f"export to ONNX needs {missing.name}; pip install 'cige[onnx]'") from missing
    from cige.runtime.component_rows import with_component_rows, with_gazetteer_rows
    from cige.runtime.flat_graph import FlatGraph
    from cige.runtime.onnx_graph import GraphBuilder, LayerBuilder

    saved = {name: tensor.numpy() for name, tensor in model.weights("int8" if int8 else None).items()}
    plain, weights, vocabulary = with_component_rows(config, saved, model.vocabulary)
    weights = with_gazetteer_rows(weights, vocabulary)

    def write_graph(aside: Path) -> None:
        graph = GraphBuilder(aside / DATA)
        flat = FlatGraph(LayerBuilder(graph, weights, int8=int8), plain, max_chars=MAX_CHARS)
        emissions, attention = flat.build()
        outputs = {"emissions": (emissions, ["B", "T", len(model.tags)])}
        if attention is not None:
            outputs["attention"] = (attention, ["B", "T", "W"])
        graph.save(aside / GRAPH, inputs=flat.inputs, outputs=outputs)

    write_onnx_folder(
        Path(folder),
        write_graph=write_graph,
        crf=model.crf,
        vocabulary=vocabulary,
        lexicon=model.lexicon,
        facts=model.manifest_facts()
        | {"config": asdict(plain), "n_tuned": vocabulary.n_tuned, "max_chars": MAX_CHARS, "int8": int8},
    )
