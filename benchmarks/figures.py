"""Draw the figures of docs/figures from the results in docs/bench.

    python benchmarks/figures.py

Each figure needs one result; figures without a result are left out and listed.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from cige.errors import CigeError

DOCS = Path(__file__).resolve().parents[1] / "docs"
# One colour and one marker per implementation, the same in all figures.
WAYS = {
    "literal": ("literal equations (PyTorch)", "#888888", "s"),
    "torch": ("cige on PyTorch", "#d1495b", "o"),
    "onnx": ("cige on ONNX Runtime", "#00798c", "^"),
    "int8": ("cige on ONNX Runtime, 8 bits", "#edae49", "D"),
}
Rows = Sequence[Mapping[str, Any]]


def draw_batch(result: Mapping[str, Any]) -> Any:
    """Speed against batch size (FLAT's Figure 3)."""
    figure, axes = plt.subplots(figsize=(6.5, 4.3))
    _speeds(axes, result["by_batch"], "batch_size", "batch size (sentences)")
    axes.set_title("Prediction speed on the Weibo test set")
    return figure


def draw_length(result: Mapping[str, Any]) -> Any:
    """Speed against sentence length (DCSAN's Figures 4 and 5)."""
    figure, axes = plt.subplots(figsize=(6.5, 4.3))
    _speeds(axes, result["by_length"], "n_chars", "sentence length (characters)")
    axes.set_title("Prediction speed on news, batch size 16")
    return figure


def _speeds(axes: Axes, rows: Rows, key: str, label: str) -> None:
    for way, (name, colour, mark) in WAYS.items():
        points = [(row[key], row[way]) for row in rows if way in row]
        if points:
            axes.plot(*zip(*points, strict=True), color=colour, marker=mark, label=name)
    _log_axes(axes, [row[key] for row in rows])
    axes.set_xlabel(label)
    axes.set_ylabel("sentences per second")
    axes.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.15), ncol=2)


def draw_memory(result: Mapping[str, Any]) -> Any:
    """Memory of a training step against nodes."""
    figure, axes = plt.subplots(figsize=(6.5, 4.3))
    rows = [row for row in result["memory"] if row["n_sentences"] == 8]
    nodes = [row["n_nodes"] for row in rows]
    for key, way, style in (("literal_mb", "literal", "-"), ("shipped_mb", "torch", "-"), ("predicted_mb", "", "--")):
        name, colour, mark = WAYS.get(way, ("predicted before allocation", "black", ""))
        points = [(row["n_nodes"], row[key]) for row in rows if row.get(key) is not None]
        axes.plot(*zip(*points, strict=True), style, color=colour, marker=mark or None, label=name)
    _log_axes(axes, nodes)
    axes.set_xlabel("nodes per sentence (batch size 8)")
    axes.set_ylabel("memory of the forward and backward pass (MB)")
    axes.legend(frameon=False)
    axes.set_title("Memory of a training step")
    return figure


def draw_lexicon(result: Mapping[str, Any]) -> Any:
    """Lexicon size against building, memory, loading and matching."""
    rows = result["sizes"]
    words = [row["n_words"] / 1e6 for row in rows]
    figure, panels = plt.subplots(1, 4, figsize=(13, 3.4))
    shown = (
        ("CPU time of building (s)", {"build_processor_s": ""}),
        ("Memory (MB)", {"build_peak_mb": "peak while building", "used_private_mb": "private, per process in use"}),
        ("Loading time (s)", {"load_s": ""}),
        ("Matching speed (MB/s)", {"match_mb_per_s": ""}),
    )
    for axes, (title, keys) in zip(panels, shown, strict=True):
        for key, name in keys.items():
            axes.plot(words, [row[key] for row in rows], marker="o", label=name)
        axes.set_title(title, fontsize=10)
        axes.set_xlabel("lexicon size (million words)")
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3)
        if len(keys) > 1:
            axes.legend(frameon=False, fontsize=8)
    return figure


def draw_crf(result: Mapping[str, Any]) -> Any:
    """Forms of the CRF against sentence length."""
    rows, tasks = result["cases"], ("log Z", "best tags", "marginals")
    figure, panels = plt.subplots(1, 3, figsize=(12, 3.6), sharey=True)
    for axes, task in zip(panels, tasks, strict=True):
        for key in (key for key in rows[0] if key.startswith(task) and not key.endswith("_clock_ms")):
            form = key.removeprefix(f"{task}, ").removesuffix("_ms")
            axes.plot([row["n_chars"] for row in rows], [row[key] for row in rows], marker="o", label=form)
        _log_axes(axes, [row["n_chars"] for row in rows])
        axes.set_title(f"{task} and its gradient" if task == "log Z" else task, fontsize=10)
        axes.set_xlabel("sentence length (characters)")
        axes.legend(frameon=False)
    panels[0].set_ylabel("CPU time for 16 sentences (ms)")
    return figure


