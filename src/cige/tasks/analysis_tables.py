"""What the analyses of tuned models found, as tables for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from cige.tasks.analysis import EntityErrors, Group, reduction


def group_table(title: str, heading: str, models: Sequence[str], groups: Sequence[Group]) -> Table:
    """Accuracy of each model in per cent, and in points what each but the first gains over the first."""
    heads = [heading, "examples", models[0], *(head for name in models[1:] for head in (name, "gain"))]
    table = Table(*heads, title=title)
    for column in table.columns[1:]:
        column.justify = "right"
    for number, group in enumerate(groups):
        if number == len(groups) - 1:
            table.add_section()
        first, *others = map(_per_cent, group.accuracies)
        gains = (_per_cent(gain, sign="+") for gain in group.gains)
        pairs = (cell for pair in zip(others, gains, strict=True) for cell in pair)
        table.add_row(group.name, f"{group.n_examples:,}", first, *pairs)
    return table


def error_table(title: str, models: Sequence[str], errors: Sequence[EntityErrors]) -> Table:
    """Counts of each model, and how many per cent of the first model's errors are gone."""
    table = Table("model", "predicted", "wrong", "fewer, %", "nested with gold", "fewer, %", title=title)
    for column in table.columns[1:]:
        column.justify = "right"
    for number, (name, own) in enumerate(zip(models, errors, strict=True)):
        wrong, nested = (
            ("", "")
            if number == 0
            else (
                _per_cent(reduction(errors[0].n_wrong, own.n_wrong)),
                _per_cent(reduction(errors[0].n_nested, own.n_nested)),
            )
        )
        table.add_row(name, f"{own.n_predicted:,}", f"{own.n_wrong:,}", wrong, f"{own.n_nested:,}", nested)
    return table


def _per_cent(share: float | None, *, sign: str = "") -> str:
    return "-" if share is None else f"{100 * share:{sign}.2f}"
