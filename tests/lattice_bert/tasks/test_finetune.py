"""Runs end to end: results, resuming, refusing, saving and loading, grids and tables."""

import json
import signal
from dataclasses import replace

import interrupted_tuning
import numpy as np
import pytest
import stopping
import tiny_tasks as tiny
import torch
import warm_process
from tiny_tasks import QUICK

from cige.engine.run_folder import read_result
from cige.engine.trainer import Trainer
from cige.errors import CigeError, DataError, ModelError, RecipeError
from cige.lattice_bert.encoder.pretrained import add_adapter
from cige.lattice_bert.encoder.word_adapter import WordAdapterConfig
from cige.lattice_bert.tasks.examples import TextExample
from cige.lattice_bert.tasks.finetune import TuningResult, finetune
from cige.lattice_bert.tasks.grid import GridResult, TaskRow, table_1, tables, tune_task
from cige.lattice_bert.tasks.metrics import mean_and_sd
from cige.lattice_bert.tasks.registry import PAPER_TASKS, TASKS, get_task
from cige.lattice_bert.tasks.task_data import load_split, load_task_data
from cige.lattice_bert.tasks.tuned import TunedModel
from cige.lexicon.vectors import VectorTable
from cige.recipes.strict import changed


@pytest.fixture
def data(tmp_path):
    return load_task_data(get_task("afqmc"), tiny.pair_folder(tmp_path / "data"))


def tune(data, model_folder, folder, **options):
    config = options.pop("config", QUICK)
    return finetune(data, model_folder, folder, config=config, device="cpu", show_progress=False, **options)


def test_a_run(data, model_folder, tmp_path, one_thread):
    result = tune(data, model_folder, tmp_path / "run")
    assert set(result.dev) == {"accuracy"} and result.test == {}
    assert result.deciding == max(record.score for record in result.history)
    assert [record.step for record in result.history] == [3, 6]
    assert result.data == "partial (train 12 of 34,334, dev 6 of 4,316, test 3 of 3,861)"
    assert result.facts == {"n_train": 12, "n_dev": 6, "n_test": 3, "n_items": 12, "n_not_learnt": 0}
    assert sorted(path.name for path in result.folder.iterdir()) == [
        "answers",
        "model",
        "recipe.yaml",
        "result.json",
        "tensorboard",
    ]
    lines = (result.folder / "answers" / "afqmc_predict.json").read_text(encoding="utf-8").splitlines()
    answers = [json.loads(line) for line in lines]
    assert [answer["id"] for answer in answers] == [0, 1, 2] and {a["label"] for a in answers} <= {"0", "1"}
    model = TunedModel.from_pretrained(result.model)
    assert model.score(data.dev, model.predict(data.dev)) == pytest.approx(result.dev)
    assert model.facts["task"] == "afqmc" and model.predict(data.test) == [answer["label"] for answer in answers]
    before = (result.folder / "result.json").stat().st_mtime_ns
    assert tune(data, model_folder, tmp_path / "run") == result  # read, not repeated
    assert (result.folder / "result.json").stat().st_mtime_ns == before


def test_a_model_of_characters_with_a_word_adapter(data, tmp_path, one_thread):
    """Fine-tuning trains the adapter with the rest, and the folder of the result reads alike."""
    vectors = VectorTable(tiny.WORDS, np.random.default_rng(0).normal(size=(len(tiny.WORDS), 6)).astype(np.float32))
    made = add_adapter(tiny.pretrained(words=[]), vectors, WordAdapterConfig(n_words=99, word_width=6))
    made.save(tmp_path / "model")
    result = tune(data, tmp_path / "model", tmp_path / "run")
    model = TunedModel.from_pretrained(result.model)
    assert model.score(data.dev, model.predict(data.dev)) == pytest.approx(result.dev)
    before, after = made.bert.adapter.state_dict(), model.pretrained.bert.adapter.state_dict()
    assert all((before[name] != after[name]).any() for name in before)
    bare = sum(p.numel() for p in tiny.pretrained(words=[]).bert.parameters())
    assert sum(p.numel() for p in model.pretrained.bert.parameters()) > bare


