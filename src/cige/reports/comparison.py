"""Comparison: several systems trained and scored alike, over seeds, with their speed and what separates them."""

from __future__ import annotations

import contextlib
import hashlib
import json
import multiprocessing
import os
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cige.api import NER, load
from cige.data.reading import read_sentences
from cige.data.registry import load_split
from cige.data.sentence import Sentence
from cige.engine.run_folder import read_result
from cige.entities.scores import score
from cige.errors import CigeError
from cige.folders.atomic import atomic_file
from cige.reports.significance import paired_bootstrap, sentence_counts
from cige.tagging.evaluation import user_word_trials
from cige.tagging.finder import EntityFinder
from cige.training.recipe import Recipe, recipe_from_dict
from cige.training.setup import find_file, read_data
from cige.training.train import TrainResult, train

SCORES, USER_WORDS = "scores.json", "user_words.json"
SPEED_BATCHES = (1, 16)
_SPEED_SENTENCES, _SPEED_ROUNDS = 200, 3


@dataclass(frozen=True)
class Row:
    """One system of a comparison; scores are strict F1, 0..1, one a seed.

    Attributes:
        name: of the recipe; architecture: of the model.
        seeds: those that finished.
        dev, test: F1 by seed; `test` is empty where the data set has no test file here.
        span_f1, type_accuracy: of the split that decides (test, else dev), by seed.
        n_parameters: weights that were trained, those of the rows of tables that training reads included.
        minutes: training and scoring, by seed.
        p_value: how likely the best system's lead over this one is chance (paired bootstrap); None for the best.
        speed: batch size -> sentences a second, measured for all systems in turn; empty if that was not asked for.
    """

    name: str
    architecture: str
    seeds: list[int]
    dev: list[float]
    test: list[float]
    span_f1: list[float]
    type_accuracy: list[float]
    n_parameters: int
    minutes: list[float]
    p_value: float | None
    speed: dict[int, float]

    @property
    def deciding(self) -> list[float]:
        """The F1 that ranks systems: test, else dev."""
        return self.test or self.dev

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def check_comparable(recipes: Sequence[Recipe]) -> None:
    """Refuse recipes whose runs could not stand in one table.

    Raises:
        CigeError: two have one name, or are scored on different sentences.
    """
    names = [recipe.name for recipe in recipes]
    if len(set(names)) < len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise CigeError(f"several recipes are named {', '.join(twice)}; runs are kept by name, so give each its own")
    if len({_scored_on(recipe) for recipe in recipes}) > 1:
        each = ", ".join(f"{recipe.name} ({recipe.data.dataset or recipe.data.dev})" for recipe in recipes)
        raise CigeError(f"{each}: scored on different sentences; compare the recipes of one data set at a time")


def _scored_on(recipe: Recipe) -> tuple[Any, ...]:
    data = recipe.data
    return data.dataset, data.dev, data.test, data.n_held_out, data.train if data.n_held_out else None


