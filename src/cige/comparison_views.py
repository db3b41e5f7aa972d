"""A comparison as tables and as the figure of F1 against speed."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cige.comparison import SPEED_BATCHES, Row
from cige.files import atomic_file


def mean_sd(values: Sequence[float]) -> str:
    """Per cent, with the standard deviation where there is more than one."""
    if not values:
        return "-"
    mean = 100 * statistics.mean(values)
    return f"{mean:.2f} ± {100 * statistics.stdev(values):.2f}" if len(values) > 1 else f"{mean:.2f}"


def comparison_table(rows: Sequence[Row]) -> str:
    """Markdown, the best system first."""
    heads = ["system", "seeds", "dev F1", "test F1", "Span F", "Type Acc", "p", "parameters", "minutes a run"]
    heads += [f"sentences/s, batch {size}" for size in SPEED_BATCHES]
    body = [
        [
            row.name,
            ", ".join(map(str, row.seeds)),
            mean_sd(row.dev),
            mean_sd(row.test),
            mean_sd(row.span_f1),
            mean_sd(row.type_accuracy),
            "best" if row.p_value is None else f"{row.p_value:.3f}",
            f"{row.n_parameters / 1e6:.1f}M",
            f"{statistics.mean(row.minutes):.1f}",
            *(f"{row.speed[size]:.0f}" if size in row.speed else "-" for size in SPEED_BATCHES),
        ]
        for row in rows
    ]
    return _markdown(heads, body)


def user_word_table(found: dict[str, list[list[dict[str, Any]]]]) -> str:
    """Markdown: for each system, F1 / recall of entities unseen in training with each list of user words."""
    lists = [trial["words"] for trial in next(iter(found.values()))[0]] if found else []
    body = [
        [name, str(len(seeds))]
        + [f"{_mean(seeds, k, 'f1')} / {_mean(seeds, k, 'unseen_recall')}" for k in range(len(lists))]
        for name, seeds in found.items()
    ]
    return _markdown(["system", "seeds", *lists], body)


def _mean(seeds: list[list[dict[str, Any]]], place: int, key: str) -> str:
    return f"{100 * statistics.mean(trials[place].get(key) or 0.0 for trials in seeds):.1f}"


def _markdown(heads: list[str], body: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (heads, ["---"] * len(heads), *body))


def draw_f1_against_speed(rows: Sequence[Row], path: Path, *, batch_size: int = SPEED_BATCHES[-1]) -> None:
    """A figure (SVG, PNG or PDF by the path's ending): each system's F1 over its sentences a second.

    Systems whose speed was not measured are left out.
    """
    from matplotlib.figure import Figure

    measured = [row for row in rows if batch_size in row.speed]
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.add_subplot()
    for row in measured:
        values = [100 * x for x in row.deciding]
        x, y = row.speed[batch_size], statistics.mean(values)
        axes.errorbar(x, y, yerr=statistics.stdev(values) if len(values) > 1 else None, fmt="o", capsize=3)
        axes.annotate(row.name, (x, y), textcoords="offset points", xytext=(6, 4), fontsize=8)
    axes.set_xscale("log")
    axes.set_xlabel(f"sentences a second, batch {batch_size} (log scale)")
    axes.set_ylabel(f"{'test' if measured and measured[0].test else 'dev'} F1, mean and sd over seeds")
    axes.grid(alpha=0.3)
    with atomic_file(path) as aside:
        figure.savefig(aside, format=path.suffix.lstrip(".") or "svg")
