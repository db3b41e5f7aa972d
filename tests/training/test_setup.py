"""From a recipe to what a run starts from: gazetteers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import tiny_run

from cige.data.vocabulary import UNK
from cige.errors import RecipeError
from cige.training.recipe import LexiconConfig, load_recipe, recipe_from_dict, recipe_to_yaml
from cige.training.setup import set_up


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    folder = tiny_run.write_data_folder(tmp_path)
    (folder / "lexicon/people.txt").write_text("李明\n欧阳修\n", encoding="utf-8")
    (folder / "lexicon/places.txt").write_text("北京\n南京市\n", encoding="utf-8")
    return folder


def test_gazetteers_join_the_lexicon(data_dir):
    plain = tiny_run.tiny_recipe()
    lists = ("lexicon/people.txt", "lexicon/places.txt")
    made = set_up(replace(plain, lexicon=LexiconConfig(gazetteers=lists)), seed=1, data_dir=data_dir)
    vocabulary, lexicon = made.vocabulary, made.lexicon
    masks = dict(zip(lexicon, vocabulary.word_groups.tolist(), strict=True))
    assert vocabulary.n_groups == 3
    assert (masks["李明"], masks["北京"], masks["大桥"]) == (0b010, 0b101, 0b001)
    assert vocabulary.word_rows[lexicon.id("李明")] == UNK and vocabulary.word_rows[lexicon.id("北京")] != UNK
    (encoded,) = [vocabulary.encode(x) for x in made.train_lattices if x.text.startswith("李明在")][:1]
    assert encoded.groups[0] == 0b010

    other = set_up(replace(plain, lexicon=LexiconConfig(gazetteers=lists[::-1])), seed=1, data_dir=data_dir)
    assert other.fingerprint() != made.fingerprint()


def test_without_gazetteers_all_words_are_one_group(data_dir):
    made = set_up(tiny_run.tiny_recipe(), seed=1, data_dir=data_dir)
    assert made.vocabulary.word_groups is None and made.vocabulary.n_groups == 1
    encoded = made.vocabulary.encode(next(x for x in made.train_lattices if x.n_words))
    assert set(encoded.groups.tolist()) == {1}


def test_a_recipe_names_gazetteers(tmp_path):
    values = {"name": "x", "data": {"dataset": "ecommerce"}, "lexicon": {"gazetteers": ["a.txt", "b.txt"]}}
    recipe = recipe_from_dict(values)
    (tmp_path / "r.yaml").write_text(recipe_to_yaml(recipe), encoding="utf-8")
    assert load_recipe(tmp_path / "r.yaml") == recipe and recipe.lexicon.gazetteers == ("a.txt", "b.txt")
    with pytest.raises(RecipeError, match=r"lexicon.gazetteers has 31 lists, expected 30 or less"):
        recipe_from_dict(values | {"lexicon": {"gazetteers": ["a.txt"] * 31}})


def test_a_network_that_reads_labels_knows_those_of_the_training_sentences(data_dir):
    plain = set_up(tiny_run.tiny_recipe(), seed=1, data_dir=data_dir)
    assert plain.vocabulary.word_labels == () and "B-*" not in plain.tagger.tags
    typed = set_up(tiny_run.tiny_recipe(model__word_labels=True), seed=1, data_dir=data_dir)
    assert typed.vocabulary.word_labels == tuple(typed.labels) == ("LOC", "ORG", "PER")
    assert typed.tagger.encoder.word_labels.weight.shape[0] == 5 and typed.tagger.tags == plain.tagger.tags
    open_types = tiny_run.tiny_recipe(model__word_labels=True, user_words__unknown_label_prob=0.2)
    made = set_up(open_types, seed=1, data_dir=data_dir)
    assert made.labels == typed.labels and made.tagger.tags == [
        "O",
        *[f"{p}-*" for p in "BMES"],
        *plain.tagger.tags[1:],
    ]
