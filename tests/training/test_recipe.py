"""Recipes: what is written is what is trained, and a slip of the pen is an error with a hint."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from cige.engine import settings
from cige.errors import RecipeError
from cige.recipes.shipped import NAMES, STUDENT
from cige.training.recipe import Recipe, VectorsConfig, load_recipe, recipe_from_dict, recipe_to_yaml

MINIMAL = "name: x\ndata: {dataset: weibo}\n"


def write(folder: Path, text: str, name: str = "r.yaml") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_values_lists_and_numbers(tmp_path: Path) -> None:
    text = "model: {distances: [hh, tt], max_distance: 10}\noptimizer: {learning_rate: 1e-3}\n"
    text += "schedule: {warmup: 2 epochs}\n"
    recipe = load_recipe(write(tmp_path, MINIMAL + text))
    assert recipe.model.distances == ("hh", "tt") and recipe.model.max_distance == 10
    assert recipe.optimizer.learning_rate == 0.001  # YAML 1.1 reads 1e-3 as a text
    assert recipe.schedule.warmup == "2 epochs"
    assert recipe.optimizer.clip_norm == 5.0  # what a section leaves out keeps the recipe's default


def test_name_defaults_to_the_file_name(tmp_path: Path) -> None:
    assert load_recipe(write(tmp_path, "data: {dataset: weibo}", "mine.yaml")).name == "mine"


def test_yaml_round_trip(tmp_path: Path) -> None:
    changes = ["training.n_epochs=3", "model.distances=[hh]", "lexicon.path=词.txt"]
    recipe = load_recipe(write(tmp_path, MINIMAL), changes)
    assert load_recipe(write(tmp_path, recipe_to_yaml(recipe), "again.yaml")) == recipe


def test_a_start_has_words_and_vectors_of_its_own(tmp_path: Path) -> None:
    write(
        tmp_path, "name: base\ndata: {dataset: weibo}\nvectors: {length: unit}\ntraining: {n_epochs: 4}\n", "base.yaml"
    )
    recipe = load_recipe(write(tmp_path, "extends: base.yaml\nstart_from: bundled\n", "leaf.yaml"))
    assert recipe.vectors == VectorsConfig() and recipe.training.n_epochs == 4
    both = "extends: base.yaml\nstart_from: bundled\nvectors: {length: unit}\n"
    with pytest.raises(RecipeError, match="vectors is given, but words and vectors are those of start_from"):
        load_recipe(write(tmp_path, both, "both.yaml"))


@pytest.mark.parametrize("name", [NAMES, STUDENT])
def test_the_recipes_of_the_bundled_model_resolve(name: str) -> None:
    recipe = load_recipe(name)
    assert recipe.data.coarse == ("PER", "LOC", "ORG", "TIME") and set(recipe.data.silent) <= set(recipe.data.labels)


def test_extends_merges_and_the_child_wins(tmp_path: Path) -> None:
    write(tmp_path, MINIMAL + "training: {n_epochs: 3}\nbatches: {batch_size: 4}\n", "base.yaml")
    write(tmp_path, "extends: ../base.yaml\ntraining: {n_epochs: 5}\n", "sub/middle.yaml")
    recipe = load_recipe(write(tmp_path, "extends: middle.yaml\nname: leaf\n", "sub/leaf.yaml"))
    assert (recipe.name, recipe.training.n_epochs, recipe.batches.batch_size) == ("leaf", 5, 4)


TWO_EPOCHS = ({"training.n_epochs": 2}, {"training": {"n_epochs": 2}}, ["training.n_epochs=2"])


@pytest.mark.parametrize("overrides", TWO_EPOCHS)
def test_overrides_win(tmp_path: Path, overrides: object) -> None:
    path = write(tmp_path, MINIMAL + "training: {n_epochs: 9}\n")
    assert load_recipe(path, overrides).training.n_epochs == 2  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (MINIMAL + "training:\n  n_epoch: 3\n", r"r.yaml:4: unknown key 'training.n_epoch'; .* 'training.n_epochs'"),
        (MINIMAL + "trainning: {}\n", r"r.yaml:3: unknown key 'trainning'; did you mean 'training'"),
        (MINIMAL + "zzz: 1\n", r"unknown key 'zzz'; known keys: name, data"),
        (MINIMAL + "training: {n_epochs: many}\n", r"r.yaml:3: training.n_epochs is 'many' \(str\), expected a whole"),
        (MINIMAL + "training: {n_epochs: 2.5}\n", r"training.n_epochs is 2.5 \(float\), expected a whole number"),
        (MINIMAL + "training: {n_epochs: true}\n", r"training.n_epochs is True \(bool\)"),
        (MINIMAL + "training: {n_epochs: null}\n", r"training.n_epochs is None"),
        (MINIMAL + "optimizer: {learning_rate: fast}\n", r"learning_rate is 'fast' \(str\), expected a number"),
        (MINIMAL + "optimizer: {name: adam}\n", r"expected one of 'adamw', 'sgd'"),
        (MINIMAL + "optimizer: {clip_norm: x}\n", r"expected a number or null"),
        (MINIMAL + "training: 3\n", r"training is 3 \(int\), expected a mapping with the keys n_epochs"),
        (MINIMAL + "model: {distances: hh}\n", r"model.distances is 'hh' \(str\), expected a list"),
        (MINIMAL + "model: {use_words: 1}\n", r"model.use_words is 1 \(int\), expected true or false"),
        (MINIMAL + "name: y\n", r"r.yaml:3: key 'name' is given twice, first at .*r.yaml:1"),
        ("name: x\n", r"key 'data' is missing"),
        ("- 1\n", r"a recipe is a mapping"),
        (MINIMAL + "model: {a: 1\nbatches: 3\n", r"r.yaml:4: not valid YAML: while .* \(line 3\), .*, but got ':'$"),
        (MINIMAL + "model: 'a\n", r"r.yaml:4: not valid YAML: while scanning a quoted scalar \(line 3\), [^\n]*$"),
        (MINIMAL + "model: a: b\n", r"r.yaml:3: not valid YAML: mapping values are not allowed here$"),
        (MINIMAL + "model: \x01\n", r"r.yaml:3: not valid YAML: unacceptable character #x0001: [^\n]*$"),
        (MINIMAL + "model: !a b\n", r"r.yaml:3: not a value of YAML: could not determine a constructor [^\n]*$"),
        (MINIMAL + "model: 2020-13-45\n", r"r.yaml:3: not a value of YAML: month must be in 1..12$"),
        (MINIMAL + "training: {n_epochs: !!bool x}\n", r"r.yaml:3: not a value of YAML: 'x' is no value of !!bool$"),
        (MINIMAL + "training: {n_epochs: !!timestamp x}\n", r"r.yaml:3: not a value of YAML: 'x' is no value of !!"),
        (MINIMAL + 'training: {n_epochs: !!int ""}\n', r"r.yaml:3: not a value of YAML: '' is no value of !!int$"),
        (MINIMAL + 'model: {a: [!!float ""]}\n', r"r.yaml:3: not a value of YAML: '' is no value of !!float$"),
        (MINIMAL + f"model: {'9:' * 200}9.5\n", r"r.yaml:3: not a value of YAML: '9:.*' is no value of !!float$"),
        ("name: x\nmodel: &m {n_heads: *m}\n", r"r.yaml:2: not valid YAML: a value contains itself$"),
        ("name: x\nmodel: &m [*m]\n", r"r.yaml:2: not valid YAML: a value contains itself$"),
        ("name: x\nmodel: &m {<<: *m}\n", r"r.yaml:2: not valid YAML: a value contains itself$"),
        ("name: x\nmodel: {? &m [*m] : 1}\n", r"r.yaml:2: not valid YAML: a value contains itself$"),
        ("".join(f"{' ' * i}a:\n" for i in range(3000)), r"r.yaml:101: not valid YAML: more than 100 levels of lists"),
        ("[" * 3000, r"r.yaml:1: not valid YAML: more than 100 levels"),
        ("\n" + "- " * 200_000, r"r.yaml:2: not valid YAML: more than 100 levels"),
        ("a: &a " + "[" * 60 + "]" * 60 + "\nb: " + "[" * 60 + "*a" + "]" * 60, r"r.yaml:2: .* more than 100 levels"),
        ("name: x\ndata: {}\n", r"give one of data.dataset, data.train"),
        ("name: x\ndata: {dataset: weibo, train: t}\n", r"give one of data.dataset, data.train"),
        ("name: x\ndata: {train: t.bmes}\n", r"data.dev is missing"),
        (MINIMAL + "training: {n_epochs: 0}\n", r"n_epochs is 0, expected at least 1"),
        (MINIMAL + "schedule: {warmup: 2000}\n", r'schedule.warmup is 2000, expected .* such as "2000 steps"'),
        (MINIMAL + "schedule: {warmup: 20 epochs}\n", r"schedule.warmup is '20 epochs', expected at most 14 epochs"),
        (MINIMAL + "training: {eval_start_epoch: 15}\n", r"eval_start_epoch is 15, expected at most 14"),
        (MINIMAL + "training: {average_weights: 1.0}\n", r"average_weights is 1.0, expected less than 1"),
        (MINIMAL + "optimizer: {learning_rate: 0}\n", r"r.yaml:3: optimizer.learning_rate is 0.0, expected more"),
        (MINIMAL + "data: {dataset: weibo, n_train: 0}\n", r"given twice"),
        (MINIMAL + "model: {embed_dropout_prob: 1.0}\n", r"model.embed_dropout_prob is 1.0, expected less than 1"),
        (MINIMAL + "user_words: {unknown_prob: -0.1}\n", r"user_words.unknown_prob is -0.1, expected at least 0"),
        (MINIMAL + "model: {distances: [hh, tx]}\n", r"expected some of hh, th, ht, tt"),
        (MINIMAL + "model: {distances: []}\n", r"model.distances is \[\]"),
        (MINIMAL + "user_words: {label_prob: 0.5}\n", r"user_words.label_prob is 0.5, .*set model.word_labels to true"),
        (
            MINIMAL + "model: {word_labels: true, use_words: false}\nuser_words: {unknown_label_prob: 0.1}\n",
            r"user_words.unknown_label_prob is 0.1, but the network ignores labels",
        ),
        (MINIMAL + "architecture: dcsan\nmodel: {word_labels: true}\n", r"unknown key 'model.word_labels'"),
        ("extends: nowhere.yaml\n", r"nowhere.yaml: no such recipe \(extended by"),
        ("extends: r.yaml\n", r"extends itself"),
        ("extends: 3\n", r"extends is 3"),
    ],
)  # fmt: skip
def test_mistakes_are_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        load_recipe(write(tmp_path, text))


def test_a_mistake_in_an_extended_file_names_that_file(tmp_path: Path) -> None:
    write(tmp_path, MINIMAL + "model: {n_headz: 3}\n", "base.yaml")
    with pytest.raises(RecipeError, match=r"base.yaml:3: unknown key 'model.n_headz'; did you mean 'model.n_heads'"):
        load_recipe(write(tmp_path, "extends: base.yaml\n"))


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("training.n_epoch=2", r"override training.n_epoch: unknown key .* did you mean 'training.n_epochs'"),
        ("training.n_epochs", r"expected key=value"),
        ("name.x=2", r"'name' is a single value"),
        ("training.n_epochs=[", r"not valid YAML \([^\n]*\)$"),
        ("name=2020-13-45", r"not valid YAML \(month must be"),
        ("model=&m {n_heads: *m}", r"^override 'model=.*': the value is not valid YAML \(a value contains itself\)$"),
        ("model=" + "[" * 3000, r"^override 'model=.*': the value is not valid YAML \(more than 100 levels"),
        ("model=" + "{a: " * 3000 + "}" * 3000, r"the value is not valid YAML \(more than 100 levels"),
        ("name=!!bool x", r"^override 'name=!!bool x': the value is not valid YAML \('x' is no value of !!bool\)$"),
        ("name=!!timestamp x", r"not valid YAML \('x' is no value of !!timestamp\)$"),
        ('name=!!int ""', r"not valid YAML \('' is no value of !!int\)$"),
        ('model={a: !!float ""}', r"not valid YAML \('' is no value of !!float\)$"),
    ],
)
def test_mistaken_overrides_are_named(tmp_path: Path, override: str, message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        load_recipe(write(tmp_path, MINIMAL), [override])


def test_missing_file_and_bad_encoding(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="no such recipe"):
        load_recipe(tmp_path / "none.yaml")
    path = tmp_path / "r.yaml"
    for encoding, message in (
        ("gb18030", "r.yaml:2: byte 0x.. is not UTF-8; save the file as UTF-8, .* -f GB18030"),
        ("utf-16", "r.yaml:1: byte 0xff is not UTF-8; this is UTF-16; save the file as UTF-8, .* -f UTF-16"),
    ):
        path.write_bytes("data: {}\nname: 微博\n".encode(encoding))
        with pytest.raises(RecipeError, match=message):
            load_recipe(path)
    with pytest.raises(RecipeError, match="cannot be read"):
        load_recipe(tmp_path)


def test_every_setting_says_what_it_is() -> None:
    import ast
    import inspect

    from cige.training import recipe

    for module in (recipe, settings):
        for node in ast.parse(inspect.getsource(module)).body:
            if isinstance(node, ast.ClassDef):
                for field, after in pairwise(node.body):
                    is_told = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
                    assert is_told or not isinstance(field, ast.AnnAssign), ast.unparse(field)


def test_from_dict_checks_too() -> None:
    assert isinstance(recipe_from_dict({"name": "x", "data": {"dataset": "weibo"}}), Recipe)
    with pytest.raises(RecipeError, match="did you mean 'data'"):
        recipe_from_dict({"name": "x", "date": {}})
