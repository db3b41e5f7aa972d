"""cige lattice-bert pretrain data, run, describe, explain: from a corpus to a model, and what goes wrong on the way."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

import pytest

from cige.cli import main
from cige.lattice_bert.encoder.joint_vocabulary import JointVocabulary
from cige.lattice_bert.encoder.pretrained import PretrainedLatticeBert
from cige.lattice_bert.kinds import PRETRAIN
from cige.lattice_bert.pretraining.recipe import load_pretrain_recipe
from cige.recipes.shipped import shipped

NAMES = [name for name, one in shipped().items() if one.kind == PRETRAIN]
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"研究生活很充实他去北京大学今天气，。"]
WORDS = ["研究", "研究生", "生活", "充实", "北京", "大学", "今天", "天气"]
SMALL = """
model: {n_layers: 1, n_heads: 2, width: 8, embedding_width: 4, position_width: 2, max_positions: 64}
short: {n_steps: 4, n_characters: 48, max_tokens: 80, batch_size: 4}
schedule: {warmup: 1 steps}
training: {log_every: 2 steps, eval_every: 4 steps, n_eval_instances: 4}
checkpoints: {every: 2 steps}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A vocabulary, a corpus and a recipe."""
    found = tmp_path_factory.mktemp("pretrain")
    rng = random.Random(0)
    units = [*WORDS, *"他去很，"]
    documents = ["\n".join("".join(rng.choices(units, k=6)) + "。" for _ in range(4)) for _ in range(40)]
    (found / "corpus.txt").write_text("\n\n".join(documents), encoding="utf-8")
    (found / "small.yaml").write_text(SMALL, encoding="utf-8")
    JointVocabulary.build(PIECES, WORDS).save(found / "vocabulary")
    return found


@pytest.fixture(scope="module")
def data(folder) -> Path:
    assert main(data_command(folder, "data")) == 0
    return folder / "data"


@pytest.fixture(scope="module")
def model(folder, data) -> Path:
    command = ["pretrain", "run", str(folder / "small.yaml"), "--data", str(data), "--output", str(folder / "run")]
    assert main([*command, "--device", "cpu"]) == 0
    return folder / "run/model"


def data_command(folder: Path, output: str, *rest: str, corpus: str = "corpus.txt") -> list[str]:
    options = [
        "--vocab",
        str(folder / "vocabulary"),
        "--output",
        str(folder / output),
        "--held-out",
        "10",
        "--no-words",
    ]
    return ["pretrain", "data", str(folder / corpus), *options, *rest]


def refused(command: list[str], capsys) -> str:
    """The one line on stderr of a command that ends with 2."""
    capsys.readouterr()
    assert main(command) == 2
    err = capsys.readouterr().err
    last = err.strip().splitlines()[-1]
    assert last.startswith("cige: ")
    return last


def test_data_tells_what_it_made(folder, capsys):
    assert main(data_command(folder, "told")) == 0
    out = capsys.readouterr().out
    assert "40 documents, 160 lines" in out and "held out  181 characters" in out and "wrote" in out
    # The same command again finds all shards and changes nothing.
    before = (folder / "told/manifest.json").read_bytes()
    assert main(data_command(folder, "told")) == 0
    assert (folder / "told/manifest.json").read_bytes() == before


def test_run_makes_a_model_and_goes_on_with_it(folder, data, model, capsys):
    assert PretrainedLatticeBert.from_pretrained(model).facts["n_steps"] == 4
    command = ["pretrain", "run", str(folder / "small.yaml"), "--data", str(data), "--output", str(folder / "run")]
    assert main([*command, "--resume"]) == 0  # finished: told again, not trained again
    assert ": 4 steps, " in capsys.readouterr().out
    assert "choose another output folder" in refused([*command, "--set", "short.n_steps=5"], capsys)


@pytest.mark.parametrize("given", ["-1", "nan"])
def test_a_time_that_never_comes_is_refused(given, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["lattice-bert", "pretrain", "run", "pretrain/tiny", "--data", "d", "-o", "x", "--stop-after", given])
    assert stop.value.code == 2 and f"given '{given}', expected minutes" in capsys.readouterr().err


def test_a_run_in_sittings(folder, data, tmp_path, capsys):
    command = ["pretrain", "run", str(folder / "small.yaml"), "--data", str(data), "--output", str(tmp_path / "run")]
    assert main([*command, "--stop-after", "0"]) == 0
    assert "time is up; the same command continues" in capsys.readouterr().out
    assert main(command) == 0
    assert f"model in {tmp_path / 'run/model'}" in capsys.readouterr().out


def test_describe_a_trained_model(model, capsys):
    capsys.readouterr()
    assert main(["lattice-bert", "pretrain", "describe", "--model", str(model), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    network = PretrainedLatticeBert.from_pretrained(model).network
    assert facts["n_parameters"] == sum(p.numel() for p in network.parameters())


@pytest.mark.parametrize(
    ("options", "expected"), [(["--size", "base"], 99.3), (["--size", "lite", "--n-words", "0"], 22.4)]
)
def test_describe_the_papers_sizes(options, expected, capsys):
    capsys.readouterr()
    assert main(["lattice-bert", "pretrain", "describe", *options, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["n_parameters"] / 1e6 == pytest.approx(expected, abs=0.3)


def test_describe_the_instances_of_some_data(folder, model, capsys):
    capsys.readouterr()
    recipe = folder / "described.yaml"
    recipe.write_text(SMALL, encoding="utf-8")
    command = ["pretrain", "describe", "--data", str(folder / "data")]
    assert main([*command, "--recipe", str(recipe), "--set", "instances.mask_selection=within_budget", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["phases"]
    assert (found["max_characters"], found["max_tokens"]) == (48, 80)
    assert 0.8 * 48 < found["n_characters"] <= 48 and 0 < found["with_label"] <= 1
    assert 0.1 < found["masked"] <= 0.16 and found["masked_by_length"]["1"][0] > 0
    assert main(command) == 0
    out = capsys.readouterr().out
    assert "512 characters" in out and "with a label for the order of two texts" in out and "masked, of length 1" in out
    assert main([*command, "--n-instances", "2"]) == 0
    assert "over 2 random instances" in capsys.readouterr().out
    assert main([*command, "--set", "short.n_steps=1"]) == 2
    assert "--recipe" in capsys.readouterr().err


# attention


def test_explain_tells_the_attention_of_every_token(folder, model, tmp_path, capsys):
    command = ["pretrain", "explain", "--model", str(model), "--tuned", str(model), "研究生活很充实"]
    capsys.readouterr()
    assert main([*command, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["token"] for row in found["tokens"]][:4] == ["研", "究", "研究", "生"]
    before, after = ([row["share"][name] for row in found["tokens"]] for name in ("before", "after"))
    assert before == after and 0.5 < sum(before) < 1 and min(before) > 0
    assert main([*command, "--n-tokens", "2"]) == 0
    assert "[CLS] and [SEP]" in capsys.readouterr().out
    assert main([*command, "--output", str(tmp_path / "page.html")]) == 0
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.count('class="lattice"') == 2 and page.count("研究生<small>") == 2


def test_explain_refuses_what_it_cannot_compare(folder, model, tmp_path, capsys):
    base = ["pretrain", "explain", "--model", str(model)]
    assert "no token in it" in refused([*base, " "], capsys)
    assert "positions for 62" in refused([*base, "研" * 63], capsys)
    network = PretrainedLatticeBert.from_pretrained(model).network
    others = JointVocabulary.build(PIECES, [*WORDS[:-1], "天天"])
    PretrainedLatticeBert(network=network, vocabulary=others).save(tmp_path / "other")
    assert "different vocabularies" in refused([*base, "--tuned", str(tmp_path / "other"), "研究"], capsys)
    assert "no such folder" in refused(["pretrain", "explain", "--model", str(tmp_path / "none"), "研究"], capsys)


# bad input


def test_bad_corpora_are_told(folder, capsys):
    (folder / "junk").write_bytes(bytes(range(256)) * 50)
    (folder / "empty.txt").write_text("\n\n \n", encoding="utf-8")
    assert "not UTF-8 text" in refused(data_command(folder, "d1", corpus="junk"), capsys)
    assert "no text found" in refused(data_command(folder, "d2", corpus="empty.txt"), capsys)
    assert "none.txt" in refused(data_command(folder, "d3", corpus="none.txt"), capsys)
    assert not any((folder / name / "manifest.json").exists() for name in ("d1", "d2", "d3"))


def test_a_corpus_without_blank_lines_and_a_line_of_a_hundred_thousand_characters(folder, capsys):
    (folder / "flat.txt").write_text("研究生活很充实。\n" * 30, encoding="utf-8")
    assert main(data_command(folder, "flat", "--held-out", "0", corpus="flat.txt")) == 0
    assert "no blank line" in capsys.readouterr().out
    (folder / "long.txt").write_text("研究生活，很充实。他去北京大学" * 7_000, encoding="utf-8")
    assert main(data_command(folder, "long", "--held-out", "0", corpus="long.txt")) == 0
    out = capsys.readouterr().out
    assert "cut at punctuation: 1 line of more than 80 characters" in out
    assert "of more than 1,000 lines" in out


def test_a_shard_that_vanished_is_named_and_made_again(folder, data, tmp_path, capsys):
    command = ["pretrain", "run", str(folder / "small.yaml"), "--data", str(data), "--output", str(tmp_path / "run")]
    assert main([*command, "--stop-after", "0"]) == 0
    (data / "shard-00000").rename(tmp_path / "gone")
    message = refused(command, capsys)
    assert "shard-00000: missing" in message and "cige lattice-bert pretrain data" in message
    assert main(data_command(folder, "data")) == 0
    assert main(command) == 0


def test_a_vocabulary_that_is_none(folder, tmp_path, capsys):
    command = ["pretrain", "data", str(folder / "corpus.txt"), "--output", str(tmp_path / "d"), "--vocab"]
    assert "none" in refused([*command, str(tmp_path / "none")], capsys)
    JointVocabulary.build(PIECES, WORDS).save(tmp_path / "v")
    with (tmp_path / "v/words.txt").open("a", encoding="utf-8") as file:
        file.write("研究\n")  # a duplicate
    assert "words.txt" in refused([*command, str(tmp_path / "v")], capsys)


def test_a_wrong_recipe_is_told_before_torch_is_imported(folder, data, tmp_path, capsys):
    command = ["pretrain", "run", str(folder / "small.yaml"), "--data", str(data), "--output", str(tmp_path / "run")]
    assert "short.n_step" in refused([*command, "--set", "short.n_step=5"], capsys)
    assert "masking is 'words'" in refused([*command, "--set", "instances.masking=words"], capsys)
    assert not (tmp_path / "run").exists()


# recipes


@pytest.mark.parametrize("name", NAMES)
def test_recipes_can_be_read(name):
    recipe = load_pretrain_recipe(name)
    assert f"pretrain/{recipe.name}" == name.replace("_", "-")
    is_baseline = "bert_our" in name
    assert recipe.instances.use_words != is_baseline
    assert recipe.model.relations is None if is_baseline or "no_relations" in name else recipe.model.relations


@pytest.mark.parametrize("size", ["base", "lite"])
def test_recipes_of_the_paper_are_table_4(size):
    recipe = load_pretrain_recipe(f"pretrain/{size}")
    model, adam = recipe.model, recipe.optimizer
    expected = {"base": (12, 768, 3072, 12), "lite": (6, 512, 2048, 8)}[size]
    assert (model.n_layers, model.width, model.inner_width, model.n_heads) == expected
    assert (model.embedding_width, model.head_width) == (128, 64)
    assert model.dropout_prob == model.attention_dropout_prob == 0.1
    assert (recipe.schedule.warmup, adam.learning_rate, recipe.n_steps) == ("5000 steps", 6e-4, 100_000)
    assert (adam.epsilon, adam.betas) == (1e-6, (0.9, 0.999))
    assert recipe.short.batch_size == recipe.long.batch_size == 8192
    assert recipe.short.n_steps == 9 * recipe.long.n_steps
    assert [(p.n_characters, p.max_tokens) for p in recipe.phases] == [(128, 256), (512, 1024)]


def test_ablations_differ_in_one_thing():
    base = load_pretrain_recipe("pretrain/tiny")
    changes = {
        "tiny_no_relations": {"relations": None},
        "tiny_no_distances": {"distances": False},
        "tiny_no_factorisation": {"embedding_width": None},
    }
    for name, settings in changes.items():
        recipe = load_pretrain_recipe(f"pretrain/{name}")
        for key, value in vars(recipe.model).items():
            assert value == settings.get(key, getattr(base.model, key)), (name, key)
        assert recipe.instances == base.instances and recipe.phases == base.phases
    assert load_pretrain_recipe("pretrain/tiny_no_msp").instances.masking == "tokens"


def test_help_of_every_sub_verb(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)  # help must not need it
    from cige.lattice_bert.commands.pretrain import SUB_VERBS

    for name in SUB_VERBS:
        with pytest.raises(SystemExit) as stop:
            main(["lattice-bert", "pretrain", name, "--help"])
        assert stop.value.code == 0 and "usage: cige lattice-bert pretrain" in capsys.readouterr().out
