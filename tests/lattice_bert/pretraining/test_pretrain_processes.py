"""Pre-training with several processes: the same as with one, in whole copies or in shards, and after one was killed."""

from __future__ import annotations

import signal
from pathlib import Path

import pretraining_process
import pytest
import stopping
import tiny_pretraining
import torch
import warm_process
from safetensors.torch import load_file

from cige.engine.run_folder import read_result
from cige.lattice_bert.pretraining.pretrain import PretrainResult, pretrain

# Dropout is drawn by each process for its own passes, so that without it several processes do what one does.
SETTINGS = {"model.dropout_prob": 0.0, "model.attention_dropout_prob": 0.0, "training.window_shards": 2}
TOLERANCE = {"atol": 2e-4, "rtol": 1e-3}


@pytest.fixture(scope="module")
def folder(data_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with data/ and room for recipes."""
    found = tmp_path_factory.mktemp("processes")
    (found / "data").symlink_to(data_folder)
    return found


@pytest.fixture(scope="module")
def alone(folder: Path) -> PretrainResult:
    """A run of one process."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    result = run(folder, folder / "alone")
    torch.set_num_threads(before)
    return result


def run(folder: Path, output: Path, **overrides) -> PretrainResult:
    recipe = tiny_pretraining.recipe(folder, **SETTINGS, **overrides)
    return pretrain(recipe, folder / "data", output, seed=tiny_pretraining.SEED, device="cpu", show_progress=False)


def arguments(folder: Path, output: Path, *rest: str) -> list[str]:
    """Those of pretraining_process."""
    settings = [f"{key}={value}" for key, value in SETTINGS.items()]
    return [str(folder), str(output), *settings, *rest]


def assert_same(a: PretrainResult, b: PretrainResult) -> None:
    """Equal weights and records, but for rounding."""
    first, second = (load_file(result.model / "model.safetensors") for result in (a, b))
    assert first.keys() == second.keys()
    for name, weight in first.items():
        torch.testing.assert_close(second[name], weight, **TOLERANCE)
    assert [r.train.get("n_tokens") for r in a.history] == [r.train.get("n_tokens") for r in b.history]
    for one, other in zip(a.history, b.history, strict=True):
        for figures, others in ((one.train, other.train), (one.scores, other.scores)):
            assert others == pytest.approx(figures, abs=2e-4)


def test_two_processes_do_what_one_does_though_one_of_them_is_killed(folder: Path, alone: PretrainResult) -> None:
    """What torchrun runs starts both again, and they go on from the last checkpoint, which was written meanwhile."""
    given = arguments(folder, folder / "killed", "checkpoints.in_background=true", "--kill-at", "7")
    assert warm_process.restarts(2, pretraining_process.main, *given) == [1, 1]
    assert_same(alone, read_result(folder / "killed", PretrainResult))


def test_shards_of_two_processes_go_on_with_one(folder: Path, alone: PretrainResult, one_thread: None) -> None:
    """FSDP with gradient checkpointing; the checkpoint of two processes, one of which was killed, is read by one."""
    output = folder / "shards"
    sharded = {"training.sharding": "fsdp", "training.gradient_checkpointing": "true"}
    settings = [f"{key}={value}" for key, value in sharded.items()]
    given = arguments(folder, output, *settings, "--kill-at", "10")
    assert warm_process.exit_codes(2, pretraining_process.main, *given)[-1] == -signal.SIGKILL
    names = {path.name for path in (output / "checkpoint-9").iterdir()}
    assert {"state-00000-of-00002.safetensors", "state-00001-of-00002.safetensors"} <= names
    sizes = [(output / "checkpoint-9" / name).stat().st_size for name in sorted(names) if name.startswith("state-")]
    assert max(sizes) < 0.7 * sum(sizes)
    assert_same(alone, run(folder, output, **sharded))


def test_the_checkpoint_of_one_process_goes_on_in_shards_of_three(
    folder: Path, alone: PretrainResult, one_thread: None
) -> None:
    output = folder / "grows"
    with stopping.stopped_at(7, stopping.interrupt), pytest.raises(KeyboardInterrupt):
        run(folder, output, **{"training.sharding": "fsdp"})
    given = arguments(folder, output, "training.sharding=fsdp")
    assert warm_process.exit_codes(3, pretraining_process.main, *given) == [0, 0, 0]
    assert_same(alone, read_result(output, PretrainResult))
