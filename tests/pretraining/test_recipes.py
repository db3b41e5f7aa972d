"""Every recipe of pre-training trains: two steps of what it says, in a network of one narrow layer."""

from __future__ import annotations

from pathlib import Path

import pytest

from cige.models.lattice_bert.pretrained import PretrainedLatticeBert
from cige.pretraining.pretrain import pretrain
from cige.pretraining.recipe import load_pretrain_recipe

RECIPES = Path(__file__).resolve().parents[2] / "recipes/pretraining"
SMALL = [
    "model.n_layers=1",
    "model.n_heads=2",
    "model.width=8",
    "model.position_width=2",
    "schedule.warmup=1 steps",
    "training.n_eval_instances=2",
    "training.n_workers=0",
]


@pytest.mark.parametrize("path", sorted(RECIPES.glob("*.yaml")), ids=lambda path: path.stem)
def test_two_steps(path: Path, data_folder: Path, tmp_path: Path, one_thread):
    full = load_pretrain_recipe(path)
    steps = [f"{name}.n_steps={min(n, 1 if full.long.n_steps else 2)}" for name, n in phases(full).items()]
    sizes = [f"{name}.{size}=2" for name in phases(full) for size in ("batch_size", "micro_batch_size")]
    width = [] if full.model.embedding_width is None else ["model.embedding_width=4"]
    recipe = load_pretrain_recipe(path, [*SMALL, *steps, *sizes, *width])
    result = pretrain(recipe, data_folder, tmp_path / "run", device="cpu", show_progress=False)
    assert result is not None and result.n_steps == 2
    assert all(record.train["mlm_loss"] > 0 for record in result.logs)
    trained = PretrainedLatticeBert.from_pretrained(result.model)
    assert bool(trained.vocabulary.n_words) == full.instances.use_words
    assert trained.config.relations == full.model.relations and trained.config.distances == full.model.distances


def phases(recipe) -> dict[str, int]:
    return {"short": recipe.short.n_steps, "long": recipe.long.n_steps}
