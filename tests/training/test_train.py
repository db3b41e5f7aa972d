"""train: from a recipe to a model folder that works."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tiny
import tiny_run
import torch

from cige.data import read_sentences, write_sentences
from cige.engine import optimizer
from cige.engine.history import Record
from cige.engine.run_folder import read_result
from cige.errors import CigeError, RecipeError
from cige.folders.in_use import in_use
from cige.models.model import LatticeModel
from cige.training.files import find_file
from cige.training.objective import EvaluationSet
from cige.training.recipe import DataConfig, LexiconConfig, Recipe, load_recipe
from cige.training.setup import set_up
from cige.training.sources import read_data
from cige.training.train import TrainResult, train


def run(recipe: Recipe, data_dir: Path, output: Path) -> TrainResult:
    return train(recipe, output, seed=1, data_dir=data_dir, device="cpu", show_progress=False)


def loss(record: Record) -> float:
    return record.train["loss"]


def dev_f1(model: LatticeModel, path: Path) -> float:
    sentences = read_sentences(path)
    lattices = model.lattices([s.text for s in sentences])
    dev = EvaluationSet(sentences, lattices, vocabulary=model.vocabulary, scheme=model.scheme, max_pairs=10**6)
    return dev.score(model.tagger).f1


def test_overfits_twenty_sentences_and_saves_what_it_scored(data_dir: Path, tmp_path: Path) -> None:
    twenty = tmp_path / "twenty.bmes"
    write_sentences(twenty, tiny.sentences(20, seed=1))
    recipe = replace(tiny_run.tiny_recipe(n_epochs=25), data=DataConfig(train=str(twenty), dev=str(twenty)))
    result = run(recipe, data_dir, tmp_path / "run")
    assert result.dev_f1 > 0.99
    assert loss(result.history[-1]) < 0.1 * loss(result.history[0])
    model = LatticeModel.load(result.model)
    assert model.labels == tiny.LABELS and model.facts["seed"] == 1 and model.facts["recipe"]["name"] == "tiny"
    assert dev_f1(model, twenty) == result.dev_f1


def test_result_and_folder(data_dir: Path, tmp_path: Path) -> None:
    recipe = tiny_run.tiny_recipe()
    result = run(recipe, data_dir, tmp_path)
    assert read_result(tmp_path, TrainResult) == result
    assert [r.epoch for r in result.history] == [1, 2, 3] and [r.step for r in result.history] == [7, 14, 21]
    assert result.dev_f1 == max(r.score for r in result.history) == result.history[result.best_epoch - 1].score
    assert result.seconds > 0 and 0 < result.padding_share < 1 and result.machine["device"] == "cpu"
    left = {p.name for p in tmp_path.iterdir()} - {"tensorboard"}
    assert left == {"recipe.yaml", "result.json", "model"}
    assert load_recipe(tmp_path / "recipe.yaml") == recipe
    assert json.loads((tmp_path / "result.json").read_text(encoding="utf-8"))["name"] == "tiny"


def test_tensorboard_gets_dev_f1(data_dir: Path, tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    result = run(tiny_run.tiny_recipe(), data_dir, tmp_path)
    (file,) = (tmp_path / "tensorboard").rglob("events.*")
    events = EventAccumulator(str(file)).Reload()
    assert [e.step for e in events.Scalars("dev/f1")] == [7, 14, 21]
    assert [e.value for e in events.Scalars("dev/f1")] == pytest.approx([r.score for r in result.history])


def test_best_epoch_is_the_one_kept(data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dev F1 is made up, so that the first epoch wins."""
    seen = []
    ordinary = EvaluationSet.score

    def score(self, tagger):
        seen.append({k: v.clone() for k, v in tagger.state_dict().items()})
        report = ordinary(self, tagger)
        worse = replace(report.overall, n_correct=report.overall.n_gold if len(seen) == 1 else 0)
        return replace(report, overall=worse)

    monkeypatch.setattr(EvaluationSet, "score", score)
    result = run(tiny_run.tiny_recipe(), data_dir, tmp_path)
    assert result.best_epoch == 1 and len(seen) == 3
    kept = LatticeModel.load(result.model).tagger.state_dict()
    assert all(torch.equal(kept[k], v) for k, v in seen[0].items())
    assert not all(torch.equal(kept[k], v) for k, v in seen[2].items())


