"""A run that is killed and started again ends with the weights of one that was left alone."""

from __future__ import annotations

import errno
import json
import re
import signal
from dataclasses import replace
from pathlib import Path

import interrupted_training
import numpy as np
import pytest
import stopping
import tiny_run
import warm_process
from safetensors.torch import load_file
from tiny_bert import write_bert

from cige.engine.history import Record
from cige.engine.state_files import StatePart
from cige.engine.trainer import Trainer
from cige.errors import CigeError, ModelError, RecipeError
from cige.training.recipe import LexiconConfig
from cige.training.train import TrainResult, train


def run(data_dir: Path, output: Path, **options) -> TrainResult:
    settings = {"seed": interrupted_training.SEED, "device": "cpu", "show_progress": False} | options
    return train(settings.pop("recipe", interrupted_training.RECIPE), output, data_dir=data_dir, **settings)


def weights(result: TrainResult) -> dict[str, bytes]:
    return {k: v.numpy().tobytes() for k, v in load_file(result.model / "model.safetensors").items()}


def kill(data_dir: Path, output: Path, step: int) -> int:
    """Run in a process of its own, to be killed in the middle of step `step`; its exit status."""
    return warm_process.exit_code(warm_process.start(interrupted_training.train_until, step, data_dir, output))


def without_seconds(record: Record) -> Record:
    return replace(record, seconds=0.0, eval_seconds=0.0)


def interrupted(data_dir: Path, output: Path, *, step: int, **options) -> None:
    """Run until step `step`, then fail within it."""
    with stopping.stopped_at(step, stopping.interrupt), pytest.raises(KeyboardInterrupt):
        run(data_dir, output, **options)


