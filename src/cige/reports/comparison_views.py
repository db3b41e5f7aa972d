"""Show a comparison as tables and figures: F1 against speed, and the gain from user words."""

from __future__ import annotations

import math
import os
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np

from cige.drawing.colours import PALETTE
from cige.drawing.figures import drawn_with_fonts_for, markdown_table, save_figure
from cige.reports.comparison import SPEED_BATCHES, Row, Trials
from cige.tagging.evaluation import TrialJson

Measure = Literal["f1", "unseen_recall"]


def mean_sd(values: Sequence[float]) -> str:
    """Mean in per cent, with the standard deviation if there are several values."""
    if not values:
        return "-"
    mean = 100 * statistics.mean(values)
    return f"{mean:.2f} ± {100 * statistics.stdev(values):.2f}" if len(values) > 1 else f"{mean:.2f}"


def shown_p(p_value: float) -> str:
    """A p value with three decimals; smaller values are shown as "< 0.001" rather than 0."""
    return "< 0.001" if p_value < 0.001 else f"{p_value:.3f}"


def comparison_table(rows: Sequence[Row]) -> str:
    """Markdown, the best system first. `comparison_note` says how to read the differences and p values."""
    sentences_alone = " (sentences alone)" if any(row.p_covers_seeds is False for row in rows) else ""
    heads = ["system", "seeds", "dev F1", "test F1", "Span F", "Type Acc"]
    heads += [f"behind the best by [95%]{sentences_alone}", f"p{sentences_alone}", "parameters", "minutes per run"]
    heads += [f"sentences/s, batch {size}" for size in SPEED_BATCHES]
    body = [
        [
            row.name,
            ", ".join(map(str, row.seeds)),
            mean_sd(row.dev),
            mean_sd(row.test),
            mean_sd(row.span_f1),
            mean_sd(row.type_accuracy),
            _behind(row),
            "best" if row.p_value is None else shown_p(row.p_value),
            f"{row.n_parameters / 1e6:.1f}M",
            f"{statistics.mean(row.seconds) / 60:.1f}",
            *(f"{row.speed[size]:.0f}" if size in row.speed else "-" for size in SPEED_BATCHES),
        ]
        for row in rows
    ]
    return markdown_table(heads, body)


def comparison_note(rows: Sequence[Row]) -> str:
    """A note that explains the differences and p values, for the line below the table; "" if there are none."""
    compared = [row for row in rows if row.p_value is not None]
    if not compared:
        return ""
    n_pairs = len(rows) * (len(rows) - 1) // 2
    what = "test" if rows[0].test else "dev"
    over = "training seeds and sentences" if compared[0].p_covers_seeds else "sentences alone"
    pairs = f"all {n_pairs} pairs of these {len(rows)} systems" if n_pairs > 1 else "one pair"
    note = (
        f"p: two-sided, on {what}, over {over}, corrected for {pairs} (Holm), because the best row was chosen on these "
        "sentences. The intervals hold simultaneously with 95% confidence. A p value above 0.05 does not mean that two "
        "systems are equal."
    )
    if not compared[0].p_covers_seeds:
        note += (
            " With one seed per system, nothing is known about the effect of another seed: these p values compare "
            "these trained models, not the systems."
        )
    elif any(len(row.seeds) == 1 for row in rows):
        note += " A system with one seed is assumed to vary between seeds as much as the others."
    return note


def _behind(row: Row) -> str:
    if row.behind is None or row.behind_low is None or row.behind_high is None:
        return "-"
    return f"{100 * row.behind:.2f} [{100 * row.behind_low:.2f}, {100 * row.behind_high:.2f}]"


def user_word_table(trials: Trials) -> str:
    """A Markdown table of F1 / recall of entities unseen in training, by system and word list ("-": not measured).

    The last row is the share of the file's distinct names that each list contains, if it was measured.
    """
    first = next(iter(trials.values()))[0] if trials else []
    lists = [trial["words"] for trial in first]
    body = [
        [name, str(len(seeds))]
        + [f"{_mean(seeds, k, 'f1')} / {_mean(seeds, k, 'unseen_recall')}" for k in range(len(lists))]
        for name, seeds in trials.items()
    ]
    if any("listed_names" in trial for trial in first):
        shares = [f"{100 * trial['listed_names']:.1f}%" if "listed_names" in trial else "-" for trial in first]
        body.append(["(share of the names listed)", "", *shares])
    return markdown_table(["system", "seeds", *lists], body)


def _mean(seeds: list[list[TrialJson]], place: int, key: Measure) -> str:
    measured = [of_seed[place][key] for of_seed in seeds if key in of_seed[place]]
    return f"{100 * statistics.mean(measured):.1f}" if measured else "-"


