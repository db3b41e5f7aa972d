"""The ONNX graph of FLAT against the PyTorch model, in every form that its settings give it."""

from __future__ import annotations

import numpy as np
import pytest
import tiny

from cige.models.flat import RELEASED, FlatConfig
from cige.models.model import LatticeModel
from cige.runtime.export import export_onnx
from cige.runtime.onnx_model import OnnxModel

SMALL = {"n_heads": 4, "head_width": 8, "ff_width": 24}
VARIANTS: dict[str, dict] = {
    "paper": {},
    "released": RELEASED,
    "released, offset": RELEASED | {"position_offset": 30},
    "two layers": {"n_layers": 2},
    "three released layers": RELEASED | {"n_layers": 3},
    "no words": {"use_words": False},
    "no words, two layers": {"use_words": False, "n_layers": 2},
    "heads alone": {"distances": ("hh",)},
    "tails alone": {"distances": ("tt",)},
    "other order": {"distances": ("tt", "ht", "hh", "th")},
    "hidden matches": {"mask_self_matched": True},
    "hidden matches, two layers": {"mask_self_matched": True, "n_layers": 2},
    "near nodes": {"max_distance": 2},
    "near nodes, two layers": {"max_distance": 1, "n_layers": 2, "mask_self_matched": True},
    "near characters": {"max_distance": 1, "use_words": False},
    "nothing to see": {"max_distance": -1, "use_words": False},  # recipes refuse it; all forms read zeros
    "words that see words alone": {"max_distance": -2, "n_layers": 2},
    "nothing to see, biased": {"max_distance": -1, "use_words": False, "position_score": "bias"},
    "bias": {"position_score": "bias"},
    "bias, two layers": {"position_score": "bias", "n_layers": 2, "fusion_bias": True},
    "bias, no words": {"position_score": "bias", "use_words": False},
    "composed bigrams": {"bigram_backoff": True},
    "no bigrams": {"use_bigrams": False},
    "characters as words": {"char_words": True},
}
TEXTS = [
    "李明在南京市长江大桥。",
    "",
    "重庆人和药店",
    "好",
    "今天天气很好的中国银行经理请了轩辕澜沧江渊瀚海说话，龘清华大学",
]


def model_and_export(folder, *, int8: bool = False, **settings: object) -> tuple[LatticeModel, OnnxModel]:
    model = tiny.model(config=FlatConfig(**{**SMALL, **settings}))
    model.lexicon.add("轩辕", "澜沧江", "轩辕澜沧江渊瀚海说话")  # spans of many lengths, nested
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
