"""Every recipe of pre-training trains: two steps of what it says, in a network of one narrow layer."""

from __future__ import annotations

from pathlib import Path

import pytest

from cige.errors import RecipeError
from cige.lattice_bert.encoder.pretrained import PretrainedLatticeBert
from cige.lattice_bert.kinds import PRETRAIN
from cige.lattice_bert.pretraining.pretrain import pretrain
from cige.lattice_bert.pretraining.recipe import load_pretrain_recipe
from cige.recipes.shipped import shipped

NAMES = [name for name, one in shipped().items() if one.kind == PRETRAIN]
SMALL = [
    "model.n_layers=1",
    "model.n_heads=2",
    "model.width=8",
    "model.position_width=2",
    "schedule.warmup=1 steps",
    "training.n_eval_instances=2",
    "training.n_workers=0",
]


@pytest.mark.parametrize("name", NAMES)
def test_two_steps(name: str, data_folder: Path, tmp_path: Path, one_thread):
    full = load_pretrain_recipe(name)
    steps = [f"{phase}.n_steps={min(n, 1 if full.long.n_steps else 2)}" for phase, n in phases(full).items()]
    sizes = [f"{phase}.{size}=2" for phase in phases(full) for size in ("batch_size", "micro_batch_size")]
    width = [] if full.model.embedding_width is None else ["model.embedding_width=4"]
    recipe = load_pretrain_recipe(name, [*SMALL, *steps, *sizes, *width])
    result = pretrain(recipe, data_folder, tmp_path / "run", device="cpu", show_progress=False)
    assert result is not None and result.n_steps == 2
    assert all(record.train["mlm_loss"] > 0 for record in result.logs)
    trained = PretrainedLatticeBert.from_pretrained(result.model)
    assert bool(trained.vocabulary.n_words) == full.instances.use_words
    assert trained.config.relations == full.model.relations and trained.config.distances == full.model.distances


def phases(recipe) -> dict[str, int]:
    return {"short": recipe.short.n_steps, "long": recipe.long.n_steps}


def test_a_size_of_another_type_is_refused():
    with pytest.raises(RecipeError, match=r"size"):
        load_pretrain_recipe("pretrain/tiny", {"size": ["tiny"]})


@pytest.mark.parametrize("overrides", [["model.n_tokens=500"], {"model": {"n_tokens": 500}}])
def test_the_size_of_the_vocabulary_is_not_taken_from_an_override(overrides):
    with pytest.raises(RecipeError, match=r"model\.n_tokens: this is always the size of the data's vocabulary"):
        load_pretrain_recipe("pretrain/tiny", overrides)
