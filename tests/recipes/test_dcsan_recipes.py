"""The rows of DCSAN's Table 3 as recipes: each removes what its row says and nothing else."""

from __future__ import annotations

from dataclasses import asdict, replace

import pytest

from cige.training.recipe import load_recipe

ROWS = {
    "no_cross_attention": {"cross_attention": False},
    "no_gate": {"fusion": "sum"},
    "no_self_attention": {"self_attention": False},
    "no_attention": {"use_words": False, "self_attention": False},
}


@pytest.mark.parametrize("row", ROWS)
def test_a_row_differs_from_dcsan_in_what_it_removes(row):
    full, less = load_recipe("ecommerce/dcsan"), load_recipe(f"ecommerce/dcsan_{row}")
    assert replace(less, name=full.name, model=full.model) == full
    settings = asdict(full.model)
    assert {k: v for k, v in asdict(less.model).items() if v != settings[k]} == ROWS[row]


def test_the_first_row_has_a_bert_of_its_width():
    model = load_recipe("ecommerce/dcsan_bert").model
    assert model.bert and (model.width, model.n_cross_heads, model.n_self_heads, model.n_layers) == (768, 8, 4, 2)
    assert load_recipe("ecommerce/dcsan").model.bert is None
