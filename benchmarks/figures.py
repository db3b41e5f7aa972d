"""Draw docs/figures from the results in docs/bench.

Each figure needs one result; figures without a result are left out and listed.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Annotated, Any

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
Result = Mapping[str, Any]


def bench(
    *,
    bench_dir: Annotated[Path, "results"] = DOCS / "bench",
    figure_dir: Annotated[Path, "where to draw"] = DOCS / "figures",
) -> None:
    """Draw all."""
    drawn, left_out = draw_figures(bench_dir, figure_dir)
    print(*drawn, sep="\n")
    if left_out:
        print(f"left out, no result in {bench_dir}: {', '.join(left_out)}")


def _plot(axes: Axes, rows: Sequence[Result], x: str, y: str, style: str = "-", **look: Any) -> None:
    points = [(row[x], row[y]) for row in rows if row.get(y) is not None]
    if points:
        axes.plot(*zip(*points, strict=True), style, **look)


def _look(way: str) -> dict[str, str]:
    return dict(zip(("label", "color", "marker"), WAYS[way], strict=True))


def _ticks(axes: Axes, ticks: Sequence[int]) -> None:
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.minorticks_off()
    axes.grid(alpha=0.3)


def _log_axes(axes: Axes, ticks: Sequence[int]) -> None:
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    _ticks(axes, ticks)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")


def _speeds(rows: Sequence[Result], x: str, xlabel: str, title: str) -> Any:
    figure, axes = plt.subplots(figsize=(6.5, 4.3))
    for way in WAYS:
        _plot(axes, rows, x, way, **_look(way))
    _log_axes(axes, [row[x] for row in rows])
    axes.set(xlabel=xlabel, ylabel="sentences per second", title=title)
    axes.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.15), ncol=2)
    return figure


def draw_batch(result: Result) -> Any:
    """Speed against batch size (FLAT's Figure 3)."""
    return _speeds(result["by_batch"], "batch_size", "batch size (sentences)", "Prediction speed on the Weibo test set")


def draw_length(result: Result) -> Any:
    """Speed against sentence length (DCSAN's Figures 4 and 5)."""
    title = "Prediction speed on news, batch size 16"
    return _speeds(result["by_length"], "n_chars", "sentence length (characters)", title)


def draw_memory(result: Result) -> Any:
    """Memory of a training step against nodes."""
    figure, axes = plt.subplots(figsize=(6.5, 4.3))
    rows = [row for row in result["memory"] if row["n_sentences"] == 8]
    _plot(axes, rows, "n_nodes", "literal_mb", **_look("literal"))
    _plot(axes, rows, "n_nodes", "shipped_mb", **_look("torch"))
    _plot(axes, rows, "n_nodes", "predicted_mb", "--", color="black", label="predicted before allocation")
    _log_axes(axes, [row["n_nodes"] for row in rows])
    axes.set(xlabel="nodes per sentence (batch size 8)", ylabel="memory of the forward and backward pass (MB)")
    axes.set_title("Memory of a training step")
    axes.legend(frameon=False)
    return figure


def draw_lexicon(result: Result) -> Any:
    """Lexicon size against building, memory, loading and matching."""
    rows = [row | {"millions": row["n_words"] / 1e6} for row in result["sizes"]]
    figure, panels = plt.subplots(1, 4, figsize=(13, 3.4))
    memory = {"build_peak_mb": "peak while building", "used_private_mb": "private, per process in use"}
    shown = {"CPU time of building (s)": {"build_processor_s": ""}, "Memory (MB)": memory}
    shown |= {"Loading time (s)": {"load_s": ""}, "Matching speed (MB/s)": {"match_mb_per_s": ""}}
    for axes, (title, keys) in zip(panels, shown.items(), strict=True):
        for key, name in keys.items():
            _plot(axes, rows, "millions", key, marker="o", label=name)
        axes.set_title(title, fontsize=10)
        axes.set(xlabel="lexicon size (million words)", ylim=(0, None))
        axes.grid(alpha=0.3)
        if len(keys) > 1:
            axes.legend(frameon=False, fontsize=8)
    return figure


def draw_crf(result: Result) -> Any:
    """Forms of the CRF against sentence length."""
    rows = result["cases"]
    figure, panels = plt.subplots(1, 3, figsize=(12, 3.6), sharey=True)
    for axes, task in zip(panels, ("log Z", "best tags", "marginals"), strict=True):
        for key in (key for key in rows[0] if key.startswith(task) and not key.endswith("_clock_ms")):
            _plot(axes, rows, "n_chars", key, marker="o", label=key.removeprefix(f"{task}, ").removesuffix("_ms"))
        _log_axes(axes, [row["n_chars"] for row in rows])
        axes.set_title(f"{task} and its gradient" if task == "log Z" else task, fontsize=10)
        axes.set_xlabel("sentence length (characters)")
        axes.legend(frameon=False)
    panels[0].set_ylabel("CPU time for 16 sentences (ms)")
    return figure


def draw_suggest(result: Result) -> Any:
    """F1 by labelled sentences, chosen and random: the mean over seeds at each size, and each seed thin behind it."""
    sets = result["sets"]
    figure, all_axes = plt.subplots(1, len(sets), figsize=(4.6 * len(sets), 3.9), squeeze=False)
    for axes, (name, of_set) in zip(all_axes[0], sets.items(), strict=True):
        for strategy, colour, mark in (("random", "#888888", "s"), ("both", "#00798c", "o")):
            curves = of_set["curves"].get(strategy, {}).values()
            scores: dict[int, list[float]] = {}
            for points in curves:
                axes.plot(
                    [p["sentences"] for p in points], [100 * p["f1"] for p in points], color=colour, lw=0.7, alpha=0.4
                )
                for p in points:
                    scores.setdefault(p["sentences"], []).append(100 * p["f1"])
            whole = {size: mean(own) for size, own in sorted(scores.items()) if len(own) == len(curves)}
            axes.plot([*whole], [*whole.values()], color=colour, marker=mark, label=strategy)
        goal = 95 * mean(of_set["full"].values())
        axes.axhline(goal, color="#d1495b", linestyle="--", label="95% of all sentences")
        axes.set_xscale("log")
        _ticks(axes, sorted({p["sentences"] for points in of_set["curves"]["random"].values() for p in points}))
        axes.set(xlabel="labelled sentences", ylabel="F1")
        axes.set_title(f"{name}, {of_set['n_pool']:,} sentences to choose from")
        axes.legend(frameon=False, loc="lower right")
    return figure


FIGURES: dict[str, tuple[str, Callable[[Result], Any]]] = {
    "speed_by_batch": ("onnx", draw_batch),
    "speed_by_length": ("onnx", draw_length),
    "memory_by_nodes": ("train", draw_memory),
    "lexicon_by_size": ("lexicon", draw_lexicon),
    "crf_by_length": ("crf", draw_crf),
    "f1_by_labelled": ("suggest", draw_suggest),
}


def draw_figures(bench_dir: Path, figure_dir: Path) -> tuple[list[Path], list[str]]:
    """Draw every figure whose result is there, as PNG and SVG; returns the files, and the figures left out."""
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
            raise CigeError(f"{path}: not a result of the benchmark {source} ({reason!r}); run it again") from reason
        figure.tight_layout()
        for suffix, facts in (("png", {}), ("svg", {"Date": None})):
            drawn.append(figure_dir / f"{name}.{suffix}")
            figure.savefig(drawn[-1], dpi=130, metadata=facts)
        plt.close(figure)
    return drawn, left_out