def test_patience_stops_early(data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ordinary = EvaluationSet.score
    monkeypatch.setattr(
        EvaluationSet, "score", lambda self, t: replace(r := ordinary(self, t), overall=replace(r.overall, n_correct=0))
    )
    result = run(tiny_run.tiny_recipe(n_epochs=9, patience=2), data_dir, tmp_path)
    assert len(result.history) == 3 and result.best_epoch == 1


def test_eval_start_epoch(data_dir: Path, tmp_path: Path) -> None:
    result = run(tiny_run.tiny_recipe(eval_start_epoch=3), data_dir, tmp_path)
    assert [not r.scores for r in result.history] == [True, True, False] and result.best_epoch == 3


def test_averaged_weights_are_what_is_scored_and_kept(data_dir: Path, tmp_path: Path, one_thread: None) -> None:
    plain = run(tiny_run.tiny_recipe(), data_dir, tmp_path / "plain")
    averaged = run(tiny_run.tiny_recipe(average_weights=0.9), data_dir, tmp_path / "averaged")
    # Training itself is the same, but for rounding: rows of tables are brought up to date before each averaging.
    assert [loss(r) for r in plain.history] == pytest.approx([loss(r) for r in averaged.history], abs=1e-4)
    assert [r.score for r in plain.history] != [r.score for r in averaged.history]
    assert dev_f1(LatticeModel.load(averaged.model), data_dir / "ner/tiny/dev.bmes") == averaged.dev_f1


def test_averaged_tables_are_those_of_dense_adamw(
    data_dir: Path, tmp_path: Path, one_thread: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = tiny_run.tiny_recipe(n_epochs=1, batches__batch_size=2, average_weights=0.9)  # 32 steps: four updates
    by_rows = run(recipe, data_dir, tmp_path / "rows")
    monkeypatch.setattr(optimizer, "RowAdamW", _DenseAdamW)
    dense = run(recipe, data_dir, tmp_path / "dense")
    found, expected, start = (
        {name: value for name, value in tagger.state_dict().items() if name.endswith("tuned")}
        for tagger in (
            LatticeModel.load(by_rows.model).tagger,
            LatticeModel.load(dense.model).tagger,
            set_up(recipe, data_dir=data_dir, seed=1).tagger,
        )
    )
    assert len(found) == 3
    for name, value in expected.items():
        moved, error = ((value - other[name]).norm().item() for other in (start, found))
        assert moved > 1e-2 and error < 1e-3 * moved  # 8e-2 where rows are averaged as last read


class _DenseAdamW(torch.optim.AdamW):
    """torch's own AdamW of whole tables, in RowAdamW's place."""

    def __init__(self, groups: list[dict], *, tables: list, **settings: Any):
        super().__init__(groups, **settings)

    def catch_up_all(self) -> None: ...

    def catch_up(self, table: torch.Tensor, rows: torch.Tensor) -> None: ...

    def step(self, closure: None = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None and parameter.grad.is_sparse:
                    parameter.grad = parameter.grad.to_dense()
        super().step(closure)


@pytest.mark.parametrize(
    "training",
    [
        {"precision": "bf16"},
        {"optimizer__name": "sgd", "schedule__name": "inverse_epoch", "schedule__warmup": "1 epochs"}
        | {"optimizer__clip_norm": None, "optimizer__clip_value": 5.0},
        {"batches__pool_batches": 3, "batches__max_pairs": 3000},
        {"batches__micro_batch_size": 3},
    ],
)
def test_other_ways_to_train_learn_too(data_dir: Path, tmp_path: Path, training: dict) -> None:
    result = run(tiny_run.tiny_recipe(**training), data_dir, tmp_path)
    assert loss(result.history[-1]) < 0.7 * loss(result.history[0])


def test_seeds(data_dir: Path, tmp_path: Path) -> None:
    recipe = tiny_run.tiny_recipe(n_epochs=1)
    setups = [set_up(recipe, seed=seed, data_dir=data_dir) for seed in (1, 1, 2)]
    assert setups[0].fingerprint() == setups[1].fingerprint() != setups[2].fingerprint()


def test_a_loss_that_is_not_finite_is_an_error(data_dir: Path, tmp_path: Path) -> None:
    fast = {"optimizer__name": "sgd", "optimizer__learning_rate": 1e30, "optimizer__clip_norm": None}
    recipe = tiny_run.tiny_recipe(**fast, schedule__warmup="0 steps")
    with pytest.raises(CigeError, match=r"step 2: the loss is (nan|inf).*untouched.*learning_rate"):
        run(recipe, data_dir, tmp_path)


def test_held_out_sentences_and_the_lexicon_file(data_dir: Path) -> None:
    data = DataConfig(train="ner/tiny/train.bmes", n_held_out=10, n_train=30)
    train_part, dev_part = read_data(data, data_dir)
    everything = read_sentences(data_dir / "ner/tiny/train.bmes")
    assert train_part == everything[:30] and dev_part == everything[-10:]
    with pytest.raises(RecipeError, match="n_held_out is 64, but there are 64"):
        read_data(replace(data, n_held_out=64), data_dir)
    recipe = replace(tiny_run.tiny_recipe(), lexicon=LexiconConfig("lexicon/words.txt"))
    (data_dir / "lexicon/two.txt").write_text("北京\n上海\n", encoding="utf-8")
    assert len(set_up(recipe, seed=1, data_dir=data_dir).lexicon) == len(tiny.WORDS)
    two = replace(recipe, lexicon=LexiconConfig("lexicon/two.txt"))
    assert list(set_up(two, seed=1, data_dir=data_dir).lexicon) == ["北京", "上海"]


def test_paths(data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CIGE_DATA", raising=False)
    name = "vectors/char.npz"
    assert find_file(name, data_dir) == data_dir / name
    assert find_file(str(data_dir / name)) == data_dir / name
    with pytest.raises(RecipeError, match=r"vectors/char\.npz: no such file"):
        find_file(name)
    monkeypatch.setenv("CIGE_DATA", str(data_dir))
    assert find_file(name) == data_dir / name


def test_sentences_without_entities_are_refused(data_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "none.bmes").write_text("天 O\n气 O\n", encoding="utf-8")
    data = DataConfig(train=str(tmp_path / "none.bmes"), dev="ner/tiny/dev.bmes")
    recipe = replace(tiny_run.tiny_recipe(), data=data)
    with pytest.raises(RecipeError, match="have no entities"):
        run(recipe, data_dir, tmp_path / "run")


@pytest.mark.parametrize("seed", [-1, 2**63])
def test_seeds_that_are_none(data_dir: Path, tmp_path: Path, seed: int) -> None:
    with pytest.raises(RecipeError, match=r"seed is .*, expected a whole number from 0"):
        train(tiny_run.tiny_recipe(), tmp_path / "run", seed=seed, data_dir=data_dir)
    assert not (tmp_path / "run").exists()


def test_a_folder_that_another_run_writes_to_is_left_alone(data_dir: Path, tmp_path: Path) -> None:
    with in_use(tmp_path / "run", by="another run", error=RecipeError):
        with pytest.raises(RecipeError, match="run: another run is writing there; wait for it, or stop it"):
            train(tiny_run.tiny_recipe(), tmp_path / "run", data_dir=data_dir, resume=False)
        assert not list((tmp_path / "run").iterdir())


def test_unknown_device(data_dir: Path, tmp_path: Path) -> None:
    with pytest.raises(CigeError, match="expected auto, cpu or cuda"):
        train(tiny_run.tiny_recipe(), tmp_path, data_dir=data_dir, device="tpu", show_progress=False)


def test_progress_says_dev_f1_each_epoch(data_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = train(tiny_run.tiny_recipe(), tmp_path, data_dir=data_dir, device="cpu")
    lines = capsys.readouterr().err.splitlines()
    for record, line in zip(result.history, lines, strict=True):
        assert f"epoch {record.epoch}/3" in line and f"loss {loss(record):.4f}" in line
        assert f"dev F1 {100 * record.score:.2f}" in line


def test_a_run_with_labels_of_words(data_dir: Path, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"label_prob": 0.7, "wrong_label_prob": 0.1, "unknown_label_prob": 0.3}
    recipe = tiny_run.tiny_recipe(
        model__word_labels=True, user_words__sentence_prob=1.0, **{f"user_words__{k}": v for k, v in settings.items()}
    )
    result = run(recipe, data_dir, tmp_path / "run")
    model = LatticeModel.load(result.model)
    assert model.labels == tiny.LABELS == list(model.vocabulary.word_labels) and "B-*" in model.tags
    weight = model.tagger.encoder.word_labels.weight
    assert not weight[0].any() and weight[1:].abs().sum(1).all()
    assert dev_f1(model, data_dir / "ner/tiny/dev.bmes") == result.dev_f1

    file = tmp_path / "next.yaml"
    file.write_text(f"start_from: {result.model}\ndata: {{train: ner/tiny/train.bmes, dev: ner/tiny/dev.bmes}}\n")
    again = set_up(load_recipe(file), seed=2, data_dir=data_dir)
    assert torch.equal(again.tagger.encoder.word_labels.weight, weight) and "B-*" not in again.tagger.tags
