"""Learning curves: F1 by labelled sentences, chosen by `cige suggest` or drawn at random.

The training sentences of a data set play the unlabelled file, and their labels the annotator. Each round chooses more
sentences with the model of the round before (the first by diversity, with no model), and a model is trained on all
chosen so far, from the same starting model with the settings of `cige train --data`. Its last epoch is scored: no
sentence chooses an epoch. Random sentences are trained on in the same way. A curve ends where it reaches the goal, 95%
of the F1 of a model that is trained on all sentences.

The starting model must not have seen the data set, so it is not the bundled one; `cige train msra/flat` makes one.
Finished curves stay in the JSON file, and the same command goes on with those that are missing.
"""

import json as json_of
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise, product
from math import log
from pathlib import Path
from statistics import mean, stdev
from typing import Annotated, Any

import numpy as np

from benchmarks.measure import earlier, line
from cige.api import load
from cige.data import Sentence, read_sentences, write_sentences
from cige.data.registry import dataset_file
from cige.errors import CigeError
from cige.recipes.shipped import OWN_DATA
from cige.suggest.selecting import Selector, Settings, Strategy
from cige.training.recipe import load_recipe
from cige.training.train import train

SHARE = 0.95  # of the F1 of all sentences
POOL_SEED = 1  # draws the pool, the same for all curves


@dataclass(frozen=True)
class Case:
    """A data set."""

    scored_on: str  # the split that scores
    n_pool: int | None  # how many training sentences, drawn once, may be chosen; None: all
    sizes: tuple[int, ...]  # labelled sentences after each round
    passes: int  # sentences that training reads in all, as far as that makes `epochs`
    epochs: tuple[int, int]  # the fewest and the most


CASES = {
    "resume": Case("test", 2000, (50, 100, 200, 400, 800), 2500, (6, 25)),
    "cluener": Case("dev", 2000, (100, 200, 400, 800, 1200), 8000, (14, 40)),
}


TABLES = {"summary": "sentences and characters for 95% of the F1 of all"}


def bench(
    *,
    data_dir: Path,
    start_from: Annotated[Path, "folder of the model to start training from"],
    sets: Annotated[Sequence[str], CASES, "of labelled sentences"] = tuple(CASES),
    seeds: Annotated[Sequence[int], "of curves"] = (1, 2, 3, 4, 5),
    pool: Annotated[str | None, "sentences to choose from, or all (2,000 by default)"] = None,
    sizes: Annotated[Sequence[int], "labelled sentences after each round"] = (),
    full_seeds: Annotated[int, "models of all sentences that set the goal"] = 1,
    strategies: Annotated[Sequence[str], "both:character counts characters"] = ("random", "both"),
    threads: int = 1,
    json: Path | None = None,
) -> Iterator[dict[str, Any]]:
    """The results after each curve."""
    result = earlier(json) or {"sets": {}}
    for seed, name in product(seeds, sets):
        case, key = case_of(name, pool, sizes), str(seed)
        of_set = result["sets"].setdefault(name, {"full": {}, "curves": {}, "n_pool": 0})
        settings = json_of.loads(json_of.dumps(asdict(case)))
        if of_set.setdefault("case", settings) != settings:
            raise CigeError(f"{json} has curves of {name} with other settings ({of_set['case']}); give another file")
        sentences = pool_of(name, case, data_dir)
        of_set["n_pool"] = n = len(sentences)
        if case.sizes[-1] > n:
            raise CigeError(f"--sizes: {case.sizes[-1]:,} of {name}; there are {n:,} sentences to choose from")
        dev = dataset_file(name, case.scored_on, data_dir=data_dir)
        if key not in of_set["full"] and len(of_set["full"]) < full_seeds:
            with tempfile.TemporaryDirectory() as scratch:
                of_set["full"][key] = trained(sentences, dev, case, start_from, Path(scratch) / "full", seed)
            print(f"{name}, seed {seed}, all {n:,}: {100 * of_set['full'][key]:.1f}", flush=True)
            yield result | {"summary": summary(result)}
        for given in strategies:
            if key not in of_set["curves"].setdefault(given, {}):
                strategy, _, per = given.partition(":")
                options: dict[str, Any] = {"per": per or "sentence", "start": start_from, "seed": seed}
                points = curve(sentences, dev, case, strategy, goal=goal_of(of_set), **options)
                of_set["curves"][given][key] = points
                print(f"{name}, seed {seed}, {given}:", line({str(p["sentences"]): 100 * p["f1"] for p in points}))
                yield result | {"summary": summary(result)}
    yield result | {"summary": summary(result)}


def n_epochs(case: Case, n_sentences: int) -> int:
    """Passes over `n_sentences`."""
    fewest, most = case.epochs
    return min(most, max(fewest, round(case.passes / n_sentences)))