def draw_suggest(result: Mapping[str, Any]) -> Any:
    """F1 by labelled sentences, chosen and random: the mean over seeds at each size, and each seed thin behind it."""
    sets = result["sets"]
    figure, all_axes = plt.subplots(1, len(sets), figsize=(4.6 * len(sets), 3.9), squeeze=False)
    for axes, (name, of_set) in zip(all_axes[0], sets.items(), strict=True):
        for strategy, colour, mark in (("random", "#888888", "s"), ("both", "#00798c", "o")):
            curves = of_set["curves"].get(strategy, {}).values()
            scores: dict[int, list[float]] = {}
            for points in curves:
                sizes, f1 = [p["sentences"] for p in points], [100 * p["f1"] for p in points]
                axes.plot(sizes, f1, color=colour, linewidth=0.7, alpha=0.4)
                for size, score in zip(sizes, f1, strict=True):
                    scores.setdefault(size, []).append(score)
            whole = {size: sum(own) / len(own) for size, own in sorted(scores.items()) if len(own) == len(curves)}
            axes.plot([*whole], [*whole.values()], color=colour, marker=mark, label=strategy)
        full = [100 * f1 for f1 in of_set["full"].values()]
        axes.axhline(0.95 * sum(full) / len(full), color="#d1495b", linestyle="--", label="95% of all sentences")
        axes.set_xscale("log")
        ticks = sorted({p["sentences"] for points in of_set["curves"]["random"].values() for p in points})
        axes.set_xticks(ticks, [str(tick) for tick in ticks])
        axes.minorticks_off()
        axes.grid(alpha=0.3)
        axes.set_title(f"{name}, {of_set['n_pool']:,} sentences to choose from")
        axes.set_xlabel("labelled sentences")
        axes.set_ylabel("F1")
        axes.legend(frameon=False, loc="lower right")
    return figure


def _log_axes(axes: Axes, ticks: Sequence[int]) -> None:
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.minorticks_off()
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")
    axes.grid(alpha=0.3)


FIGURES: dict[str, tuple[str, Callable[[Mapping[str, Any]], Any]]] = {
    "speed_by_batch": ("onnx", draw_batch),
    "speed_by_length": ("onnx", draw_length),
    "memory_by_nodes": ("train", draw_memory),
    "lexicon_by_size": ("lexicon", draw_lexicon),
    "crf_by_length": ("crf", draw_crf),
    "f1_by_labelled": ("suggest", draw_suggest),
}


def draw_figures(bench_dir: Path, figure_dir: Path) -> tuple[list[Path], list[str]]:
    """Draw every figure whose result is there, as PNG and SVG.

    Returns:
        The files, and the names of the figures left out.
    """
    figure_dir.mkdir(parents=True, exist_ok=True)
    plt.rcParams |= {"axes.spines.top": False, "axes.spines.right": False, "svg.hashsalt": "cige"}
    drawn, left_out = [], []
    for name, (source, draw) in FIGURES.items():
        path = bench_dir / f"{source}.json"
        if not path.is_file():
            left_out.append(name)
            continue
        try:
            figure = draw(json.loads(path.read_text(encoding="utf-8")))
        except (ValueError, KeyError, TypeError) as reason:
            raise CigeError(f"{path}: not a result of bench_{source}.py ({reason!r}); measure it again") from reason
        figure.tight_layout()
        for suffix, facts in (("png", {}), ("svg", {"Date": None})):
            drawn.append(figure_dir / f"{name}.{suffix}")
            figure.savefig(drawn[-1], dpi=130, metadata=facts)
        plt.close(figure)
    return drawn, left_out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench-dir", type=Path, default=DOCS / "bench", help="results (default: docs/bench)")
    parser.add_argument("--figure-dir", type=Path, default=DOCS / "figures", help="where to draw (docs/figures)")
    args = parser.parse_args()
    drawn, left_out = draw_figures(args.bench_dir, args.figure_dir)
    for path in drawn:
        print(path)
    if left_out:
        print(f"left out, no result in {args.bench_dir}: {', '.join(left_out)}")


if __name__ == "__main__":
    main()