def test_seeds_decide(data, model_folder, tmp_path, one_thread):
    losses = [
        tune(data, model_folder, tmp_path / name, seed=seed).history[0].train["loss"]
        for name, seed in (("a", 1), ("b", 1), ("c", 2))
    ]
    assert losses[0] == losses[1] != losses[2]


class Stopped(Exception):
    pass


def test_a_run_that_was_cut_off_ends_as_it_would_have(data, model_folder, tmp_path, one_thread):
    config = changed(QUICK, {"training.n_epochs": 3})
    whole = tune(data, model_folder, tmp_path / "whole", config=config)
    # In the second epoch.
    with stopping.stopped_at(4, stopping.interrupt), pytest.raises(KeyboardInterrupt):
        tune(data, model_folder, tmp_path / "cut", config=config)
    assert (tmp_path / "cut" / "checkpoint-3").is_dir()
    cut = tune(data, model_folder, tmp_path / "cut", config=config)
    assert [(r.train, r.scores) for r in cut.history] == [(r.train, r.scores) for r in whole.history]
    ours, theirs = (TunedModel.from_pretrained(r.model).network.state_dict() for r in (cut, whole))
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)


def test_sigkills_at_random_steps(data, model_folder, tmp_path, one_thread):
    whole = interrupted_tuning.run(model_folder, data.folder, tmp_path / "whole")
    for step in stopping.steps(2, below=9, seed=3):
        process = warm_process.start(interrupted_tuning.run_until, step, model_folder, data.folder, tmp_path / "cut")
        assert warm_process.exit_code(process) == -signal.SIGKILL
    cut = interrupted_tuning.run(model_folder, data.folder, tmp_path / "cut")
    assert [(r.step, r.train, r.scores) for r in cut.history] == [(r.step, r.train, r.scores) for r in whole.history]
    ours, theirs = (TunedModel.from_pretrained(r.model).network.state_dict() for r in (cut, whole))
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)


def test_a_folder_of_another_run_is_refused(data, model_folder, tmp_path):
    tune(data, model_folder, tmp_path / "run")
    with pytest.raises(RecipeError, match=r"config.optimizer.learning_rate 0.1 \(was 0.005\)"):
        tune(data, model_folder, tmp_path / "run", config=changed(QUICK, {"optimizer.learning_rate": 0.1}))
    with pytest.raises(RecipeError, match="seed 2"):
        tune(data, model_folder, tmp_path / "run", seed=2)
    other = replace(data, train=data.train[:-1])
    with pytest.raises(RecipeError, match="data"):
        tune(other, model_folder, tmp_path / "run")
    again = tune(other, model_folder, tmp_path / "run", resume=False)
    assert again.facts["n_train"] == 11


def test_trials_say_so(data, model_folder, tmp_path):
    result = tune(
        data, model_folder, tmp_path / "run", config=changed(QUICK, {"n_train": 5, "n_dev": 2, "training.n_epochs": 1})
    )
    assert result.data.endswith(", the first 5 learnt")
    assert (result.facts["n_train"], result.facts["n_dev"]) == (5, 2)


def test_precision_and_passes_give_nearly_the_same(data, model_folder, tmp_path, one_thread):
    quiet = changed(QUICK, {"training.n_epochs": 1})
    whole = tune(data, model_folder, tmp_path / "whole", config=quiet)
    # dropout differs from pass to pass, the sum of gradients else does not
    cut = tune(data, model_folder, tmp_path / "cut", config=changed(quiet, {"batches.micro_batch_size": 2}))
    assert cut.history[0].train["loss"] == pytest.approx(whole.history[0].train["loss"], abs=0.3)
    half = tune(data, model_folder, tmp_path / "half", config=changed(quiet, {"training.precision": "bf16"}))
    assert half.history[0].train["loss"] == pytest.approx(whole.history[0].train["loss"], abs=0.3)