def trained(sentences: Sequence[Sentence], dev: Path, case: Case, start: Path, folder: Path, seed: int) -> float:
    """F1 on `dev` of the last epoch of a model trained on these sentences, which is in `folder`/model."""
    write_sentences(folder.with_suffix(".jsonl"), sentences)
    n = n_epochs(case, len(sentences))
    settings = {"start_from": str(start), "data.train": str(folder.with_suffix(".jsonl")), "data.dev": str(dev)}
    recipe = load_recipe(OWN_DATA, settings | {"training.n_epochs": n, "training.eval_start_epoch": n})
    return train(recipe, folder, seed=seed, device="cpu", resume=False, show_progress=False).dev_f1


def curve(
    pool: Sequence[Sentence],
    dev: Path,
    case: Case,
    strategy: Strategy,
    *,
    per: Any,
    start: Path,
    goal: float,
    seed: int,
) -> list[dict[str, Any]]:
    """F1 after each round, up to the first that reaches the goal."""
    labels_of = {sentence.text.strip(): sentence for sentence in pool}
    chosen: list[str] = []
    points: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as scratch:
        for number, size in enumerate(case.sizes):
            began, folder = time.process_time(), Path(scratch) / f"round{number}"
            own: Strategy = strategy if strategy == "random" or number else "diversity"
            longest = max(map(len, labels_of))
            settings = Settings(size - len(chosen), own, per=per, min_chars=1, max_chars=longest, seed=seed)
            before = Path(scratch) / f"round{number - 1}/model"
            selector = Selector(settings, finder=load(before) if settings.reads_doubts else None, labelled=chosen)
            selector.read(labels_of)
            chosen += [suggestion.text for suggestion in selector.chosen()]
            selecting = time.process_time() - began
            labelled = [labels_of[text] for text in chosen]
            f1 = trained(labelled, dev, case, start, folder, seed)
            point = {"sentences": len(chosen), "characters": sum(map(len, chosen))}
            point |= {"entities": sum(len(sentence.spans) for sentence in labelled), "f1": f1}
            points.append(point | {"seconds": time.process_time() - began, "selecting_seconds": selecting})
            if f1 >= goal:
                break
    return points


def needed(points: Iterable[Mapping[str, float]], goal: float, what: str = "sentences") -> float | None:
    """Where a curve first reaches an F1, between its points on a logarithmic axis; None if it never does."""
    before = None
    for point in points:
        if point["f1"] >= goal:
            if before is None:
                return float(point[what])
            share = (goal - before["f1"]) / (point["f1"] - before["f1"])
            return float(np.exp(log(before[what]) + share * (log(point[what]) - log(before[what]))))
        before = point
    return None


def summary(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A row for each set and strategy: what it needs for the goal, and as a share of what random sentences need.

    A curve that does not reach the goal counts with its last point, and `reached` says how many do. Shares compare
    curves of the same seed.
    """
    rows = []
    for name, of_set in result["sets"].items():
        goal, of_random = goal_of(of_set), of_set["curves"].get("random", {})
        for strategy, curves in of_set["curves"].items():
            n_reached = sum(needed(points, goal) is not None for points in curves.values())
            row = {"set": name, "strategy": strategy, "seeds": len(curves), "reached": n_reached, "goal_f1": 100 * goal}
            for what in ("sentences", "characters"):
                needs = {seed: needed(points, goal, what) or points[-1][what] for seed, points in curves.items()}
                others = {seed: needed(p, goal, what) or p[-1][what] for seed, p in of_random.items() if seed in needs}
                row |= {what: mean(needs.values()), f"{what}_sd": stdev(needs.values()) if len(needs) > 1 else None}
                ratios = [needs[seed] / other for seed, other in others.items()]
                row[f"{what}_of_random"] = mean(ratios) if ratios else None
            rows.append(row)
    return rows


def case_of(name: str, pool: str | None, sizes: Sequence[int] = ()) -> Case:
    """The case of a set, with another pool or other sizes where they are given.

    Raises:
        CigeError: the pool is neither `all` nor a number, or the sizes do not increase.
    """
    case = CASES[name]
    if pool is not None:
        if pool != "all" and not (pool.isdecimal() and int(pool) > 0):
            raise CigeError(f"--pool {pool}: expected all or a number of sentences")
        case = replace(case, n_pool=None if pool == "all" else int(pool))
    if sizes:
        if sizes[0] < 1 or any(a >= b for a, b in pairwise(sizes)):
            raise CigeError(f"--sizes {' '.join(map(str, sizes))}: expected increasing numbers of sentences")
        case = replace(case, sizes=tuple(sizes))
    return case


def goal_of(of_set: Mapping[str, Any]) -> float:
    """SHARE of the mean F1 of all sentences."""
    return SHARE * mean(of_set["full"].values())


def pool_of(name: str, case: Case, data_dir: Path) -> list[Sentence]:
    """The sentences that may be chosen: `n_pool` of those with different texts."""
    read = read_sentences(dataset_file(name, "train", data_dir=data_dir))
    distinct = list({sentence.text.strip(): sentence for sentence in read}.values())
    order = np.random.default_rng(POOL_SEED).permutation(len(distinct))[: case.n_pool]
    return [distinct[k] for k in order.tolist()]
