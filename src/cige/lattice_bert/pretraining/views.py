"""Compare pre-training runs by their results on held-out text, as a table and as curves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

from cige.drawing.colours import PALETTE
from cige.drawing.figures import drawn_with_fonts_for, markdown_table, names_of_folders, save_figure
from cige.engine.history import Record
from cige.engine.run_folder import RECIPE
from cige.errors import CigeError
from cige.lattice_bert.pretraining.objective import per_cent
from cige.lattice_bert.pretraining.pretrain import PretrainResult
from cige.recipes.recipe_file import read_recipe_file

HEADS = (
    "run", "parameters", "million tokens", "minutes", "phase", "tokens found", "loss",
    "tokens of hidden segments found", "their characters", "order of two texts",
)  # fmt: skip
CURVES = {
    "segment_char_accuracy": "accuracy on characters of masked segments, %",
    "sentence_accuracy": "accuracy on the order of two texts, %",
}


def held_out_table(results: Sequence[PretrainResult]) -> str:
    """A Markdown table with one row per run and phase: results at the end of the phase, "-" without held-out text."""
    body = []
    names = names_of_folders([str(result.folder) for result in results])
    for run, result in zip(names, results, strict=True):
        size, tokens = f"{result.n_parameters / 1e6:.1f}M", f"{result.n_tokens / 1e6:.1f}"
        facts = (run, size, tokens, f"{result.seconds / 60:.0f}")
        for name, record in _ends_of_phases(result):
            body.append([*facts, name, *(_figures(record) if record else ["-"] * 5)])
            facts = ("", "", "", "")
    return markdown_table(HEADS, body)


def draw_curves(results: Sequence[PretrainResult], path: Path) -> None:
    """Draw the results of each run on held-out text by step (SVG, PNG or PDF, by the file name extension).

    Only measures that can be compared between models with words and without are drawn. Raises a CigeError if no font on
    this machine has the characters of a run's name, or the extension is not that of a format.
    """
    from matplotlib.figure import Figure

    names = names_of_folders([str(result.folder) for result in results])
    with drawn_with_fonts_for(names):
        figure = Figure(figsize=(10, 4.2), layout="constrained")
        for axes, (key, label) in zip(figure.subplots(1, len(CURVES)), CURVES.items(), strict=True):
            for number, (name, result) in enumerate(zip(names, results, strict=True)):
                points = [(record.step, 100 * record.scores.get(key, math.nan)) for record in result.evaluations]
                steps, shares = zip(*points, strict=True) if points else ((), ())
                axes.plot(steps, shares, color=PALETTE[number % len(PALETTE)], marker=".", label=name)
            axes.set_xlabel("training step")
            axes.set_ylabel(label)
            axes.grid(alpha=0.3)
        figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
        save_figure(figure, path)


def _ends_of_phases(result: PretrainResult) -> list[tuple[str, Record | None]]:
    """(size of the instances, record at the end) of each phase that has steps."""
    path = result.folder / RECIPE
    values, _ = read_recipe_file(path, None)
    try:
        phases = [(values[name]["n_steps"], values[name]["n_characters"]) for name in ("short", "long")]
    except (LookupError, TypeError) as reason:
        raise CigeError(
            f"{path}: not the recipe of a pre-training run ({reason!r}); restore the recipe of this run"
        ) from reason
    ends = accumulate(n_steps for n_steps, _ in phases)
    at = {record.step: record for record in result.evaluations}
    return [
        (f"{n_characters} characters", at.get(end))
        for (n_steps, n_characters), end in zip(phases, ends, strict=True)
        if n_steps
    ]


def _figures(record: Record) -> list[str]:
    scores = record.scores
    shares = map(scores.get, ("segment_accuracy", "segment_char_accuracy", "sentence_accuracy"))
    loss = scores.get("mlm_loss")
    return [per_cent(scores.get("mlm_accuracy")), "-" if loss is None else f"{loss:.2f}", *map(per_cent, shares)]
