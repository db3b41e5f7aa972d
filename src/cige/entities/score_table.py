"""The table of a score report, as the terminal shows it."""

from __future__ import annotations

from rich.table import Table

from cige.entities.scores import Counts, Report


def report_table(report: Report, title: str | None = None) -> Table:
    """Precision, recall and F1 in per cent with their counts, a section for each way of grouping."""
    table = Table("", "P", "R", "F1", "gold", "predicted", "correct", title=title)
    for column in table.columns[1:]:
        column.justify = "right"
    _add(table, f"all ({report.n_sentences:,} sentences)", report.overall)
    _add(table, "span only", report.span)
    table.add_row("type accuracy", "", "", _per_cent(report.type_accuracy), "", "", "")
    if report.lenient is not None:
        _add(table, "lenient", report.lenient)
    sections = {"type": report.per_type, "characters": report.by_length, "": report.by_lexicon | report.by_seen}
    for heading, group in sections.items():
        table.add_section()
        for name, counts in group.items():
            _add(table, f"{heading} {name}".strip(), counts)
    return table


def _add(table: Table, name: str, counts: Counts) -> None:
    ratios = map(_per_cent, (counts.precision, counts.recall, counts.f1))
    totals = (f"{n:,}" for n in (counts.n_gold, counts.n_predicted, counts.n_correct))
    table.add_row(name, *ratios, *totals)


def _per_cent(ratio: float) -> str:
    return f"{100 * ratio:.2f}"
