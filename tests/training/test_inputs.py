"""Which files a run reads besides its sentences, and whether they have changed."""

from __future__ import annotations

from pathlib import Path

import tiny

from cige.folders.manifest import entry_of
from cige.training.inputs import changed_inputs, inputs_of
from cige.training.recipe import load_recipe


def test_a_bert_in_the_folder_of_a_run_is_its_model(tmp_path: Path) -> None:
    run = tmp_path / "run"
    tiny.model().save(run / "model")
    recipe = load_recipe("weibo/bert_flat", [f"model.bert={run}"])
    before = inputs_of(recipe, tmp_path)
    assert before["model.bert"] == entry_of(run / "model")
    (run / "scores.json").write_text("{}", encoding="utf-8")  # as `cige compare` does later
    assert changed_inputs(before, recipe, tmp_path) == []
    tiny.model(seed=2).save(run / "model")
    assert changed_inputs(before, recipe, tmp_path) == [f"model.bert ({run / 'model'})"]
