"""Analyses of tuned models from the command line."""

import json
import subprocess
import sys

import finetune_command
import pytest
import tiny_tasks as tiny

from cige.errors import DataError
from cige.lattice_bert.tasks.analysis import (
    KEYWORDS,
    LENGTH,
    NESTED,
    nested_errors,
    reduction,
)
from cige.lattice_bert.tasks.registry import TASKS, get_task
from cige.lattice_bert.tasks.tuned import TunedModel, TunedNetwork


def call(*argv):
    finetune_command.call("analyse", *argv)


def save_tuned(folder, task, examples, *, seed=0):
    made = tiny.tuned(TASKS[task].kind, examples, seed=seed)
    TunedModel(made.network, made.pretrained, task, made.kind_name, made.room, {"data": "partial"}).save(folder)
    return folder


def save_without_words(folder, task, examples):
    made = tiny.tuned(TASKS[task].kind, examples)
    encoder = tiny.pretrained(words=[])
    network = TunedNetwork(encoder.bert, made.network.head)
    TunedModel(network, encoder, task, made.kind_name, made.room).save(folder)
    return folder


def news_folder(folder):
    records = [{"sentence": "今天天气不好"[: k + 1], "keywords": "", "label": str(100 + k % 2)} for k in range(6)]
    tiny.write_lines(folder / "tnews" / "dev.json", records)
    tiny.write_lines(folder / "tnews" / "test.json", [{"sentence": "今天", "keywords": ""}])
    return folder


def test_a_wrong_folder_is_told_before_torch_is_imported(tmp_path):
    words = ["finetune", "analyse", "tnews", "--model", "a", "--model", "b", "--data", str(tmp_path)]
    code = f"import sys; from cige.cli import main; print(main({words}), 'torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["2", "False"] and str(tmp_path) in done.stderr


def test_command_by_length(tmp_path, capsys, one_thread):
    data = news_folder(tmp_path / "data")
    examples = get_task("tnews").read(data / "tnews", "dev")
    folders = [save_tuned(tmp_path / name, "tnews", examples, seed=seed) for seed, name in enumerate("ab")]
    models = ("--model", folders[0], "--model", folders[1])
    call("tnews", *models, "--data", data, "--edges", 5, 3, "--json")
    found = json.loads(capsys.readouterr().out)
    assert found["analysis"] == LENGTH and found["edges"] == [3, 5] and found["n_examples"] == 6
    assert found["models"] == [{"model": str(folder), "data": "partial"} for folder in folders]
    assert [g["n_examples"] for g in found["groups"]] == [2, 2, 2, 6]
    accuracies = [
        model.score(examples, model.predict(examples))["accuracy"] for model in map(TunedModel.from_pretrained, folders)
    ]
    assert found["groups"][-1]["accuracies"] == pytest.approx(accuracies)
    call("tnews", *models, "--data", data, "--bins", 2)
    printed = capsys.readouterr().out
    assert "TNEWS dev: accuracy by length" in printed and "up to 3" in printed and "4 or more" in printed
    assert "data of fine-tuning: partial" in printed
    call("tnews", *models, folders[0], "--data", data, "--bins", 2)  # two runs of the second model
    assert "and 1 more" in " ".join(capsys.readouterr().out.split())
    with pytest.raises(DataError, match="test examples of tnews have no labels"):
        call("tnews", *models, "--data", data, "--split", "test")
    with pytest.raises(DataError, match="one model was given"):
        call("tnews", *models[:2], "--data", data)
    with pytest.raises(DataError, match="was fine-tuned on tnews, expected a model for tnews_toutiao"):
        call("tnews_toutiao", *models, "--data", data)
    with pytest.raises(DataError, match="no analysis of cmrc"):
        call("cmrc", *models, "--data", data)


def test_command_by_keyword_words(tmp_path, capsys, one_thread):
    keywords = [["北京大学"], ["研究生", "天气"], ["他"]]  # 3 words in 1 keyword, 3 in 2, none in 1
    records = [{"keyword": words, "abst": "今天天气", "label": str(k % 2)} for k, words in enumerate(keywords)]
    tiny.write_lines(tmp_path / "data" / "csl" / "dev.json", records)
    examples = get_task("csl").read(tmp_path / "data" / "csl", "dev")
    chars = save_without_words(tmp_path / "chars", "csl", examples)
    lattice = save_tuned(tmp_path / "lattice", "csl", examples)
    call("csl", "--model", chars, "--model", lattice, "--data", tmp_path / "data", "--json")
    found = json.loads(capsys.readouterr().out)
    assert found["analysis"] == KEYWORDS and found["words_of"] == str(lattice)
    assert [g["n_examples"] for g in found["groups"]] == [1, 2, 3]
    with pytest.raises(DataError, match=r"none of .* has words in its vocabulary"):
        call("csl", "--model", chars, "--model", chars, "--data", tmp_path / "data")
    with pytest.raises(DataError, match="--bins and --edges are about accuracy by length"):
        call("csl", "--model", chars, "--model", lattice, "--data", tmp_path / "data", "--bins", 3)


def test_command_nested_errors(tmp_path, capsys, one_thread):
    folder = tmp_path / "data" / "msra"
    folder.mkdir(parents=True)
    tags = ["O", "O", "B-ORG", "M-ORG", "M-ORG", "E-ORG"]
    text = "".join(f"{char} {tag}\n" for char, tag in zip("他在北京大学", tags, strict=True))
    (folder / "dev.bmes").write_text((text + "\n") * 2, encoding="utf-8")
    examples = get_task("msra").read(folder, "dev")
    folders = [save_tuned(tmp_path / name, "msra", examples, seed=seed) for seed, name in enumerate("ab")]
    models = ("--model", folders[0], "--model", folders[1])
    call("msra", *models, "--data", tmp_path / "data", "--json")
    found = json.loads(capsys.readouterr().out)
    answers = [TunedModel.from_pretrained(folder).predict(examples) for folder in folders]
    expected = nested_errors(examples, answers)
    assert found["analysis"] == NESTED
    assert [{k: e[k] for k in ("n_predicted", "n_wrong", "n_nested")} for e in found["errors"]] == [
        e.to_dict() for e in expected
    ]
    assert found["errors"][1]["fewer_wrong"] == reduction(expected[0].n_wrong, expected[1].n_wrong)
    call("msra", "--model", folders[0], "--model", *folders, "--data", tmp_path / "data", "--json")
    found = json.loads(capsys.readouterr().out)
    assert found["models"][1]["runs"] == list(map(str, folders))
    assert found["errors"][1]["n_wrong"] == sum(e.n_wrong for e in expected) / 2
    call("msra", *models, "--data", tmp_path / "data")
    printed = capsys.readouterr().out
    assert "nested with gold" in printed and "MSRA-NER dev" in printed