def test_nothing_to_learn(model_folder, tmp_path):
    answers = {"text": ["广州"], "answer_start": [0]}
    lost = {"id": "a", "context": "他在北京", "question": "他在哪里？", "answers": answers}
    for split in ("train", "dev"):
        tiny.write_lines(tmp_path / "cmrc" / f"{split}.jsonl", [lost])
    data = load_task_data(get_task("cmrc"), tmp_path)
    with pytest.raises(DataError, match="none of the 1 training examples can be used"):
        tune(data, model_folder, tmp_path / "run")
    found = lost | {"answers": {"text": ["北京"], "answer_start": [0]}}
    tiny.write_lines(tmp_path / "cmrc" / "train.jsonl", [lost, found])
    result = tune(load_task_data(get_task("cmrc"), tmp_path), model_folder, tmp_path / "other")
    counts = {name: result.facts[name] for name in ("n_answers_moved", "n_answers_outside", "n_not_learnt")}
    assert counts == {"n_answers_moved": 1, "n_answers_outside": 1, "n_not_learnt": 1}
    assert set(json.loads((result.folder / "answers" / "dev.json").read_text(encoding="utf-8"))) == {"a"}


def test_a_label_of_test_only_is_an_error_before_training(data, model_folder, tmp_path, monkeypatch):
    monkeypatch.setattr(Trainer, "run", lambda *_, **__: pytest.fail("trained first"))
    other = replace(data, test=[*data.test, TextExample("9", "他在北京", "他在哪里", "7")])
    with pytest.raises(DataError, match=r"afqmc: test has the label 7, which no example of train or dev has \(0, 1\)"):
        tune(other, model_folder, tmp_path / "run")


def test_wrong_models_and_devices(data, tmp_path):
    with pytest.raises(ModelError, match="no such"):
        tune(data, tmp_path / "nothing", tmp_path / "run")
    with pytest.raises(CigeError, match="device 'tpu'"):
        finetune(data, tmp_path, tmp_path / "run", device="tpu")
    with pytest.raises(CigeError, match="not the result of a finished run"):
        read_result(tmp_path, TuningResult)


def test_a_damaged_model_is_refused(data, model_folder, tmp_path):
    model = tune(data, model_folder, tmp_path / "run").model
    about = model / "task.json"
    about.write_text(about.read_text(encoding="utf-8").replace('"1"', '"2"'), encoding="utf-8")
    with pytest.raises(ModelError, match=r"task.json: contents differ"):
        TunedModel.from_pretrained(model)
    (model / "head.safetensors").unlink()
    with pytest.raises(ModelError, match=r"head.safetensors: missing"):
        TunedModel.from_pretrained(model)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("do not lose")
    with pytest.raises(ModelError, match="will not be replaced"):
        tiny.tuned("classification", [TextExample("0", "天", None, "1")]).save(tmp_path / "mine")


@pytest.mark.parametrize(
    "key, value",
    [("training.n_epochs", 0), ("optimizer.learning_rate", -1.0), ("n_train", 0), ("dropout_prob", 1.0)],
)
def test_settings_that_make_no_sense(key, value):
    with pytest.raises(RecipeError, match=rf"{key} is .*, expected"):
        changed(QUICK, {key: value})


def test_the_papers_settings():
    assert len(PAPER_TASKS) == 11
    table_5 = {
        name: (TASKS[name].config.training.n_epochs, TASKS[name].config.batches.batch_size) for name in PAPER_TASKS
    }
    assert table_5 == {
        "cmnli": (4, 16), "tnews": (5, 16), "iflytek": (5, 8), "afqmc": (5, 16), "wsc": (10, 16), "csl": (5, 8),
        "cmrc": (5, 8), "chid": (2, 24), "c3": (8, 12), "msr": (5, 8), "msra": (10, 8),
    }  # fmt: skip
    assert TASKS["wsc"].config.max_tokens == 256 and TASKS["csl"].config.max_tokens == 512
    with pytest.raises(DataError, match="did you mean tnews"):
        get_task("tnew")


def test_folders_as_clue_names_them(tmp_path):
    folder = tiny.pair_folder(tmp_path) / "afqmc"
    (folder / "test.json").rename(folder / "test1.0.json")
    folder.rename(tmp_path / "afqmc_public")
    for place in (tmp_path, tmp_path / "afqmc_public"):
        found = load_task_data(get_task("afqmc"), place)
        assert (len(found.train), len(found.test)) == (12, 3)


def test_home_made_splits_share_no_record(tmp_path):
    dev = [{"id": k, "abst": f"摘要{k}", "keyword": ["词"], "label": str(k % 2)} for k in range(2010)]
    tiny.write_lines(tmp_path / "csl" / "dev.jsonl", dev)
    tiny.write_lines(tmp_path / "csl" / "train.jsonl", dev[:3])
    found = load_task_data(get_task("csl_cut"), tmp_path)
    assert (len(found.train), len(found.dev), found.test) == (2001, 12, [])
    assert found.train[-1].second == "摘要1997" and found.dev[0].second == "摘要1998"
    assert found.state.startswith("home-made: train is the few-shot file and dev lines 1-1998")


