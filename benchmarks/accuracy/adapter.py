"""Words at the input (Lattice-BERT) against words after layer k (BERT-our with LEBERT's adapter), pre-trained alike.

Two models are pre-trained on the same text for as many steps: Lattice-BERT, and BERT-our on instances that are so much
longer that both read as many tokens per step and take about as long (the control of Lattice-BERT's Table 7). Then the
second is fine-tuned as it is and with an untrained adapter after each of the given layers, and the first as it is, on
each task, with the seeds 1, 2, .. and one learning rate. The text must have been prepared with a vocabulary that has
words; the words of the adapter and their vectors are those of a file. With `--random-vectors`, adapters also read
random vectors of the same words, which tells what the words are worth without what their vectors have learned.

Finished runs stay in the output folder, and the same command goes on with those that are missing.

  python -m benchmarks adapter --shards shards --data data --vectors vectors/word.npz --output runs/adapter
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from cige.engine.run_folder import read_result
from cige.lattice_bert.encoder.pretrained import PretrainedLatticeBert, add_adapter
from cige.lattice_bert.encoder.word_adapter import WordAdapterConfig
from cige.lattice_bert.pretraining.pretrain import PretrainResult, pretrain
from cige.lattice_bert.pretraining.recipe import load_pretrain_recipe
from cige.lattice_bert.tasks.config import load_tuning_config
from cige.lattice_bert.tasks.finetune import TuningResult
from cige.lattice_bert.tasks.grid import TaskRow, tune_task
from cige.lattice_bert.tasks.metrics import mean_and_sd
from cige.lattice_bert.tasks.registry import get_task
from cige.lattice_bert.tasks.task_data import load_task_data
from cige.lexicon.vectors import VectorTable

TABLES = {"models": "words at the input, or after a layer"}
FLAT = True
RECIPES = {"Lattice-BERT": "pretrain/cpu_tiny", "BERT-our": "pretrain/cpu_tiny_bert_our_longer"}


@dataclass(frozen=True)
class Settings:
    """What is compared, as the options of `bench` say it.

    Attributes:
        changes: settings that differ from those of RECIPES; tuning: that differ from those of the tasks' recipes.
        residual: how adapters add words (see nn/lexicon_adapter.py).
    """

    shards: Path
    data: Path
    vectors: Path
    changes: Sequence[str]
    layers: Sequence[int]
    residual: str
    random_vectors: bool
    tasks: Sequence[str]
    tuning: Sequence[str]
    n_seeds: int


def bench(
    *,
    shards: Annotated[Path, "what `cige lattice-bert pretrain data` wrote"],
    data: Annotated[Path, "folder with the data of tasks"],
    vectors: Annotated[Path, "words with vectors"],
    output: Annotated[Path, "folder of all runs"],
    steps: Annotated[int, "of pre-training"] = 5000,
    layers: Annotated[Sequence[int], "after which adapters read words"] = (1, 2),
    residual: Annotated[str, ("normalised", "plain"), "of the adapters"] = "normalised",
    random_vectors: Annotated[bool, "also compare adapters with random vectors of the same words"] = False,
    tasks: Annotated[Sequence[str], "of fine-tuning"] = ("tnews", "msr", "msra"),
    n_train: Annotated[int, "training examples"] = 5000,
    lr: Annotated[float, "learning rate of fine-tuning"] = 1e-3,
    seeds: Annotated[int, "fine-tuning runs each"] = 3,
    precision: Annotated[str, ("fp32", "bf16"), "of training"] = "fp32",
    threads: int = 1,
) -> Iterator[dict[str, Any]]:
    """A row per model."""
    settings = Settings(
        shards,
        data,
        vectors,
        changes=[f"short.n_steps={steps}", "long.n_steps=0", f"training.precision={precision}"],
        layers=layers,
        residual=residual,
        random_vectors=random_vectors,
        tasks=tasks,
        tuning=[f"n_train={n_train}", f"optimizer.learning_rate={lr}", f"training.precision={precision}"],
        n_seeds=seeds,
    )
    yield from rows_of(settings, output)


def rows_of(settings: Settings, output: Path) -> Iterator[dict[str, Any]]:
    """A row for each model: its size, what pre-training read, minutes, and the scores of each task, in per cent."""
    runs = {name: _pretrained(name, settings, output) for name in RECIPES}
    models = {name: (run, run.model) for name, run in runs.items()}
    vectors = VectorTable.load(settings.vectors)
    kinds = {"words": vectors} | ({"random vectors of words": _random(vectors)} if settings.random_vectors else {})
    for layer, (kind, table) in product(settings.layers, kinds.items()):
        folder = output / f"adapter-{layer}-{settings.residual}{'' if table is vectors else '-random'}"
        if not folder.is_dir():
            config = WordAdapterConfig(
                n_words=len(table), word_width=table.width, after_layer=layer, residual=settings.residual
            )
            add_adapter(PretrainedLatticeBert.from_pretrained(runs["BERT-our"].model), table, config).save(folder)
        models[f"BERT-our, {kind} after layer {layer}"] = runs["BERT-our"], folder
    for name, (run, model) in models.items():
        tuned = {task: _tuned(task, model, settings, output / "tuned" / name) for task in settings.tasks}
        minutes = sum(seconds for _, seconds in tuned.values()) / 60
        yield {
            "model": name,
            "million tokens": run.n_tokens / 1e6,
            "pre-training minutes": run.seconds / 60,
            "fine-tuning minutes": minutes,
        } | {title: shown for row, _ in tuned.values() for title, shown in _scores(row).items()}


def _random(vectors: VectorTable) -> VectorTable:
    """Random vectors of the same words, each as long as the word's own: what they have learned is their directions."""
    drawn = np.random.default_rng(1).standard_normal(vectors.vectors.shape, dtype=np.float32)
    lengths = np.linalg.norm(vectors.vectors.astype(np.float32), axis=1, keepdims=True)
    drawn *= lengths / np.linalg.norm(drawn, axis=1, keepdims=True)
    return VectorTable(vectors.words, drawn.astype(vectors.vectors.dtype))


def _pretrained(name: str, settings: Settings, output: Path) -> PretrainResult:
    recipe = load_pretrain_recipe(RECIPES[name], settings.changes)
    result = pretrain(recipe, settings.shards, output / name.lower(), seed=1)
    assert result is not None  # it is not asked to stop early
    return result


def _tuned(name: str, model: Path, settings: Settings, folder: Path) -> tuple[TaskRow, float]:
    """The scores of all seeds, and the seconds that they took."""
    task = get_task(name)
    config = load_tuning_config(task.recipe, settings.tuning)
    data = load_task_data(task, settings.data)
    rates = [config.optimizer.learning_rate]
    row = tune_task(data, model, folder, config=config, rates=rates, n_runs=settings.n_seeds)
    runs = [read_result(path, TuningResult) for path in sorted(folder.glob(f"{name}-*"))]
    return row, sum(run.seconds for run in runs)


def _scores(row: TaskRow) -> dict[str, str]:
    """Mean and standard deviation of each score on development examples."""
    found = {}
    for name, values in row.dev.items():
        mean, sd = mean_and_sd([100 * value for value in values])
        found[f"{row.task} {name}"] = f"{mean:.2f}" + (f" ± {sd:.2f}" if len(values) > 1 else "")
    return found
