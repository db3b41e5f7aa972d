"""Components in the runtimes: one vector per character, equal to PyTorch's, for characters with and without a row."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import crafted_folders as crafted
import numpy as np
import pytest
import tiny
import torch
from runtime_forms import FORMS

from cige.api import load
from cige.data.vocabulary import UNK, char_codes
from cige.errors import ModelError
from cige.models.model import LatticeModel
from cige.models.soft_lexicon_config import SoftLexiconConfig
from cige.runtime.component_rows import component_vectors, with_component_rows
from cige.runtime.export import export_onnx
from cige.runtime.native_model import NativeModel
from cige.runtime.onnx_model import OnnxModel
from cige.runtime.tagger_folder import is_readable

TEXTS = ["李明在南京市长江大桥。", f"请{tiny.UNSEEN}说话", "轩A龘罕", "", "好", tiny.UNSEEN[::-1]]
CONFIGS = {
    "flat": replace(tiny.CONFIG, bigram_backoff=True, char_words=True, components=tiny.COMPONENTS),
    "soft_lexicon": SoftLexiconConfig(lstm_width=24, use_bigrams=True, components=tiny.COMPONENTS),
}


def made(architecture: str = "flat") -> LatticeModel:
    model = tiny.model(config=CONFIGS[architecture], architecture=architecture)
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in model.tagger.encoder.components.parameters():
            parameter += 0.5 * torch.randn_like(parameter)
        model.tagger.encoder.components.embedding.weight[0] = 0
    return model


def of_numpy(model: LatticeModel) -> dict[str, np.ndarray]:
    return {name: weight.numpy() for name, weight in model.weights().items()}


def largest_difference(model: LatticeModel, other: NativeModel | OnnxModel) -> float:
    largest = 0.0
    for texts in (TEXTS, TEXTS[1:2], TEXTS[2:3]):
        lattices = model.lattices(texts)
        expected, found = model.emissions(lattices), other.emissions(lattices)
        for row, lattice in enumerate(lattices):
            part = row, slice(lattice.n_chars)
            largest = max(largest, float(np.abs(expected[part] - found[part]).max(initial=0)))
    return largest


@pytest.mark.parametrize("architecture", CONFIGS)
@pytest.mark.parametrize("form", FORMS)
def test_every_form_computes_what_pytorch_does(tmp_path, architecture, form):
    model = made(architecture)
    model.save(tmp_path / "model")
    assert is_readable(tmp_path / "model")
    assert largest_difference(model, NativeModel.load(tmp_path / "model", kernels=form)) < 1e-5


def test_vectors_are_those_of_the_layer():
    model = made()
    layer, table = model.tagger.encoder.components, model.vocabulary.components
    with torch.no_grad():
        expected = layer.vectors(torch.from_numpy(table.padded(np.arange(len(table))))).numpy()
    np.testing.assert_allclose(component_vectors(table, of_numpy(model)), expected, atol=1e-6)


def test_characters_without_a_row_share_one_for_equal_components():
    model = made()
    config, weights, vocabulary = with_component_rows(model.config, of_numpy(model), model.vocabulary)
    assert config.components is None and vocabulary.components is None
    assert not any(name.startswith("encoder.components") for name in weights)
    table, old = model.vocabulary.components, model.vocabulary
    without = old.chars.look_up(table.codes) == UNK
    rows = vocabulary.chars.look_up(table.codes[without])
    assert without.sum() > 100 and rows.min() == old.n_rows[0] and rows.max() == vocabulary.n_rows[0] - 1
    sequences = table.sequences[without]
    assert len(set(zip(rows.tolist(), sequences.tolist(), strict=True))) == len(set(sequences.tolist()))
    chars, width = weights["encoder.embeddings.char.tuned"], model.widths[0]
    assert len(chars) == vocabulary.n_rows[0]
    np.testing.assert_array_equal(chars[rows, :width], np.repeat(chars[UNK : UNK + 1, :width], len(rows), 0))
    known = char_codes("李明。A")
    np.testing.assert_array_equal(vocabulary.chars.look_up(known), old.chars.look_up(known))


def test_a_model_without_components_is_not_changed():
    model = tiny.model()
    weights = of_numpy(model)
    config, same, vocabulary = with_component_rows(model.config, weights, model.vocabulary)
    assert config is model.config and vocabulary is model.vocabulary and same == weights


def test_a_saved_copy_of_the_runtime_reads_alike(tmp_path):
    made().save(tmp_path / "model")
    ner = load(tmp_path / "model")
    assert isinstance(ner.model, NativeModel)
    ner.lexicon.add("轩辕")
    ner.model.save(tmp_path / "copy")
    again = load(tmp_path / "copy")
    lattices = [ner.model.in_torch().lattices([text])[0] for text in TEXTS]
    np.testing.assert_array_equal(again.model.emissions(lattices), ner.model.emissions(lattices))
    exact = NativeModel.load(tmp_path / "copy")  # in float32
    assert largest_difference(LatticeModel.load(tmp_path / "copy"), exact) < 1e-5


@pytest.mark.parametrize("int8", [False, True])
def test_an_exported_graph_reads_alike(tmp_path, int8):
    pytest.importorskip("onnxruntime")
    model = made()
    export_onnx(model, tmp_path / "onnx", int8=int8)
    assert largest_difference(model, OnnxModel.load(tmp_path / "onnx")) < (0.3 if int8 else 1e-4)


WEIGHTS = {
    "no components": crafted.without("encoder.components.embedding.weight"),
    "few components": crafted.more_rows("encoder.components.embedding.weight", 3),
    "wide result": crafted.more_rows("encoder.components.output.weight", 64),
    "not a number": crafted.value("encoder.components.output.bias", float("nan")),
}
VOCABULARY = {
    "no sequences": crafted.without("components.sequences"),
    "huge sequence": crafted.value("components.sequences", 2**31 - 1),
    "negative component": crafted.value("components.parts", -1),
    "huge component": crafted.value("components.parts", 2**30),
    "endless sequence": crafted.value("components.ends", 2**31 - 1),
    "codes in 32 bits": crafted.of_type("components.codes", np.int32),
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole") / "model"
    made().save(folder)
    return folder


@pytest.mark.parametrize("kind", [NativeModel, LatticeModel])
@pytest.mark.parametrize("name", [*WEIGHTS, *VOCABULARY, "count", "width", "none"])
def test_a_folder_whose_arrays_do_not_fit_is_refused(whole, tmp_path, kind, name):
    folder = Path(shutil.copytree(whole, tmp_path / "model"))
    if name in WEIGHTS:
        crafted.rewrite(folder, "model.safetensors", WEIGHTS[name])
    elif name in VOCABULARY:
        crafted.rewrite(folder, "vocabulary.safetensors", VOCABULARY[name])
    else:
        config = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["config"]
        changed = {"width": config["components"] | {"width": 1 << 30}, "none": None}.get(name, config["components"])
        crafted.sign(
            folder, config=config | {"components": changed}, **({"n_components": -1} if name == "count" else {})
        )
    with pytest.raises(ModelError, match="do not fit the manifest"):
        kind.load(folder)
