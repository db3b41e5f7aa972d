"""Train and score recipes over seeds, and print the table of docs/results.md.

    python benchmarks/reproduce.py recipes/weibo/flat.yaml recipes/weibo/no_lexicon.yaml --seeds 1 2 3 --runs runs
    python benchmarks/reproduce.py recipes/weibo/*.yaml --seeds 1 2 3 --runs runs --table

Each run is `cige train RECIPE --seed S --output RUNS/NAME-S` and resumes where it was cut off; the weights are those of
the best epoch on dev, and test is scored once with them. Scores go to RUNS/NAME-S/scores.json. `--table` only reads.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path
from typing import Any

from cige.data.registry import load_split
from cige.errors import CigeError
from cige.evaluation import evaluate
from cige.files import atomic_file
from cige.training.recipe import Recipe, load_recipe
from cige.training.train import train

SCORES = "scores.json"


def run_one(recipe: Recipe, seed: int, runs: Path, data_dir: str | None) -> dict[str, Any]:
    """Train, score dev and test (where there is one), and keep the scores."""
    folder = runs / f"{recipe.name}-{seed}"
    if (folder / SCORES).is_file():
        return json.loads((folder / SCORES).read_text(encoding="utf-8"))
    result = train(recipe, folder, seed=seed, data_dir=data_dir, show_progress=False)
    from cige.pipeline import load

    ner = load(result.model)
    scores: dict[str, Any] = {
        "name": recipe.name,
        "seed": seed,
        "minutes": result.minutes,
        "best_epoch": result.best_epoch,
        "n_parameters": result.n_parameters,
        "machine": result.machine,
    }
    assert recipe.data.dataset is not None
    for split in ("dev", "test"):
        try:
            sentences = load_split(recipe.data.dataset, split, data_dir=data_dir)
        except CigeError:  # this data set has no such split here
            continue
        scores[split] = evaluate(ner, sentences).to_dict()
    with atomic_file(folder / SCORES) as aside:
        aside.write_text(json.dumps(scores, ensure_ascii=False, indent=1), encoding="utf-8")
    return scores


def mean_sd(values: list[float]) -> str:
    """Percent, with the standard deviation where there is more than one seed."""
    mean = 100 * statistics.mean(values)
    return f"{mean:.2f} ± {100 * statistics.stdev(values):.2f}" if len(values) > 1 else f"{mean:.2f}"


def table(names: list[str], runs: Path) -> str:
    """One row a recipe: dev and test F1, Span F and Type Acc as mean ± sd over the seeds found, and minutes a run."""
    lines = [
        "| recipe | seeds | dev F1 | test F1 | test Span F | test Type Acc | minutes a run |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in names:
        found = [json.loads(p.read_text(encoding="utf-8")) for p in sorted(runs.glob(f"{name}-[0-9]*/{SCORES}"))]
        if not found:
            continue
        cells = [name, ", ".join(str(x["seed"]) for x in found), mean_sd([x["dev"]["f1"] for x in found])]
        for key in ("f1", "span_f1", "type_accuracy"):
            cells.append(mean_sd([x["test"][key] for x in found]) if all("test" in x for x in found) else "-")
        cells.append(f"{statistics.mean(x['minutes'] for x in found):.1f}")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recipes", nargs="+", help="recipe files")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--runs", default="runs", help="folder of the runs")
    parser.add_argument("--data-dir", help="data sets and vectors (default: $CIGE_DATA)")
    parser.add_argument("--set", nargs="*", default=[], metavar="KEY=VALUE", help="change settings of every recipe")
    parser.add_argument("--table", action="store_true", help="only print the table of what is there")
    arguments = parser.parse_args()
    recipes = [load_recipe(path, arguments.set) for path in arguments.recipes]
    runs = Path(arguments.runs)
    if not arguments.table:
        for seed in arguments.seeds:
            for recipe in recipes:
                scores = run_one(recipe, seed, runs, arguments.data_dir)
                shown = " ".join(f"{s} {100 * scores[s]['f1']:.2f}" for s in ("dev", "test") if s in scores)
                print(f"{recipe.name} seed {seed}: {shown} ({scores['minutes']:.1f} minutes)", flush=True)
    print(table([recipe.name for recipe in recipes], runs))


if __name__ == "__main__":
    main()
