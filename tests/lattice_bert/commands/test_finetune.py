"""The command line of fine-tuning."""

import json

import pytest
import tiny_tasks as tiny
import yaml
from finetune_command import call

from cige.errors import CigeError, DataError
from cige.lattice_bert.tasks.registry import PAPER_TASKS

QUICK = ("--epochs", 1, "--batch-size", 4, "--max-pieces", 40, "--lr", 5e-3, "--device", "cpu")


def test_one_task_then_its_answers(model_folder, tmp_path, capsys, one_thread):
    data = tiny.pair_folder(tmp_path / "data")
    call("afqmc", "--model", model_folder, "--data", data, "--output", tmp_path / "run", *QUICK)
    printed = capsys.readouterr().out
    assert "AFQMC (partial" in printed and "dev: accuracy " in printed
    answers = tmp_path / "answers.json"
    call("predict", "--model", tmp_path / "run" / "model", "--data", data, "--output", answers)
    assert answers.read_text() == (tmp_path / "run" / "answers" / "afqmc_predict.json").read_text()
    call("predict", "--model", tmp_path / "run" / "model", "--data", data, "--split", "dev", "--output", answers)
    assert "accuracy" in capsys.readouterr().out
    with pytest.raises(DataError, match="whose input is not just texts"):
        call("predict", "--model", tmp_path / "run" / "model", "--texts", answers, "--output", answers)


def test_a_recipe_of_ones_own_then_set_then_options(model_folder, tmp_path, one_thread):
    data = tiny.pair_folder(tmp_path / "data")
    path = tmp_path / "mine.yaml"
    path.write_text(
        "extends: finetune/afqmc\ntraining: {n_epochs: 2}\nbatches: {batch_size: 5}\nmax_pieces: 40\n", encoding="utf-8"
    )
    common = ("--model", model_folder, "--data", data, "--output", tmp_path / "run", "--device", "cpu")
    call(
        "afqmc",
        *common,
        "--recipe",
        path,
        "--set",
        "batches.batch_size=6",
        "optimizer.learning_rate=1e-3",
        "--lr",
        5e-3,
    )
    used = yaml.safe_load((tmp_path / "run" / "recipe.yaml").read_text(encoding="utf-8"))["config"]
    assert (used["training"]["n_epochs"], used["batches"]["batch_size"]) == (2, 6)
    assert (used["optimizer"]["learning_rate"], used["max_pieces"], used["max_tokens"]) == (5e-3, 40, 256)


def test_entities_of_texts(model_folder, tmp_path, one_thread):
    folder = tmp_path / "msra"
    folder.mkdir()
    (folder / "train.bmes").write_text("小 B-PER\n明 E-PER\n在 O\n\n" * 20, encoding="utf-8")
    call("msra", "--model", model_folder, "--data", folder, "--output", tmp_path / "run", "--crf", *QUICK)
    (tmp_path / "news.txt").write_text("小明在北京\n\n他", encoding="utf-8")
    found = tmp_path / "found.jsonl"
    call("predict", "--model", tmp_path / "run" / "model", "--texts", tmp_path / "news.txt", "--output", found)
    records = [json.loads(line) for line in found.read_text(encoding="utf-8").splitlines()]
    assert [record["text"] for record in records] == ["小明在北京", "", "他"]
    (tmp_path / "news.txt").write_bytes("小明\u2028在北京\r\n\r\n他\x0c在\n".encode())
    call("predict", "--model", tmp_path / "run" / "model", "--texts", tmp_path / "news.txt", "--output", found)
    records = [json.loads(line) for line in found.read_text(encoding="utf-8").split("\n")[:-1]]
    assert [record["text"] for record in records] == ["小明\u2028在北京", "", "他\x0c在"]


def test_segmentation_with_a_crf_reports_its_loss(model_folder, tmp_path, one_thread):
    folder = tmp_path / "msr"
    folder.mkdir()
    for split in ("train", "dev", "test"):
        (folder / f"{split}.txt").write_text("他 在 北京 大学\n小明 不 在\n他 在\n" * 3, encoding="utf-8")
    call("msr", "--model", model_folder, "--data", folder, "--output", tmp_path / "run", "--crf", *QUICK)
    text = (tmp_path / "run" / "result.json").read_text(encoding="utf-8")
    history = json.loads(text, parse_constant=pytest.fail)["history"]
    assert all(isinstance(record["train"]["loss"], float) and record["train"]["loss"] > 0 for record in history)


def test_all_tasks_at_hand_and_tables(model_folder, tmp_path, capsys, one_thread):
    data = tiny.pair_folder(tmp_path / "data", n_train=8, n_dev=4)
    (data / "msr").mkdir()
    for split in ("train", "dev", "test"):
        (data / "msr" / f"{split}.txt").write_text("他 在 北京 大学\n小明 不 在\n" * 3, encoding="utf-8")
    common = ("--model", model_folder, "--data", data, "--output", tmp_path / "all", *QUICK)
    call("all", *common, "--grid", "lr", "--rates", 1e-3, 5e-3, "--runs", 2, "--name", "tiny")
    printed = capsys.readouterr().out
    assert "| AFQMC | partial |" in printed and "| MSR-CWS/F1 |" in printed and "| tiny |" in printed
    assert (tmp_path / "all" / "tables.md").read_text(encoding="utf-8") in printed
    call("table", tmp_path / "all", tmp_path / "all")
    assert capsys.readouterr().out.count("| tiny |") == 2
    before = json.loads((tmp_path / "all" / "results.json").read_text(encoding="utf-8"))["rows"]
    call("all", *common, "--tasks", "afqmc", "--runs", 1)  # fewer runs of one task: the other task stays
    after = json.loads((tmp_path / "all" / "results.json").read_text(encoding="utf-8"))["rows"]
    assert [row["task"] for row in after] == ["afqmc", "msr"] and after[1] == before[1]
    assert len(after[0]["dev"]["accuracy"]) == 1 and "| MSR-CWS/F1 |" in capsys.readouterr().out


def test_all_refuses_another_models_folder(model_folder, tmp_path):
    data = tiny.pair_folder(tmp_path / "data", n_train=8, n_dev=4)
    call("all", "--model", model_folder, "--data", data, "--output", tmp_path / "all", "--runs", 1, *QUICK)
    tiny.pretrained(seed=2).save(tmp_path / "other")
    with pytest.raises(CigeError, match="results of another pre-trained model; give another output folder"):
        call("all", "--model", tmp_path / "other", "--data", data, "--output", tmp_path / "all", *QUICK)


def test_all_refuses_rates_without_a_search_and_a_folder_without_tasks(tmp_path):
    common = ("all", "--model", "m", "--data", tmp_path, "--output", tmp_path / "all")
    with pytest.raises(CigeError, match="give --grid lr too"):
        call(*common, "--rates", 1e-4, 1e-3)
    with pytest.raises(DataError, match="no data of any task"):
        call(*common)


def test_help_names_every_task(capsys):
    with pytest.raises(SystemExit):
        call("--help")
    printed = capsys.readouterr().out
    assert all(name in printed for name in [*PAPER_TASKS, "all", "predict", "table", "analyse"])
