"""The ONNX graph of FLAT against the PyTorch model, in every form that its settings give it."""

from __future__ import annotations

import numpy as np
import pytest
import tiny
import torch
from flat_variants import SMALL, TEXTS, VARIANTS

from cige.models.flat import FlatConfig
from cige.models.model import LatticeModel
from cige.runtime.export import export_onnx
from cige.runtime.onnx_model import OnnxModel


def model_and_export(folder, *, int8: bool = False, **settings: object) -> tuple[LatticeModel, OnnxModel]:
    model = tiny.model(config=FlatConfig(**{**SMALL, **settings}), typed=bool(settings.get("word_labels")))
    model.lexicon.add("轩辕", "澜沧江", "轩辕澜沧江渊瀚海说话")  # spans of many lengths, nested
    if model.config.reads_word_labels:
        with torch.no_grad():
            model.tagger.encoder.word_labels.weight[1:].normal_()
        model.lexicon.add("澜沧江", label="LOC")
        model.lexicon.add("说话", "轩辕", label="STAR")
    export_onnx(model, folder / "exported", int8=int8)
    return model, OnnxModel.load(folder / "exported")


def differences(model: LatticeModel, exported: OnnxModel, texts: list[str]) -> tuple[float, float]:
    """Largest differences of emissions and of attention, padding left out."""
    lattices = model.lattices(texts)
    (emissions, attention), (got_emissions, got_attention) = model.read_words(lattices), exported.read_words(lattices)
    assert got_emissions.shape == emissions.shape and got_attention.shape[:2] == attention.shape[:2]
    assert got_emissions.dtype == got_attention.dtype == np.float32
    largest = [0.0, 0.0]
    for row, lattice in enumerate(lattices):
        part = (row, slice(lattice.n_chars))
        of_words = (*part, slice(lattice.n_words))
        for k, (a, b) in enumerate(
            [(emissions[part], got_emissions[part]), (attention[of_words], got_attention[of_words])]
        ):
            largest[k] = max(largest[k], float(np.abs(a - b).max(initial=0)))
    return largest[0], largest[1]


@pytest.mark.parametrize("settings", VARIANTS.values(), ids=VARIANTS.keys())
def test_the_graph_computes_what_the_model_does(tmp_path, settings):
    model, exported = model_and_export(tmp_path, **settings)
    for texts in (TEXTS, TEXTS[:1], TEXTS[1:2], TEXTS[3:4], TEXTS[:1] * 3):
        emissions, attention = differences(model, exported, texts)
        assert emissions < 2e-5 and attention < 1e-5
    np.testing.assert_array_equal(
        exported.emissions(model.lattices(TEXTS)), exported.read_words(model.lattices(TEXTS))[0]
    )


def test_only_a_graph_that_reads_labels_asks_for_them(tmp_path):
    for name, settings in (("plain", {}), ("typed", {"word_labels": True})):
        _, exported = model_and_export(tmp_path / name, **settings)
        assert ("word_labels" in {x.name for x in exported.session.get_inputs()}) == bool(settings)
        assert ("B-*" in exported.tags) == bool(settings) and exported.labels == tiny.LABELS
        assert exported.vocabulary.word_labels == (tuple(tiny.LABELS) if settings else ())


def test_words_are_cut_off_only_before_a_layer_that_reads_them(tmp_path):
    def n_cuts(**settings: object) -> int:
        folder = tmp_path / str(settings)
        model_and_export(folder, **settings)
        return sum(file.read_bytes().count(b"Slice") for file in (folder / "exported").glob("*.onnx"))

    alone, with_words = ([n_cuts(use_words=use, n_layers=n) for n in (1, 2)] for use in (False, True))
    assert alone[0] == alone[1] > 0, "there are no words to cut off"
    assert with_words[1] > with_words[0]
