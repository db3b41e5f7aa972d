"""Recipes that train in a second or two on the data of tiny_corpus."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from cige.lattice_bert.pretraining.recipe import PretrainRecipe, load_pretrain_recipe

TEXT = """
name: tiny-pretraining
model: {n_layers: 2, n_heads: 2, width: 16, embedding_width: 8, position_width: 4, max_positions: 96,
        dropout_prob: 0.1, attention_dropout_prob: 0.1}
short: {n_steps: 8, n_characters: 48, max_tokens: 65, batch_size: 8, micro_batch_size: 3}
long: {n_steps: 4, n_characters: 96, max_tokens: 130, batch_size: 4, micro_batch_size: 2}
optimizer: {learning_rate: 1.0e-2}
schedule: {warmup: 3 steps}
training: {log_every: 2 steps, eval_every: 4 steps, n_eval_instances: 10}
checkpoints: {every: 3 steps, keep: 2}
"""
SEED = 3


def recipe(folder: Path, **overrides: Any) -> PretrainRecipe:
    """The recipe above with `overrides`, keys such as "short.n_steps"."""
    path = folder / f"tiny-{os.getpid()}.yaml"  # processes that share a run each write their own
    path.write_text(TEXT, encoding="utf-8")
    return load_pretrain_recipe(path, [f"{key}={value}" for key, value in overrides.items()])
