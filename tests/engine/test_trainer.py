"""The loop: equal weights however a run is cut up, what it refuses, and what it keeps."""

from __future__ import annotations

import contextlib
import json
import random
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import stopping
import torch
import toy
from safetensors.torch import load_file

from cige.engine import trainer as module
from cige.engine.devices import prepare
from cige.engine.optimizer import finish_updates
from cige.engine.run_folder import BEST
from cige.engine.settings import OptimizerConfig, ScheduleConfig
from cige.engine.trainer import Trainer, seed_step
from cige.errors import CigeError, ModelError, RecipeError


@pytest.fixture(autouse=True)
def _one_thread(one_thread: None) -> None: ...


def run(folder: Path, objective: toy.Objective | None = None, **settings: Any) -> Trainer:
    objective = objective or toy.Objective()
    made = toy.trainer(folder, n_steps=objective.n_steps, **settings)
    made.resume()
    assert made.run(objective)
    finish_updates(made._optimizer)
    return made


def figures(made: Trainer) -> list[Any]:
    return [(r.step, r.epoch, r.learning_rate, r.train, r.scores) for r in made.state.records]


@pytest.mark.parametrize("average_weights", [0.0, 0.6])
@pytest.mark.parametrize("sgd", [False, True])
def test_a_run_cut_up_at_random_steps_ends_as_one_that_was_not(
    tmp_path: Path, average_weights: float, sgd: bool
) -> None:
    settings: dict[str, Any] = {"average_weights": average_weights, "every": "3 steps"}
    if sgd:
        settings["optimizer"] = OptimizerConfig(name="sgd", learning_rate=0.05)
    whole = run(tmp_path / "whole", **settings)
    rng = random.Random(0)
    for _ in range(6):
        with (
            contextlib.suppress(KeyboardInterrupt),
            stopping.stopped_at(rng.randrange(20), stopping.interrupt),
        ):
            run(tmp_path / "cut", **settings)
    cut = run(tmp_path / "cut", **settings)
    assert toy.weights(cut.network) == toy.weights(whole.network) and figures(cut) == figures(whole)
    best = [load_file(tmp_path / name / BEST) for name in ("whole", "cut")]
    assert all(torch.equal(best[0][name], best[1][name]) for name in best[0])


def test_how_often_a_run_is_saved_changes_nothing(tmp_path: Path) -> None:
    rarely, often = run(tmp_path / "a", average_weights=0.6), run(tmp_path / "b", average_weights=0.6, every="1 steps")
    assert toy.weights(rarely.network) == toy.weights(often.network) and figures(rarely) == figures(often)


def test_a_run_in_sittings_of_one_step(tmp_path: Path) -> None:
    whole = run(tmp_path / "whole")
    n_sittings = 0
    while n_sittings < 100:
        n_sittings += 1
        objective = toy.Objective()
        made = toy.trainer(tmp_path / "cut", n_steps=objective.n_steps)
        made.resume()
        if made.run(objective, stop_at=time.monotonic()):
            break
    finish_updates(made._optimizer)
    assert n_sittings == 20 and toy.weights(made.network) == toy.weights(whole.network)
    assert figures(made) == figures(whole)


def test_passes_of_a_step_add_up_to_its_gradient(tmp_path: Path) -> None:
    def trained(**batches: int) -> Trainer:
        objective = toy.Objective(**batches)
        made = toy.trainer(tmp_path / str(batches), n_steps=objective.n_steps)
        made.network.dropout.p = 0.0
        made.run(objective)
        return made

    whole, passes = trained(), trained(micro_batch_size=2)
    for a, b in zip(whole.network.parameters(), passes.network.parameters(), strict=True):
        torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-4)