@pytest.fixture(scope="module")
def uninterrupted(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> TrainResult:
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    result = run(data_dir, tmp_path_factory.mktemp("whole"))
    torch.set_num_threads(before)
    return result


def test_sigkill_then_resume_gives_equal_weights(
    data_dir: Path, tmp_path: Path, uninterrupted: TrainResult, one_thread: None
) -> None:
    # Epochs end at steps 7, 14 and 21, checkpoints are at 3, 6, 7, 9, 12 ...: step 11 is one and a half after the last.
    assert kill(data_dir, tmp_path, 11) == -signal.SIGKILL
    assert [p.name for p in tmp_path.glob("checkpoint-*")] == ["checkpoint-9"]
    resumed = run(data_dir, tmp_path)
    assert weights(resumed) == weights(uninterrupted)
    for a, b in zip(resumed.history, uninterrupted.history, strict=True):
        assert without_seconds(a) == without_seconds(b)


def test_sigkills_at_random_steps(data_dir: Path, tmp_path: Path, uninterrupted: TrainResult, one_thread: None) -> None:
    for step in stopping.steps(2, below=21, seed=1):
        assert kill(data_dir, tmp_path, step) == -signal.SIGKILL
    resumed = run(data_dir, tmp_path)
    assert weights(resumed) == weights(uninterrupted)
    assert list(map(without_seconds, resumed.history)) == list(map(without_seconds, uninterrupted.history))


@pytest.mark.parametrize("step", [1, 7, 20])
def test_resume_from_anywhere(
    data_dir: Path,
    tmp_path: Path,
    uninterrupted: TrainResult,
    one_thread: None,
    step: int,
) -> None:
    interrupted(data_dir, tmp_path, step=step)
    assert weights(run(data_dir, tmp_path)) == weights(uninterrupted)


def test_a_finished_run_is_not_repeated(
    data_dir: Path, uninterrupted: TrainResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Trainer, "run", lambda *_, **__: pytest.fail("trained again"))
    assert run(data_dir, uninterrupted.folder) == uninterrupted


def test_a_run_cut_off_before_its_model_was_saved_only_saves(
    data_dir: Path, tmp_path: Path, uninterrupted: TrainResult, one_thread: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("cige.training.train.LatticeModel.save", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            run(data_dir, tmp_path)
    monkeypatch.setattr(Trainer, "_step", lambda *_, **__: pytest.fail("trained again"))
    assert weights(run(data_dir, tmp_path)) == weights(uninterrupted)


def test_another_recipe_or_seed_is_refused(data_dir: Path, uninterrupted: TrainResult) -> None:
    with pytest.raises(RecipeError, match=r"seed 4 \(was 3\)"):
        run(data_dir, uninterrupted.folder, seed=4)
    with pytest.raises(RecipeError, match=r"optimizer.learning_rate 0.02 \(was 0.01\).*resume=False"):
        run(data_dir, uninterrupted.folder, recipe=tiny_run.tiny_recipe(optimizer__learning_rate=0.02))


def test_a_run_that_failed_before_it_kept_anything_can_be_put_right(data_dir: Path, tmp_path: Path) -> None:
    wrong = replace(interrupted_training.RECIPE, lexicon=LexiconConfig(path="no-such-list.txt"))
    with pytest.raises(CigeError, match="no-such-list"):
        run(data_dir, tmp_path, recipe=wrong)
    assert run(data_dir, tmp_path).best_epoch > 0


def test_settings_that_a_later_version_adds_do_not_hinder(
    data_dir: Path, tmp_path: Path, uninterrupted: TrainResult, one_thread: None
) -> None:
    interrupted(data_dir, tmp_path, step=8)
    path = tmp_path / "recipe.yaml"
    text = path.read_text(encoding="utf-8")
    older = "\n".join(line for line in text.splitlines() if "decay:" not in line)  # as if it had no such keys yet
    path.write_text(older, encoding="utf-8")
    assert older != text and weights(run(data_dir, tmp_path)) == weights(uninterrupted)


def test_without_resume_the_run_starts_over(data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = tiny_run.tiny_recipe(n_epochs=1)
    first = weights(run(data_dir, tmp_path, recipe=recipe))
    second = run(data_dir, tmp_path, recipe=recipe, seed=9, resume=False)
    assert second.seed == 9 and weights(second) != first
    assert "seed: 9" in (tmp_path / "recipe.yaml").read_text(encoding="utf-8")


def test_full_disk_keeps_the_old_checkpoint(
    data_dir: Path, tmp_path: Path, uninterrupted: TrainResult, one_thread: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    def full(part, path):
        if len(calls) == 2:
            Path(path).write_bytes(b"half of it")
            raise OSError(errno.ENOSPC, "No space left on device")
        calls.append(path)
        write(part, path)

    write = StatePart.write
    with monkeypatch.context() as patch:
        patch.setattr(StatePart, "write", full)
        with pytest.raises(CigeError, match=r"No space left on device.*run the same command again"):
            run(data_dir, tmp_path)
    names = sorted(p.name for p in tmp_path.iterdir() if p.name != "tensorboard")
    assert names == ["best.safetensors", "checkpoint-6", "recipe.yaml"]  # nothing half written is left
    assert weights(run(data_dir, tmp_path)) == weights(uninterrupted)


@pytest.mark.parametrize("name", ["state-00000-of-00001.safetensors", "state.json", "history.json"])
@pytest.mark.parametrize("damage", ["missing", "cut"])
def test_damaged_checkpoint_is_named(data_dir: Path, tmp_path: Path, name: str, damage: str) -> None:
    interrupted(data_dir, tmp_path, step=4)
    path = tmp_path / "checkpoint-3" / name
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(ModelError, match=name):
        run(data_dir, tmp_path)


def test_missing_best_weights_are_told_before_training_goes_on(data_dir: Path, tmp_path: Path) -> None:
    interrupted(data_dir, tmp_path, step=8)
    (tmp_path / "best.safetensors").unlink()
    with pytest.raises(ModelError, match=r"best\.safetensors: missing, the best weights so far"):
        run(data_dir, tmp_path)


@pytest.mark.parametrize("name", ["ner/tiny/train.bmes", "ner/tiny/dev.bmes", "vectors/word.npz", "lexicon/words.txt"])
def test_other_data_than_at_the_start_is_refused(data_dir: Path, tmp_path: Path, name: str) -> None:
    recipe = replace(interrupted_training.RECIPE, lexicon=LexiconConfig("lexicon/words.txt"))
    interrupted(data_dir, tmp_path / "run", step=4, recipe=recipe)
    other = tiny_run.write_data_folder(tmp_path / "data")
    if name.endswith(".npz"):
        with np.load(other / name) as old:
            np.savez(other / name, words=old["words"], vectors=old["vectors"][::-1], counts=old["counts"])
    else:
        parts = (other / name).read_text(encoding="utf-8").strip().split("\n\n" if name.endswith("bmes") else "\n")
        (other / name).write_text("\n\n".join(parts[:-1]), encoding="utf-8")
    with pytest.raises(ModelError, match="other data, vectors or words"):
        run(other, tmp_path / "run", recipe=recipe)


def test_a_finished_run_on_data_that_has_changed_is_refused(data_dir: Path, tmp_path: Path) -> None:
    recipe, data = tiny_run.tiny_recipe(n_epochs=1), tiny_run.write_data_folder(tmp_path / "data")
    first = run(data, tmp_path / "run", recipe=recipe)
    file = data / "ner/tiny/train.bmes"
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("PER", "LOC"), encoding="utf-8")  # as many sentences as before, with corrected labels
    with pytest.raises(RecipeError, match=r"other sentences.*resume=False"):
        run(data, tmp_path / "run", recipe=recipe)
    file.write_text(text, encoding="utf-8")
    assert run(data, tmp_path / "run", recipe=recipe) == first
    file.unlink()
    assert run(data, tmp_path / "run", recipe=recipe) == first  # a result does not need its data


@pytest.mark.parametrize(
    ("setting", "name"),
    [("vectors.word", "vectors/word.npz"), ("lexicon.path", "lexicon/words.txt"), ("lexicon.gazetteers[1]", "b.txt")],
)
def test_a_finished_run_with_files_that_have_changed_is_refused(tmp_path: Path, setting: str, name: str) -> None:
    data = tiny_run.write_data_folder(tmp_path / "data")
    for list_of_names in ("a.txt", "b.txt"):
        (data / list_of_names).write_text("南京市\n", encoding="utf-8")
    words = LexiconConfig("lexicon/words.txt", gazetteers=("a.txt", "b.txt"))
    recipe = replace(tiny_run.tiny_recipe(n_epochs=1), lexicon=words)
    first = run(data, tmp_path / "run", recipe=recipe)
    assert run(data, tmp_path / "run", recipe=recipe) == first
    raw = (data / name).read_bytes()
    (data / name).write_bytes(raw + b"\n")
    with pytest.raises(RecipeError, match=re.escape(f"other files: {setting} ({data / name}) changed since; choose")):
        run(data, tmp_path / "run", recipe=recipe)
    result = tmp_path / "run" / "result.json"
    recorded = result.read_text(encoding="utf-8")
    older = {key: value for key, value in json.loads(recorded).items() if key != "inputs"}
    result.write_text(json.dumps(older), encoding="utf-8")
    assert run(data, tmp_path / "run", recipe=recipe) == replace(first, inputs={})  # of an earlier version
    result.write_text(recorded, encoding="utf-8")
    (data / name).unlink()
    assert run(data, tmp_path / "run", recipe=recipe) == first


def test_over_a_bert_whose_vectors_are_kept(data_dir: Path, tmp_path: Path, one_thread: None) -> None:
    """Training reads texts in bfloat16, development scores do not: which reads one first makes no difference."""
    pytest.importorskip("transformers")
    bert = str(write_bert(tmp_path / "bert"))
    recipe = interrupted_training.RECIPE
    recipe = replace(
        recipe,
        model=replace(recipe.model, bert=bert, bert_tuned=False),
        data=replace(recipe.data, dev=recipe.data.train),
        training=replace(recipe.training, precision="bf16"),
    )
    whole = run(data_dir, tmp_path / "whole", recipe=recipe)
    interrupted(data_dir, tmp_path / "resumed", step=11, recipe=recipe)
    resumed = run(data_dir, tmp_path / "resumed", recipe=recipe)
    assert weights(resumed) == weights(whole)
    assert [without_seconds(x) for x in resumed.history] == [without_seconds(x) for x in whole.history]