def run_all(
    recipes: Sequence[Recipe],
    seeds: Sequence[int],
    runs: Path,
    *,
    data_dir: str | None = None,
    n_jobs: int = 1,
    device: str = "auto",
) -> Iterator[dict[str, Any]]:
    """Train and score each recipe with each seed; yields a run's scores as it finishes.

    A run is `runs/NAME-SEED`; one that finished is read, one that was cut off goes on.

    Args:
        n_jobs: processes side by side; each gets its share of the cores.

    Raises:
        CigeError: what `check_comparable` raises, or `train`.
    """
    check_comparable(recipes)
    jobs = [(asdict(recipe), seed, str(runs), data_dir, device) for seed in seeds for recipe in recipes]
    if n_jobs == 1:
        yield from (run_one(*job) for job in jobs)
        return
    threads = {"OMP_NUM_THREADS": str(max(1, (os.cpu_count() or 1) // n_jobs))}
    with _environment(threads), ProcessPoolExecutor(n_jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        for finished in as_completed([pool.submit(run_one, *job) for job in jobs]):
            yield finished.result()


class _environment:
    """Environment variables for the processes started within."""

    def __init__(self, values: Mapping[str, str]):
        self._values = values
        self._before: dict[str, str] = {}

    def __enter__(self) -> None:
        self._before = dict(os.environ)
        os.environ.update(self._values)

    def __exit__(self, *_: object) -> None:
        os.environ.clear()
        os.environ.update(self._before)


def run_one(recipe_values: dict[str, Any], seed: int, runs: str, data_dir: str | None, device: str) -> dict[str, Any]:
    """Train one run, score dev and test with the weights of its best epoch, and keep the scores in its folder."""
    recipe = recipe_from_dict(recipe_values)
    folder = Path(runs) / f"{recipe.name}-{seed}"
    result = train(recipe, folder, seed=seed, data_dir=data_dir, device=device, show_progress=False)
    if (folder / SCORES).is_file():
        return json.loads((folder / SCORES).read_text(encoding="utf-8"))
    ner = load(result.model)
    scores: dict[str, Any] = {
        "name": recipe.name,
        "architecture": recipe.architecture,
        "seed": seed,
        "minutes": result.seconds / 60,
        "best_epoch": result.best_epoch,
        "n_parameters": result.n_parameters,
        "machine": result.machine,
    }
    for split, sentences in splits_of(recipe, data_dir).items():
        predicted = list(ner.pipe([s.text for s in sentences]))
        gold = [list(s.spans) for s in sentences]
        scores[split] = score(gold, predicted).to_dict()
        scores[f"{split}_counts"] = sentence_counts(gold, predicted).tolist()
    _write(folder / SCORES, scores)
    return scores


def splits_of(recipe: Recipe, data_dir: str | None) -> dict[str, list[Sentence]]:
    """The labelled sentences to score: dev, and test where there is one."""
    splits = {"dev": read_data(recipe.data, data_dir)[1]}
    if recipe.data.dataset is None:
        if recipe.data.test is not None:
            splits["test"] = read_sentences(find_file(recipe.data.test, data_dir))
        return splits
    with contextlib.suppress(CigeError):  # this data set has no test file here
        splits["test"] = load_split(recipe.data.dataset, "test", data_dir=data_dir)
    return splits


def rows_of(names: Sequence[str], runs: Path, *, seeds: Sequence[int] | None = None) -> list[Row]:
    """What finished, the best system first; p values are against it.

    Args:
        seeds: only these; None takes all that there are.
    """
    found = {name: scores for name in names if (scores := _finished(name, runs, seeds))}
    if not found:
        return []
    split = "test" if all("test" in x for scores in found.values() for x in scores) else "dev"

    def mean(name: str) -> float:
        return statistics.mean(x[split]["f1"] for x in found[name])

    ranked = sorted(found, key=mean, reverse=True)
    speeds = _read(runs / "speed.json")
    best = _counts(found[ranked[0]], split)
    rows = []
    for name in ranked:
        scores = found[name]
        rows.append(
            Row(
                name=name,
                architecture=scores[0]["architecture"],
                seeds=[x["seed"] for x in scores],
                dev=[x["dev"]["f1"] for x in scores],
                test=[x["test"]["f1"] for x in scores] if split == "test" else [],
                span_f1=[x[split]["span_f1"] for x in scores],
                type_accuracy=[x[split]["type_accuracy"] for x in scores],
                n_parameters=scores[0]["n_parameters"],
                minutes=[x["minutes"] for x in scores],
                p_value=None if name == ranked[0] else paired_bootstrap(best, _counts(scores, split)),
                speed={int(size): value for size, value in speeds.get(name, {}).items()},
            )
        )
    return rows


def any_finished(names: Sequence[str], runs: Path, *, seeds: Sequence[int] | None = None) -> bool:
    """Whether `rows_of` would have a row."""
    return any(_finished(name, runs, seeds) for name in names)


def measure_speeds(
    recipes: Sequence[Recipe], runs: Path, *, data_dir: str | None = None, device: str = "cpu"
) -> dict[str, dict[int, float]]:
    """Sentences a second of each finished system, batch size by batch size, and keep them in runs/speed.json.

    Reading is end to end (match, lattice, tag), on up to 200 sentences of the recipe's deciding split. Systems take
    turns and each figure is the best of three rounds, so that what else the machine does falls on all alike.
    """
    taggers: dict[str, tuple[EntityFinder, list[str]]] = {}
    for recipe in recipes:
        folders = sorted(runs.glob(f"{recipe.name}-[0-9]*/{SCORES}"))
        if folders:
            sentences = list(splits_of(recipe, data_dir).values())[-1][:_SPEED_SENTENCES]
            ner = load(read_result(folders[0].parent, TrainResult).model, device=device)
            taggers[recipe.name] = (ner, [s.text for s in sentences])
    speeds: dict[str, dict[int, float]] = {name: dict.fromkeys(SPEED_BATCHES, 0.0) for name in taggers}
    for _ in range(_SPEED_ROUNDS):
        for name, (ner, texts) in taggers.items():
            for batch_size in SPEED_BATCHES:
                begin = time.perf_counter()
                list(ner.pipe(texts, batch_size=batch_size))
                speed = len(texts) / (time.perf_counter() - begin)
                speeds[name][batch_size] = max(speeds[name][batch_size], speed)
    _write(runs / "speed.json", _read(runs / "speed.json") | {k: dict(v) for k, v in speeds.items()})
    return speeds


def user_words_of_runs(
    recipes: Sequence[Recipe],
    runs: Path,
    *,
    data_dir: str | None = None,
    gazetteers: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, list[list[dict[str, Any]]]]:
    """For each system, for each finished seed: what user words gain on dev (`evaluation.user_word_trials`).

    What a run gave is kept in its folder and not measured again with the same gazetteers.
    """
    lists = {name: _digest(words) for name, words in (gazetteers or {}).items()}
    found: dict[str, list[list[dict[str, Any]]]] = {}
    for recipe in recipes:
        for scores in sorted(runs.glob(f"{recipe.name}-[0-9]*/{SCORES}")):
            path = scores.parent / USER_WORDS
            kept = _read(path)
            if kept.get("gazetteers") != lists:
                learned, dev = read_data(recipe.data, data_dir)
                ner = NER.from_pretrained(read_result(scores.parent, TrainResult).model)
                trials = user_word_trials(ner, dev, train=learned, gazetteers=gazetteers)
                kept = {"gazetteers": lists, "trials": [trial.to_dict() for trial in trials]}
                _write(path, kept)
            found.setdefault(recipe.name, []).append(kept["trials"])
    return found


def _finished(name: str, runs: Path, seeds: Sequence[int] | None) -> list[dict[str, Any]]:
    """Scores of a system's finished runs, by seed."""
    found = [_read(path) for path in runs.glob(f"{name}-[0-9]*/{SCORES}")]
    return sorted((x for x in found if seeds is None or x["seed"] in seeds), key=lambda x: x["seed"])


def _counts(scores: list[dict[str, Any]], split: str) -> np.ndarray:
    return np.array([x[f"{split}_counts"] for x in scores], np.int64)


def _digest(words: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(words).encode()).hexdigest()


def _read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def _write(path: Path, values: Any) -> None:
    with atomic_file(path) as aside:
        aside.write_text(json.dumps(values, ensure_ascii=False), encoding="utf-8")