def test_one_objective_after_another(tmp_path: Path) -> None:
    """The first stops within its data, the second begins at the beginning of its own."""

    def objectives() -> list[toy.Objective]:
        return [toy.Objective(n_steps=7), toy.Objective(n_steps=4, batch_size=4)]

    def both(folder: Path) -> Trainer:
        made = toy.trainer(
            folder, n_steps=11, n_epochs=None, log_every="3 steps", eval_every="5 steps", every="4 steps"
        )
        made.resume()
        assert all(made.run(objective) for objective in objectives())
        finish_updates(made._optimizer)
        return made

    whole = both(tmp_path / "whole")
    records = {r.step: (bool(r.train), bool(r.scores)) for r in whole.state.records}
    assert records == {
        3: (True, False), 5: (False, True), 6: (True, False), 7: (True, True), 9: (True, False),
        10: (False, True), 11: (True, True),
    }  # fmt: skip
    for step in (2, 7, 9):
        folder = tmp_path / str(step)
        with stopping.stopped_at(step, stopping.interrupt), pytest.raises(KeyboardInterrupt):
            both(folder)
        cut = both(folder)
        assert toy.weights(cut.network) == toy.weights(whole.network) and figures(cut) == figures(whole)


@pytest.mark.parametrize("poison", [float("nan"), float("inf")])
@pytest.mark.parametrize("settings", [{}, {"clip_norm": None}, {"clip_norm": None, "clip_value": 0.1}])
def test_what_is_not_finite_never_reaches_the_weights(tmp_path: Path, poison: float, settings: dict) -> None:
    objective = toy.Objective()
    optimizer = OptimizerConfig(learning_rate=0.05, **settings)
    made = toy.trainer(tmp_path, n_steps=objective.n_steps, optimizer=optimizer, every="2 steps")
    before: list[Any] = []

    def set_poison() -> None:
        before.append(toy.weights(made.network))

    def poisoned(network: Any, batch: Any) -> Any:
        objective.poison = poison if made.state.step == 7 else None
        return ordinary(network, batch)

    ordinary, objective.losses = objective.losses, poisoned  # type: ignore[method-assign]
    with (
        stopping.stopped_at(7, set_poison),
        pytest.raises(CigeError, match=r"step 8: the loss is (nan|inf).*untouched"),
    ):
        made.run(objective)
    assert toy.weights(made.network) == before[0]
    assert all(p.isfinite().all() for p in made.network.parameters())
    assert [p.name for p in tmp_path.glob("checkpoint-*")] == ["checkpoint-6"]
    resumed = run(tmp_path, every="2 steps", optimizer=optimizer)  # what was saved before is whole
    assert toy.weights(resumed.network) == toy.weights(run(tmp_path / "w", optimizer=optimizer).network)


