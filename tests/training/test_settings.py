"""Every setting of every recipe: a silly value is refused with its name when the recipe is read, or it trains."""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import deepcopy
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import tiny
import tiny_bert
import tiny_run
import torch
from invalid_settings import IN_EPOCHS, silly_values

from cige.data.mentions import MentionRegime
from cige.data.user_words import UserWordRegime
from cige.errors import RecipeError
from cige.models.registry import ARCHITECTURES, architecture
from cige.nn.bert import BertFeatures
from cige.training.recipe import DataConfig, Recipe, TaggerOptimizerConfig, recipe_from_dict
from cige.training.train import train

MODELS = sorted(ARCHITECTURES)


SMALL: dict[str, dict[str, Any]] = {
    "flat": {"n_heads": 1, "head_width": 8, "ff_width": 16},
    "soft_lexicon": {"lstm_width": 8},
    "dcsan": {"width": 16, "n_cross_heads": 2, "n_self_heads": 2, "ff_width": 16},
    "cgn": {"lstm_width": 8, "head_width": 6, "graph_width": 8},
    "bert_crf": {"bert": "given", "hidden_widths": [8]},
    "lebert": {"bert": "given"},
    "bilstm_crf": {"lstm_width": 8},
    "lattice_lstm": {"lstm_width": 8},
    "lgn": {"width": 12, "n_steps": 2, "n_heads": 2, "head_width": 6, "place_width": 4},
    "lr_cnn": {"width": 8, "position_width": 6},
    "multi_digraph": {"state_width": 12, "lstm_width": 16, "n_layers": 1},
    "plt": {"n_heads": 2, "head_width": 8, "ff_width": 16, "n_layers": 1, "gru_width": 16},
    "nflat": {"n_heads": 2, "head_width": 8, "n_self_heads": 2, "ff_width": 16},
    "tener": {"n_heads": 2, "head_width": 8, "ff_width": 16},
}
TEXTS = ["李明在北京市长江大桥。", "重庆人和药店", "好", "今天天气很好的中国银行经理请了欧阳修南京市长江大桥说话"]


def recipe_of(name: str, **model: Any) -> Recipe:
    return recipe_from_dict(
        {"name": "silly", "data": {"dataset": "weibo"}, "architecture": name, "model": SMALL[name] | model}
    )


@pytest.fixture(scope="module")
def bert_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bert")
    tiny_bert.write_bert(folder, n_layers=3)
    return folder


@pytest.fixture(scope="module")
def read_bert(bert_folder: Path) -> Callable[[bool], BertFeatures]:
    """The BERT in `bert_folder`, tuned or not, for each caller anew."""
    read = cache(lambda tuned: BertFeatures.load(bert_folder, tuned=tuned))
    return lambda tuned: deepcopy(read(tuned))


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [(name, *silly) for name in MODELS for silly in silly_values(architecture(name).config_class())],
)
def test_settings_of_models(name: str, key: str, value: Any, read_bert: Callable[[bool], BertFeatures]) -> None:
    try:
        config = recipe_of(name, **{key: value}).model
    except RecipeError as error:
        assert f"model.{key}" in str(error)
        return
    features = None if config.bert is None else read_bert(config.bert_tuned)
    model = tiny.model(config=config, architecture=name, features=features)
    model.tagger.train()
    batch, lattices = model.encode(TEXTS)
    loss = model.tagger.loss(replace(batch, tags=torch.zeros_like(batch.chars)))
    loss.backward()
    assert loss.isfinite()
    assert all(p.grad.isfinite().all() for p in model.tagger.parameters() if p.grad is not None)
    assert torch.from_numpy(model.emissions(lattices)).isfinite().all()


def test_the_sinusoid_of_an_odd_width_is_refused() -> None:
    for settings in ({"n_heads": 3, "head_width": 5}, {"n_heads": 1, "head_width": 1}):
        with pytest.raises(RecipeError, match=r"model.n_heads is .* model.head_width .*expected an even product"):
            recipe_of("flat", **settings)
    assert recipe_of("flat", n_heads=2, head_width=5).model.width == 10


SECTIONS = IN_EPOCHS | {
    "optimizer": TaggerOptimizerConfig,
    "data": DataConfig,
    "user_words": UserWordRegime,
    "mentions": MentionRegime,
}


@pytest.mark.parametrize(
    ("section", "key", "value"), [(part, *silly) for part, kind in SECTIONS.items() for silly in silly_values(kind)]
)
def test_settings_of_training(section: str, key: str, value: Any, data_dir: Path, tmp_path: Path) -> None:
    known = asdict(tiny_run.tiny_recipe(n_epochs=1))
    known["data"]["n_train"] = 12
    known["model"] = SMALL["flat"]
    known[section][key] = value
    try:
        recipe = recipe_from_dict(known)
    except RecipeError as error:
        assert key in str(error)
        return
    try:
        result = train(recipe, tmp_path, seed=1, data_dir=data_dir, device="cpu", show_progress=False)
    except RecipeError as error:  # what only the data shows: three training sentences with no entity in them, say
        assert section == "data" and str(error)
        return
    assert all(math.isfinite(record.train["loss"]) for record in result.history)
