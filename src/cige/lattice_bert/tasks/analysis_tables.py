"""Results of the analyses of fine-tuned models, as tables for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from cige.lattice_bert.tasks.analysis import EntityErrors, Group, reduction


def group_table(title: str, heading: str, models: Sequence[str], groups: Sequence[Group]) -> Table:
    """Accuracy of each model in per cent, and the gain of each other model over the first in points."""
    heads = [heading, "examples", models[0], *(head for name in models[1:] for head in (name, "gain"))]
    table = Table(*heads, title=title)
    for column in table.columns[1:]:
        column.justify = "right"
    for number, group in enumerate(groups):
        if number == len(groups) - 1:
            table.add_section()
        sds = [f" ± {100 * sd:.2f}" for sd in group.sds] or [""] * len(models)
        first, *others = (_per_cent(a) + sd for a, sd in zip(group.accuracies, sds, strict=True))
        gains = (_per_cent(gain, sign="+") for gain in group.gains)
        pairs = (cell for pair in zip(others, gains, strict=True) for cell in pair)
        table.add_row(group.name, f"{group.n_examples:,}", first, *pairs)
    return table


def error_table(title: str, models: Sequence[str], errors: Sequence[EntityErrors]) -> Table:
    """Counts of each model, and by how many per cent the first model's errors are reduced."""
    table = Table("model", "predicted", "wrong", "fewer, %", "nested with gold", "fewer, %", title=title)
    for column in table.columns[1:]:
        column.justify = "right"
    for number, (name, of_model) in enumerate(zip(models, errors, strict=True)):
        wrong, nested = (
            ("", "")
            if number == 0
            else (
                _per_cent(reduction(errors[0].n_wrong, of_model.n_wrong)),
                _per_cent(reduction(errors[0].n_nested, of_model.n_nested)),
            )
        )
        predicted, n_wrong, n_nested = _counts(of_model)
        table.add_row(name, predicted, n_wrong, wrong, n_nested, nested)
    return table


def _counts(errors: EntityErrors) -> list[str]:
    if not errors.sds:
        return [f"{count:,}" for count in errors.counts]
    return [f"{count:,.1f} ± {sd:.1f}" for count, sd in zip(errors.counts, errors.sds, strict=True)]


def _per_cent(share: float | None, *, sign: str = "") -> str:
    return "-" if share is None else f"{100 * share:{sign}.2f}"
