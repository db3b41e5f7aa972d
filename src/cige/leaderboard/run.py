"""Run one cell of a leaderboard: train, score, and measure user words, speed and memory."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Literal

import numpy as np
import torch

import cige
from cige.api import NER, load
from cige.engine.run_folder import read_result
from cige.folders.manifest import entry_of, sha256
from cige.folders.processes import child_environment, process_pool
from cige.leaderboard.cells import Cell
from cige.leaderboard.results import CellResult
from cige.reports.comparison import SPEED_BATCHES
from cige.reports.finished_runs import run_folder
from cige.reports.scored_run import run_one, splits_of
from cige.tagging.evaluation import user_word_trials
from cige.training.recipe import start_folder
from cige.training.sources import read_data
from cige.training.train import TrainResult

AVX2_ALONE = "ATEN_CPU_CAPABILITY=avx2 MKL_ENABLE_INSTRUCTIONS=AVX2 CIGE_KERNELS=avx2"
"""Environment in which PyTorch, its matrix products and our kernels use AVX2, whatever the processor has."""
_N_SENTENCES, _N_ROUNDS = 200, 3
_sha256_of_data = cache(sha256)  # vectors are large, and the same for most cells


def run_cell(cell: Cell, runs: Path, *, data_dir: str | None = None, device: str = "auto") -> CellResult:
    """The result of a cell; a finished run in `runs` is read, an interrupted one goes on; raises as `train` does."""
    scores = run_one(cell.recipe, cell.seed, runs, data_dir, device)
    model = read_result(run_folder(cell.recipe, cell.seed, runs), TrainResult).model
    deciding: Literal["dev", "test"] = "test" if "test" in scores else "dev"
    learned, dev = read_data(cell.recipe.data, data_dir, nested=cell.recipe.head == "pair_grid")
    trials = user_word_trials(NER.from_pretrained(model), dev, train=learned, with_labels=False)
    texts = [sentence.text for sentence in splits_of(cell.recipe, data_dir)[deciding]]
    read = {sentence.text for sentence in learned}
    with child_environment({"OMP_NUM_THREADS": "1"}), process_pool(1) as pool:
        speeds, megabytes = pool.submit(_speeds_and_memory, str(model), texts).result()
    return CellResult(
        data=cell.data,
        system=cell.system,
        seed=cell.seed,
        architecture=cell.recipe.architecture,
        settings=cell.settings,
        dev_f1=scores["dev"]["f1"],
        test_f1=scores["test"]["f1"] if deciding == "test" else None,
        counts=scores["test_counts"] if deciding == "test" else scores["dev_counts"],
        repeated=[place for place, text in enumerate(texts) if text in read],
        user_words={trial.name: trial.report.f1 for trial in trials},
        sentences_per_second=speeds,
        megabytes=megabytes,
        n_parameters=scores["n_parameters"],
        best_epoch=scores["best_epoch"],
        seconds=scores["seconds"],
        work=cell.work(data_dir),
        weights_sha256=sha256(model / "model.safetensors"),
        data_sha256=_checksums(cell, data_dir),
        versions={"cige": cige.__version__, "torch": torch.__version__, "numpy": np.__version__},
        machine=scores["machine"],
    )


def changed_inputs(cell: Cell, result: CellResult, data_dir: str | None = None) -> list[str]:
    """Which inputs of a cell are not those of its result: "settings", and the names of files of data and vectors."""
    now = _checksums(cell, data_dir)
    names = sorted(now.keys() | result.data_sha256.keys())
    changed = [name for name in names if now.get(name) != result.data_sha256.get(name)]
    return ["settings"] * (cell.settings != result.settings) + changed


def differences(first: CellResult, again: CellResult) -> list[str]:
    """In what two runs of one cell differ that should be equal on one kind of machine; [] if they agree."""
    compared = ("settings", "data_sha256", "n_parameters", "best_epoch", "dev_f1", "test_f1", "counts")
    return [name for name in compared if getattr(first, name) != getattr(again, name)]


def other_instructions(first: CellResult, again: CellResult) -> str | None:
    """Why two runs of one cell may differ: they used other instruction sets, or the first does not say which; or None.

    Sums in another order round differently, and training carries that on to every weight.
    """
    then, now = ([r.machine.get(fact) for fact in ("instructions", "kernels")] for r in (first, again))
    if then == now:
        return None
    used = "does not say which instruction sets it used" if then == [None, None] else f"used {_shown(then)}"
    return (
        f"the result {used}, this run used {_shown(now)}, and sums in another order train another model. A processor "
        f"with AVX-512 repeats results of AVX2 with {AVX2_ALONE}"
    )


def _shown(instructions: Sequence[object]) -> str:
    torch_level, kernels = instructions
    return f"{torch_level} in PyTorch and {kernels} in cige"


def _checksums(cell: Cell, data_dir: str | None) -> dict[str, str]:
    files = {name: _sha256_of_data(path) for name, path in cell.data_files(data_dir).items()}
    start = cell.recipe.start_from
    return files if start is None else files | {f"start_from {start}": entry_of(start_folder(start))["sha256"]}


def _speeds_and_memory(model: str, texts: list[str]) -> tuple[dict[str, float], float]:
    """Sentences per processor second by batch size (the best of three rounds), and most resident memory in MB."""
    ner = load(model, precision="float32")
    some = texts[:_N_SENTENCES]
    best = dict.fromkeys(map(str, SPEED_BATCHES), 0.0)
    for _ in range(_N_ROUNDS):
        for size in SPEED_BATCHES:
            begin = time.process_time()
            list(ner.pipe(some, batch_size=size))
            best[str(size)] = max(best[str(size)], len(some) / (time.process_time() - begin))
    list(ner.pipe(texts, batch_size=SPEED_BATCHES[-1]))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return best, peak / (1e6 if sys.platform == "darwin" else 1e3)