def test_stand_ins_say_so(tmp_path):
    for split in ("train", "dev"):
        records = [record | {"label": "neutral"} for record in tiny.pair_records(2)]
        tiny.write_lines(tmp_path / "clue" / "ocnli" / f"{split}.jsonl", records)
    found = load_task_data(get_task("cmnli"), tmp_path)
    assert found.state == "stand-in: OCNLI for CMNLI (train 2, dev 2)"
    with pytest.raises(DataError, match="no examples for test"):
        load_split(get_task("cmnli"), tmp_path, "test")
    with pytest.raises(DataError, match="no data of wsc: expected a folder"):
        load_task_data(get_task("wsc"), tmp_path)
    (tmp_path / "clue" / "ocnli" / "dev.jsonl").unlink()
    with pytest.raises(DataError, match=r"no examples for dev; expected files such as dev.jsonl"):
        load_task_data(get_task("cmnli"), tmp_path)


def test_a_grid_goes_on_where_it_stopped(data, model_folder, tmp_path, monkeypatch, one_thread):
    done, real = [], Trainer.run

    def counted(self, objective, **options):
        done.append(1)
        if len(done) == 3:
            raise Stopped
        return real(self, objective, **options)

    monkeypatch.setattr(Trainer, "run", counted)
    config = changed(QUICK, {"training.n_epochs": 1})

    def grid():
        return tune_task(
            data, model_folder, tmp_path / "grid", config=config, rates=[1e-3, 5e-3], n_runs=2, device="cpu",
            show_progress=False,
        )  # fmt: skip

    with pytest.raises(Stopped):
        grid()
    row = grid()
    assert len(done) == 4  # the run that was stopped is the only one to be repeated
    assert set(row.tried) == {1e-3, 5e-3} and row.learning_rate in row.tried and row.n_runs == 2
    assert row.dev["accuracy"][0] == max(row.tried.values())
    assert grid() == row and len(done) == 4
    assert not list((tmp_path / "grid").glob("*/model"))
    GridResult("tiny", (row,)).save(tmp_path / "grid")
    assert GridResult.read(tmp_path / "grid") == GridResult("tiny", (row,))
    with pytest.raises(CigeError, match="the output folder of"):
        GridResult.read(tmp_path)
    (tmp_path / "results.json").write_text("{}")
    with pytest.raises(CigeError, match="not the results"):
        GridResult.read(tmp_path)


def test_tables_by_hand():
    cmrc = TaskRow("cmrc", "full", 3e-5, {3e-5: 0.8}, {"f1": [0.8, 0.6], "em": [0.5, 0.3]}, {})
    wsc = TaskRow("wsc", "partial (..)", 1e-4, {1e-4: 0.7}, {"accuracy": [0.7]}, {"accuracy": [0.6]})
    result = GridResult("LBERT", (wsc, cmrc))
    text = tables([result])
    assert "| WSC. | partial | 0.0001 | 1 | 70.0 | 0.0 | 60.0 | 0.0 |" in text
    assert "| CMRC/F1 | full | 3e-05 | 2 | 70.0 | 14.1 | - | - |" in text
    assert "| CMRC/EM | | - | - | 40.0 | 14.1 | - | - |" in text
    assert "| Average | | | | 62.5 | | - | |" in text  # (70 + (70 + 40) / 2) / 2
    assert "| LBERT | 60.0 | 40.0* | 50.0 |" in table_1([result])
    other = GridResult("BERT", (wsc,))
    assert "| BERT | 60.0 | - | - |" in table_1([result, other])
    assert mean_and_sd([0.5]) == (0.5, 0.0)
    assert "- CMRC: full" in text
    cut = TaskRow("afqmc", "full, the first 10 learnt", 1e-4, {1e-4: 0.7}, {"accuracy": [0.7]}, {})
    assert "| AFQMC | full | 0.0001 | 1 | 70.0 | 0.0 | - | - |" in tables([GridResult("LBERT", (cut,))])
