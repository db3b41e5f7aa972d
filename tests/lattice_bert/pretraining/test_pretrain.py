"""Pre-training learns, goes on exactly after a kill, and does the same with several processes as with one."""

from __future__ import annotations

import shutil
import signal
from dataclasses import replace
from pathlib import Path

import numpy as np
import pretraining_process
import pytest
import stopping
import tiny_corpus
import tiny_pretraining
import torch
import warm_process

from cige.engine.trainer import Trainer
from cige.errors import CigeError, DataError, ModelError, RecipeError
from cige.lattice_bert.encoder.pretrained import PretrainedLatticeBert
from cige.lattice_bert.pretraining.pretrain import PretrainResult, pretrain

NO_DROPOUT = {"model.dropout_prob": 0.0, "model.attention_dropout_prob": 0.0}


@pytest.fixture(scope="module")
def folder(data_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with data/ and room for recipes."""
    found = tmp_path_factory.mktemp("runs")
    (found / "data").symlink_to(data_folder)
    return found


def run(folder: Path, output: Path, *, data: Path | None = None, **overrides) -> PretrainResult | None:
    options = {key: overrides.pop(key) for key in ("seed", "resume", "stop_after") if key in overrides}
    settings = {"seed": tiny_pretraining.SEED, "device": "cpu", "show_progress": False} | options
    return pretrain(tiny_pretraining.recipe(folder, **overrides), data or folder / "data", output, **settings)


def weights(folder: Path) -> bytes:
    return (folder / "model/model.safetensors").read_bytes()


def without_seconds(records) -> list:
    return [replace(record, seconds=0.0, eval_seconds=0.0) for record in records]


def kill(folder: Path, output: Path, step: int) -> int:
    """Run in a process of its own, to be killed in the middle of step `step`; its exit status."""
    arguments = (str(folder), str(output), "--kill-at", str(step))
    return warm_process.exit_code(warm_process.start(pretraining_process.main, *arguments))


@pytest.fixture(scope="module")
def whole(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> PretrainResult:
    """A run that nothing disturbed."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    result = run(folder, tmp_path_factory.mktemp("whole"))
    torch.set_num_threads(before)
    return result


def test_a_run_in_two_phases(whole: PretrainResult) -> None:
    assert whole.n_steps == 12 and [r.step for r in whole.logs] == [2, 4, 6, 8, 10, 12]
    assert [r.step for r in whole.evaluations] == [4, 8, 12]
    assert whole.n_tokens == sum(r.train["n_tokens"] for r in whole.logs) > 12 * 4 * 20
    rates = [record.learning_rate / 1e-2 for record in whole.logs]
    assert np.allclose(rates, [1 / 3, 1, 7 / 9, 5 / 9, 3 / 9, 1 / 9])  # of steps 1, 3, 5 ..., counted from 0
    names = {path.name for path in whole.folder.iterdir()}
    assert names == {"recipe.yaml", "result.json", "model", "model-short", "tensorboard"}
    assert weights(whole.folder) != (whole.folder / "model-short/model.safetensors").read_bytes()


def test_tensorboard_holds_every_figure(whole: PretrainResult) -> None:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    events = accumulator.EventAccumulator(str(whole.folder / "tensorboard"))
    events.Reload()
    assert [(e.step, pytest.approx(e.value)) for e in events.Scalars("train/mlm_loss")] == [
        (r.step, r.train["mlm_loss"]) for r in whole.logs
    ]
    assert [e.step for e in events.Scalars("dev/segment_accuracy")] == [4, 8, 12]


def test_it_learns(tmp_path: Path, one_thread: None) -> None:
    text = "今天天气很充实，我在北京大学。\n他不去研究生活，有天下雨。\n学生在大学。\n\n" * 30
    tiny_corpus.data_folder(tmp_path, text=text, held_out=6)
    wider = {"model.width": 32, "model.embedding_width": 32, "model.position_width": 16}
    steps = {"short.n_steps": 250, "long.n_steps": 0}
    steps |= {"short.n_characters": 40, "short.max_tokens": 80}  # room for one of the documents
    steps |= {"short.micro_batch_size": 8}
    rhythm = {"training.log_every": "20 steps", "training.eval_every": "125 steps", "checkpoints.every": "500 steps"}
    rates = {"optimizer.learning_rate": 5e-3, **rhythm}
    result = run(tmp_path, tmp_path / "run", **wider, **steps, **NO_DROPOUT, **rates)
    # 3.4 is what the frequencies of the tokens alone give: less is learned from the context.
    assert result.logs[0].train["mlm_loss"] > 3.4 and result.logs[-1].train["mlm_loss"] < 3.0
    first, last = (record.scores for record in result.evaluations)
    assert last["mlm_loss"] < first["mlm_loss"] and last["sentence_accuracy"] == 1.0


def test_sigkill_then_resume_gives_equal_weights(
    folder: Path, tmp_path: Path, whole: PretrainResult, one_thread: None
) -> None:
    # Checkpoints are after steps 3, 6, 8 (end of a phase), 9 and 12; two are kept.
    assert kill(folder, tmp_path, 7) == -signal.SIGKILL
    assert sorted(p.name for p in tmp_path.glob("checkpoint-*")) == ["checkpoint-3", "checkpoint-6"]
    resumed = run(folder, tmp_path)
    assert weights(tmp_path) == weights(whole.folder)
    assert without_seconds(resumed.history) == without_seconds(whole.history)


def test_sigkills_at_random_steps(folder: Path, tmp_path: Path, whole: PretrainResult, one_thread: None) -> None:
    for step in stopping.steps(2, below=12, seed=2):
        assert kill(folder, tmp_path, step) == -signal.SIGKILL
    resumed = run(folder, tmp_path)
    assert weights(tmp_path) == weights(whole.folder)
    assert without_seconds(resumed.history) == without_seconds(whole.history)


@pytest.mark.parametrize("step", [0, 8, 11])
def test_resume_from_anywhere(folder: Path, tmp_path: Path, whole: PretrainResult, one_thread: None, step: int) -> None:
    with stopping.stopped_at(step, stopping.interrupt), pytest.raises(KeyboardInterrupt):
        run(folder, tmp_path)
    run(folder, tmp_path)
    assert weights(tmp_path) == weights(whole.folder)
    assert weights(tmp_path) and (tmp_path / "model-short").is_dir()


def test_sittings_of_limited_time(folder: Path, tmp_path: Path, whole: PretrainResult, one_thread: None) -> None:
    assert run(folder, tmp_path, stop_after=0.0) is None
    assert [p.name for p in tmp_path.glob("checkpoint-*")] == ["checkpoint-1"]
    n_sittings = 1
    while run(folder, tmp_path, stop_after=0.0) is None:
        n_sittings += 1
    # The sitting that ends the first phase also takes a step of the second.
    assert n_sittings == 10 and weights(tmp_path) == weights(whole.folder)


def test_workers_make_the_same_batches(folder: Path, tmp_path: Path, whole: PretrainResult, one_thread: None) -> None:
    run(folder, tmp_path, **{"training.n_workers": 2})
    assert weights(tmp_path) == weights(whole.folder)


@pytest.mark.parametrize(
    "overrides",
    [
        {"instances.use_words": "false", "instances.masking": "words", "model.relations": "null"},
        {"instances.masking": "tokens", "instances.sentence_task": "three_way"},
        {"model.relations": "null", "model.distances": "false", "model.embedding_width": "null"},
        {"training.precision": "bf16"},
    ],
    ids=["characters", "tokens, three-way", "no positions", "bf16"],
)
def test_every_kind_trains(folder: Path, tmp_path: Path, one_thread: None, overrides: dict) -> None:
    result = run(folder, tmp_path, **{"short.n_steps": 2, "long.n_steps": 1, "schedule.warmup": "1 steps"}, **overrides)
    assert result.n_steps == 3 and all(np.isfinite(record.train["mlm_loss"]) for record in result.logs)
    made = PretrainedLatticeBert.from_pretrained(result.model)
    has_words = overrides.get("instances.use_words") != "false"
    assert made.facts["n_steps"] == 3 and (made.vocabulary.n_words > 0) == has_words
    assert made.vocabulary.pieces == tiny_corpus.PIECES and len(made.features(["研究生活"])[0].char_vectors) == 4


def test_gradient_accumulation_changes_nothing(folder: Path, tmp_path: Path, one_thread: None) -> None:
    logs = [
        run(folder, tmp_path / str(size), **{"short.micro_batch_size": size, "long.n_steps": 0}, **NO_DROPOUT).logs
        for size in (2, 8)
    ]
    assert [r.train["mlm_loss"] for r in logs[0]] == pytest.approx([r.train["mlm_loss"] for r in logs[1]], abs=2e-4)


def test_another_recipe_seed_or_data_is_refused(
    folder: Path, tmp_path: Path, one_thread: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(folder, tmp_path, stop_after=0.0) is None
    with pytest.raises(RecipeError, match=r"seed 4 \(was 3\)"):
        run(folder, tmp_path, seed=4)
    with pytest.raises(RecipeError, match=r"short.batch_size 9 \(was 8\).*resume=False"):
        run(folder, tmp_path, **{"short.batch_size": 9})
    own = tmp_path / "data"
    shutil.copytree(folder / "data", own)
    shutil.rmtree(own / "shard-00001")
    with pytest.raises(DataError, match="shard-00001: missing"):
        run(folder, tmp_path, data=own)
    other = tiny_corpus.data_folder(tmp_path / "other", text=tiny_corpus.corpus_text(60, seed=2))
    with pytest.raises(ModelError, match="other data"):
        run(folder, tmp_path, data=other)
    assert run(folder, tmp_path, seed=4, resume=False, stop_after=0.0) is None


def test_a_finished_run_is_not_repeated(folder: Path, whole: PretrainResult, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Trainer, "run", lambda *_, **__: pytest.fail("trained again"))
    assert run(folder, whole.folder) == whole


def test_a_finished_run_on_other_data_is_refused(folder: Path, whole: PretrainResult, tmp_path: Path) -> None:
    other = tiny_corpus.data_folder(tmp_path / "other", text=tiny_corpus.corpus_text(60, seed=2))
    with pytest.raises(RecipeError, match="holds a finished run on other data"):
        run(folder, whole.folder, data=other)
    assert run(folder, whole.folder, data=tmp_path / "gone") == whole


@pytest.mark.parametrize("name", ["state-00000-of-00001.safetensors", "state.json", "history.json"])
def test_damaged_checkpoint_is_named(folder: Path, tmp_path: Path, one_thread: None, name: str) -> None:
    run(folder, tmp_path, stop_after=0.0)
    path = tmp_path / "checkpoint-1" / name
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(ModelError, match=name):
        run(folder, tmp_path)


def test_lines_longer_than_the_instances_are_cut(folder: Path, tmp_path: Path, one_thread: None) -> None:
    sizes = {"short.n_characters": 12, "short.max_tokens": 14, "long.n_steps": 0, "short.n_steps": 4}
    assert run(folder, tmp_path, **sizes).n_steps == 4


def test_a_gradient_that_is_not_finite_stops_the_run(folder: Path, tmp_path: Path, one_thread: None) -> None:
    with pytest.raises(CigeError, match=r"the loss is .*learning_rate"):
        run(folder, tmp_path, **{"optimizer.learning_rate": 1e30, "schedule.warmup": "0 steps"})