def test_an_average_takes_in_rows_that_are_up_to_date(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    ordinary = module.WeightAverage.update

    def update(self: module.WeightAverage) -> None:
        (moments,) = made._optimizer._moments.values()
        is_read = moments.read > 0
        seen.append(bool((moments.last[is_read] == made._optimizer._n_steps).all()) and bool(is_read.any()))
        ordinary(self)

    monkeypatch.setattr(module.WeightAverage, "update", update)
    objective = toy.Objective()
    made = toy.trainer(tmp_path, n_steps=objective.n_steps, average_weights=0.9)
    made.run(objective)
    assert seen == [True, True]  # after steps 8 and 16 of 20


def test_the_best_weights_are_kept_and_patience_stops(tmp_path: Path) -> None:
    objective = toy.Objective(n_epochs=9, scores=[0.1, 0.7, 0.7, 0.2, 0.9])
    made = toy.trainer(tmp_path, n_steps=objective.n_steps, n_epochs=9, patience=2)
    kept = []
    save = module.save_weights

    def saved(network: Any, path: Path) -> None:
        kept.append((made.state.step, path.name))
        save(network, path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "save_weights", saved)
        assert made.run(objective)
    assert [step for step, name in kept if name == BEST] == [5, 10]
    assert [record.epoch for record in made.state.records] == [1, 2, 3, 4] and made.load_best().epoch == 2
    again = toy.trainer(tmp_path, n_steps=objective.n_steps, n_epochs=9, patience=2)
    again.resume()
    assert again.run(toy.Objective(n_epochs=9, scores=[1.0])) and again.state.step == 20  # it was over


def test_epochs_before_the_first_that_is_scored(tmp_path: Path) -> None:
    made = run(tmp_path, eval_start_epoch=3)
    assert [bool(record.scores) for record in made.state.records] == [False, False, True, True]


def test_checkpoints_kept(tmp_path: Path) -> None:
    run(tmp_path, every="2 steps", keep=3)
    assert sorted(p.name for p in tmp_path.glob("checkpoint-*")) == ["checkpoint-16", "checkpoint-18", "checkpoint-20"]
    state = json.loads((tmp_path / "checkpoint-20/history.json").read_text(encoding="utf-8"))
    assert state["step"] == 20 and len(state["records"]) == 4  # plain data


def test_a_checkpoint_of_another_origin_or_damaged(tmp_path: Path) -> None:
    run(tmp_path)
    other = toy.trainer(tmp_path, n_steps=20)
    other._origin = "another"
    with pytest.raises(ModelError, match="other data"):
        other.resume()
    (path,) = tmp_path.glob("checkpoint-*/state.json")
    manifest = path.with_name("manifest.json")
    values = json.loads(manifest.read_text(encoding="utf-8"))
    path.write_bytes(b"not a state")
    values["files"]["state.json"]["bytes"] = path.stat().st_size
    manifest.write_text(json.dumps(values), encoding="utf-8")
    with pytest.raises(ModelError, match=r"optimiser's state cannot be read.*resume=False"):
        toy.trainer(tmp_path, n_steps=20).resume()


@pytest.mark.parametrize("average_weights", [0.0, 0.6])
def test_checkpoints_in_the_background(tmp_path: Path, average_weights: float) -> None:
    settings: dict[str, Any] = {"average_weights": average_weights, "every": "1 steps"}
    whole = run(tmp_path / "whole", **settings)
    settings["in_background"] = True
    with stopping.stopped_at(13, stopping.interrupt), pytest.raises(KeyboardInterrupt):
        run(tmp_path / "cut", **settings)
    for thread in threading.enumerate():
        if thread.name == "checkpoint":
            thread.join()
    (found,) = (tmp_path / "cut").glob("checkpoint-*")
    assert found.name == "checkpoint-13"  # what the copy held, although step 14 had begun
    cut = run(tmp_path / "cut", **settings)
    assert toy.weights(cut.network) == toy.weights(whole.network) and figures(cut) == figures(whole)


def test_a_failure_in_the_background_stops_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError("no space left")

    monkeypatch.setattr("cige.engine.state_files.StatePart.write", full)
    objective = toy.Objective()
    made = toy.trainer(tmp_path, n_steps=objective.n_steps, every="2 steps", in_background=True)
    with pytest.raises(CigeError, match="checkpoint-2 could not be written \\(no space left"):
        made.run(objective)
    assert made.state.step == 4


def test_workers_share_what_planning_an_epoch_took(tmp_path: Path) -> None:
    objective = toy.Objective(n_epochs=1)
    ordinary, sizes, planned = objective.read, objective.plan._sizes, []

    def sizes_in(epoch: int) -> Any:
        planned.append(epoch)
        return sizes

    def read(epoch: int, numbers: Sequence[int]) -> Any:
        assert planned == [0, 0], "a worker was started before the epoch was planned"
        return ordinary(epoch, numbers)

    objective.plan._sizes, objective.read = sizes_in, read  # type: ignore[assignment, method-assign]
    made = toy.trainer(tmp_path, n_steps=objective.n_steps, n_epochs=1, n_workers=1)
    assert made.run(objective)


def test_seeds_of_steps_differ() -> None:
    def drawn(*key: int) -> float:
        seed_step(*key)
        return float(torch.rand(()))

    keys = [(1, 0, 0), (2, 0, 0), (1, 1, 0), (1, 0, 1)]
    assert len({drawn(*key) for key in keys}) == 4 and drawn(1, 2, 3) == drawn(1, 2, 3)


def test_a_step_draws_what_manual_seed_would_give() -> None:
    torch.manual_seed(int(np.random.SeedSequence((3, 5, 0)).generate_state(1, np.uint64)[0]))
    expected = torch.rand(8)
    seed_step(3, 5, 0)
    assert torch.equal(torch.rand(8), expected)


def test_a_warm_up_that_does_not_fit_the_run(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=r"schedule.warmup is '21 steps', expected at most 20 steps"):
        toy.trainer(tmp_path, n_steps=20, schedule=ScheduleConfig(warmup="21 steps"))


@pytest.mark.parametrize("device", ["tpu", "cuda:0", ""])
def test_unknown_devices(device: str) -> None:
    with pytest.raises(CigeError, match="expected auto, cpu or cuda"):
        prepare(device)
