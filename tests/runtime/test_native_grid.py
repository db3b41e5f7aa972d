"""Models of nested entities without PyTorch: their scores are those of GridModel, whatever computes them."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

import crafted_folders as crafted
import numpy as np
import pytest
import tiny
import tiny_grid
import torch
from runtime_forms import FORMS

import cige
from cige.api import NER
from cige.cli import main
from cige.errors import ModelError
from cige.lattice.lattice import build_lattice
from cige.models.bilstm_crf import BiLstmCrfConfig
from cige.models.model import GridModel
from cige.models.pair_grid_config import PairGridConfig
from cige.models.soft_lexicon import SoftLexiconConfig
from cige.nn.pair_grid import PointerGrid
from cige.runtime.native_grid import NativeGridModel
from cige.runtime.span_scores import SpanScores

TEXTS = ["南京市长江大桥", "", "王小明在北京大学", "李" * 70 + "明在南京", "人"]
HEADS = [PairGridConfig(max_length=6, head_width=8), PairGridConfig(max_length=70, head_width=4, efficient=True)]
ENCODERS = [("flat", tiny.CONFIG), ("soft_lexicon", SoftLexiconConfig(lstm_width=16))]


@pytest.mark.parametrize("head", HEADS, ids=["spans", "efficient"])
@pytest.mark.parametrize(("architecture", "config"), ENCODERS, ids=[name for name, _ in ENCODERS])
def test_scores_and_entities_are_those_of_pytorch(tmp_path, architecture, config, head):
    made = tiny_grid.model(architecture=architecture, config=config, head=head)
    made.lexicon.add("阿拉善")
    made.save(tmp_path / "model")
    lattices = [build_lattice(text, made.lexicon.snapshot()) for text in [*TEXTS, "他在阿拉善"]]
    expected = made.emissions(lattices)
    for form in FORMS:
        read = NativeGridModel.load(tmp_path / "model", kernels=form)
        scores = read.emissions(lattices)
        assert scores.shape == expected.shape
        for own, other, lattice in zip(scores, expected, lattices, strict=True):
            lengths = np.arange(1, head.max_length + 1)
            inside = np.arange(scores.shape[1])[:, None] + lengths <= lattice.n_chars
            assert not inside.any() or np.abs(own - other)[inside].max() < 1e-5
        assert_alike(NER(read)(TEXTS), NER(made)(TEXTS))


def assert_alike(given, expected) -> None:
    """Whether the entities of texts are the same, up to rounding: a score just above 0.5 may be just below it."""
    for own, other in zip(given, expected, strict=True):
        scores, others = ({(e.start, e.end, e.label): e.score for e in of_text} for of_text in (own, other))
        for key in scores.keys() | others.keys():
            assert scores.get(key, 0.5) == pytest.approx(others.get(key, 0.5), abs=1e-5), key


@pytest.mark.parametrize("efficient", [False, True])
@pytest.mark.parametrize(("n_chars", "band"), [([1], 1), ([3, 0, 9], 5), ([200, 130, 64], 9), ([65], 80)])
def test_products_of_blocks_are_those_of_the_layer(efficient, n_chars, band):
    torch.manual_seed(0)
    layer = PointerGrid(in_width=6, n_types=3, head_width=8, efficient=efficient)
    features = torch.randn(len(n_chars), max(n_chars), 6)
    with torch.no_grad():
        expected = layer(features, band).numpy()
    config = PairGridConfig(max_length=band, head_width=8, efficient=efficient)
    weights = {f"output.{name}": x.numpy() for name, x in layer.state_dict().items()}
    of_layer = SpanScores.output_layer(config, weights)
    chars = np.concatenate([x[:n] for x, n in zip(features.numpy(), n_chars, strict=True)])
    rows = chars @ of_layer["output.weight"].T + of_layer["output.bias"]
    scores = SpanScores(config, weights, 3)(rows, np.array(n_chars))
    assert scores.shape == expected.shape
    for own, other, n in zip(scores, expected, n_chars, strict=True):
        for more in range(band):
            np.testing.assert_allclose(own[: max(0, n - more), more], other[: max(0, n - more), more], atol=1e-5)


def test_load_needs_no_pytorch_and_copies_are_alike(tmp_path):
    made = tiny_grid.model()
    made.save(tmp_path / "model")
    ner = cige.load(tmp_path / "model", precision="float32", n_threads=2)
    assert isinstance(ner.model, NativeGridModel) and ner.model.precision == "float32" and ner.label_facts.nested
    ner.lexicon.add("阿拉善", label="LOC")
    texts = ["他在阿拉善", *TEXTS]
    copy = pickle.loads(pickle.dumps(ner))
    assert copy.model.n_threads == 2 and copy(texts) == ner(texts)
    ner.model.save(tmp_path / "copy")
    assert cige.load(tmp_path / "copy", precision="float32")(texts) == ner(texts)
    in_torch = ner.model.in_torch()
    assert isinstance(in_torch, GridModel)
    assert_alike(NER(in_torch)(texts), ner(texts))
    assert isinstance(cige.load(tmp_path / "model", backend="torch").model, GridModel)


def test_rules_and_explanations(tmp_path):
    tiny_grid.model().save(tmp_path / "model")
    ner = cige.load(tmp_path / "model")
    text = "王小明在北京大学"
    forced = ner(text, words=[cige.UserWord("小明在", "PRODUCT", "force")])
    assert (1, 4, "PRODUCT", True) in [(e.start, e.end, e.label, e.forced) for e in forced]
    blocked = ner(text, words=[cige.UserWord("北京", None, "block_exact")])
    assert (4, 6) not in [(e.start, e.end) for e in blocked]
    assert [evidence.entity for evidence in ner.explain(text).entities] == list(ner(text))
    shown = ner.model.read_words([build_lattice(text, ner.lexicon.snapshot())])
    np.testing.assert_allclose(shown[0], ner.model.emissions([build_lattice(text, ner.lexicon.snapshot())]), atol=1e-6)


def test_the_precision_is_that_of_other_models(tmp_path):
    tiny_grid.model().save(tmp_path / "model")
    tiny.model().save(tmp_path / "flat")
    assert cige.load(tmp_path / "model").model.precision == cige.load(tmp_path / "flat").model.precision
    exact = cige.load(tmp_path / "model", precision="float32")
    for precision in ("bfloat16", "int16", "int8"):
        try:
            narrow = cige.load(tmp_path / "model", precision=precision)
        except ModelError as error:
            assert "precision" in str(error)
            continue
        lattices = [build_lattice(TEXTS[0], exact.lexicon.snapshot())]
        difference = np.abs(narrow.model.emissions(lattices) - exact.model.emissions(lattices)).max()
        assert narrow.model.precision == precision and 0 < difference < 0.3


def test_what_the_runtime_does_not_compute(tmp_path):
    tiny_grid.model(head=PairGridConfig(scores="relations", max_length=6, pair_width=8, biaffine_width=8)).save(
        tmp_path / "relations"
    )
    tiny_grid.model(architecture="bilstm_crf", config=BiLstmCrfConfig(lstm_width=16)).save(tmp_path / "other")
    for name, reason in (("relations", "whose head scores relations needs PyTorch"), ("other", "'bilstm_crf' needs")):
        assert isinstance(cige.load(tmp_path / name).model, GridModel)
        with pytest.raises(ModelError, match=reason):
            cige.load(tmp_path / name, backend="native")
        with pytest.raises(ModelError, match="n_threads=2; PyTorch computes this model"):
            cige.load(tmp_path / name, n_threads=2)


@pytest.mark.parametrize(
    "change",
    [
        crafted.more_rows("output.pairs.weight", 49),
        crafted.more_columns("output.pairs.weight", 9),
        crafted.without("output.pairs.bias"),
        crafted.also("output.weight", (3, 3)),
        crafted.of_type("output.pairs.bias", np.float64),
        crafted.value("output.pairs.bias", np.nan),
    ],
)
def test_a_head_that_does_not_fit_is_refused(tmp_path: Path, change):
    tiny_grid.model().save(tmp_path / "model")
    crafted.rewrite(tmp_path / "model", "model.safetensors", change)
    with pytest.raises(ModelError, match="do not fit the manifest"):
        NativeGridModel.load(tmp_path / "model")


@pytest.mark.parametrize("max_length", [None, 0, 1 << 13, "6", 6.5])
def test_a_length_that_does_not_fit_is_refused(tmp_path: Path, max_length):
    tiny_grid.model().save(tmp_path / "model")
    head = {"scores": "spans", "head_width": 8, "max_length": max_length}
    crafted.sign(tmp_path / "model", pair_grid=head)
    with pytest.raises(ModelError, match="do not fit the manifest"):
        NativeGridModel.load(tmp_path / "model")


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({"scheme": None}, "scheme is None; expected one of BMES"),
        ({"scheme": "FOO"}, "scheme is 'FOO'"),
        ({"labels": [1, 2, 3], "tags": [1, 2, 3]}, "labels is .*expected a list of strings"),
        ({"pair_grid": None}, "pair_grid is None; expected settings of"),
        ({"pair_grid": {"width": 3}}, "pair_grid is .*expected settings of"),
        ({"pair_grid": {"max_length": 6, "head_width": "8"}}, r"pair_grid\.head_width is '8'"),
    ],
)
def test_a_manifest_that_does_not_fit_is_refused_by_both_forms(tmp_path: Path, facts, reason):
    tiny_grid.model().save(tmp_path / "model")
    crafted.sign(tmp_path / "model", **facts)
    for kind in (NativeGridModel, GridModel):
        with pytest.raises(ModelError, match=f"do not fit the manifest.*{reason}"):
            kind.load(tmp_path / "model")


def test_recall_and_calibration_are_not_possible_yet(tmp_path: Path, capsys):
    tiny_grid.model().save(tmp_path / "model")
    with pytest.raises(ModelError, match="models of nested entities cannot be calibrated yet"):
        cige.load(tmp_path / "model")("李明", recall=0.9)
    (tmp_path / "dev.jsonl").write_text('{"text": "李明", "entities": []}\n', encoding="utf-8")
    assert main(["calibrate", str(tmp_path / "model"), str(tmp_path / "dev.jsonl")]) == 2
    assert "such models cannot be calibrated yet" in capsys.readouterr().err
    with pytest.raises(ModelError, match="no domain 'posts'; models of nested entities cannot be calibrated yet"):
        cige.load(tmp_path / "model", domain="posts")


@pytest.mark.parametrize("command", ["average MODEL MODEL --output OUT", "compact MODEL OUT", "export onnx MODEL OUT"])
def test_commands_refuse_nested_models_before_pytorch_is_imported(tmp_path: Path, capsys, monkeypatch, command):
    model = tmp_path / "model"
    tiny_grid.model().save(model)
    monkeypatch.setitem(sys.modules, "cige.models.model", None)
    words = command.replace("MODEL", str(model)).replace("OUT", str(tmp_path / "out")).split()
    assert main(words) == 2
    assert "it finds nested entities, and such models can be neither averaged" in capsys.readouterr().err


def test_empty_lattices_alone():
    """Of an odd number of labels, whose rows are no whole number of pairs."""
    layer = PointerGrid(in_width=6, n_types=3, head_width=8)
    weights = {f"output.{name}": x.detach().numpy() for name, x in layer.state_dict().items()}
    config = PairGridConfig(max_length=5, head_width=8)
    assert SpanScores(config, weights, 3)(np.zeros((0, 3), np.float32), np.array([0, 0])).shape == (2, 1, 5, 3)