class DrawnSystem(Protocol):
    """What the figure shows of a system; the attributes are those of `Row`."""

    @property
    def name(self) -> str: ...

    @property
    def test(self) -> list[float]: ...

    @property
    def deciding(self) -> list[float]: ...

    @property
    def speed(self) -> dict[int, float]: ...


def draw_f1_against_speed(rows: Sequence[DrawnSystem], path: Path, *, batch_size: int = SPEED_BATCHES[-1]) -> None:
    """Draw each system's F1 against its sentences per second (SVG, PNG or PDF, by the file name extension).

    Systems whose speed was not measured are left out.
    """
    from matplotlib.figure import Figure

    measured = [row for row in rows if batch_size in row.speed]
    names = _short_names([row.name for row in measured])
    speeds = [row.speed[batch_size] for row in measured]
    middle = math.sqrt(min(speeds) * max(speeds)) if speeds else 0.0
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.add_subplot()
    for row, name, x in zip(measured, names, speeds, strict=True):
        values = [100 * value for value in row.deciding]
        y = statistics.mean(values)
        axes.errorbar(x, y, yerr=statistics.stdev(values) if len(values) > 1 else None, fmt="o", capsize=3)
        side, shift = ("left", 6) if x <= middle else ("right", -6)  # keep names within the axes
        axes.annotate(name, (x, y), textcoords="offset points", xytext=(shift, 4), ha=side, fontsize=8)
    axes.set_xscale("log")
    axes.set_xlabel(f"sentences per second (batch size {batch_size}, log scale)")
    split = "test" if measured and measured[0].test else "dev"
    axes.set_ylabel(f"{split} F1 (%), mean and standard deviation over seeds")
    axes.grid(alpha=0.3)
    save_figure(figure, path)


def _short_names(names: Sequence[str]) -> list[str]:
    """Remove the parts (separated by `-`) with which all names begin, such as the data set."""
    shared = os.path.commonprefix([*names]).rpartition("-")[0]  # noqa: RUF071 a common prefix of characters is intended
    return [name.removeprefix(f"{shared}-") for name in names] if shared else list(names)


def draw_user_words(trials: Trials, path: Path, *, split: str = "dev") -> None:
    """Draw a bar for each system and list of user words (SVG, PNG or PDF, by the file name extension).

    The upper plot is F1, the lower one the recall of entities unseen in training, if it was measured. Bars are means
    over seeds with standard deviations.

    Args:
        trials: as returned by `comparison.user_words_of_runs`: system -> seeds -> trials.
        split: name of the split, for the label of the axis.

    Raises:
        CigeError: no font on this machine has the characters of a name, or the extension is not that of a format.
    """
    from matplotlib.figure import Figure

    lists = [str(trial["words"]) for trial in next(iter(trials.values()))[0]] if trials else []
    measures: dict[Measure, str] = {
        "f1": f"{split} F1".strip(),
        "unseen_recall": "recall of entities unseen in training",
    }
    every_trial = [trial for seeds in trials.values() for of_seed in seeds for trial in of_seed]
    drawn = {key: name for key, name in measures.items() if key == "f1" or any(key in trial for trial in every_trial)}
    with drawn_with_fonts_for([*lists, *trials, *measures.values()]):
        width = max(6.0, 1.2 + 0.2 * len(trials) * (len(lists) + 1.5))
        figure = Figure(figsize=(width, 1.2 + 2.8 * len(drawn)), layout="constrained")
        every = figure.subplots(len(drawn), 1, sharex=True, squeeze=False)[:, 0]
        for axes, (key, name) in zip(every, drawn.items(), strict=True):
            _draw_bars(axes, trials, lists, key)
            axes.set_ylabel(f"{name}, %")
        every[-1].set_xticks(range(len(trials)), _short_names(list(trials)), rotation=20 if len(trials) > 4 else 0)
        if lists:
            figure.legend(*every[0].get_legend_handles_labels(), loc="outside upper left", ncols=5, frameon=False)
        save_figure(figure, path)


def _draw_bars(axes: Any, trials: Trials, lists: list[str], key: Measure) -> None:
    bar = 0.8 / max(1, len(lists))
    for k, name in enumerate(lists):
        values = [[100 * (of_seed[k].get(key) or 0.0) for of_seed in seeds] for seeds in trials.values()]
        means = [statistics.mean(of_system) for of_system in values]
        deviations = [statistics.stdev(of_system) if len(of_system) > 1 else 0.0 for of_system in values]
        places = np.arange(len(trials)) + bar * (k - (len(lists) - 1) / 2)
        several = any(len(of_system) > 1 for of_system in values)
        colour = PALETTE[k % len(PALETTE)]
        bars = axes.bar(places, means, 0.92 * bar, yerr=deviations if several else None, label=name, color=colour)
        axes.bar_label(bars, fmt="%.0f", fontsize=7, padding=1)
    axes.set_ylim(0, 108)
    axes.grid(alpha=0.3, axis="y")
    axes.set_axisbelow(True)
