"""The tables of a score report for a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from rich.table import Table

from cige.entities.calibration import N_BINS, expected_calibration_error, reliability
from cige.entities.errors import KINDS, NOTHING, EntityError
from cige.entities.scores import Counts, Report
from cige.text.counted import counted


def report_table(report: Report, title: str | None = None) -> Table:
    """Precision, recall and F1 in per cent with their counts, in one section per grouping."""
    table = _table("", "P", "R", "F1", "gold", "predicted", "correct", title=title)
    _add(table, f"all ({counted(report.n_sentences, 'sentence')})", report.overall)
    _add(table, "span only", report.span)
    table.add_row("type accuracy", "", "", _per_cent(report.type_accuracy), "", "", "")
    if report.lenient is not None:
        _add(table, "lenient", report.lenient)
    whether = report.by_lexicon | report.by_seen | report.by_repeated
    sections = {"type": report.per_type, "characters": report.by_length, "": whether}
    for heading, group in sections.items():
        table.add_section()
        for name, counts in group.items():
            _add(table, f"{heading} {name}".strip(), counts)
    return table


def error_table(errors: Sequence[EntityError]) -> Table:
    """The number of errors of each kind, by label."""
    labels = sorted({side.label for e in errors for side in (e.gold, e.found) if side is not None})
    table = _table("errors", *labels, "all")
    for kind in KINDS:
        of_kind = [e for e in errors if e.kind == kind]
        by_label = Counter((e.gold or e.found).label for e in of_kind)  # type: ignore[union-attr]
        table.add_row(kind, *(f"{by_label[label]:,}" for label in labels), f"{len(of_kind):,}")
    return table


def confusion_table(confusion: Mapping[str, Mapping[str, int]]) -> Table:
    """Gold labels (rows) and predicted labels with the same span (columns)."""
    table = _table("found as", *confusion)
    for label, row in confusion.items():
        cells = ["" if label == name == NOTHING else f"{n:,}" for name, n in row.items()]
        table.add_row(label, *cells)
    return table


def calibration_table(points: Sequence[tuple[float, bool]]) -> Table:
    """Scores and shares of correct entities, and the expected calibration error."""
    error = expected_calibration_error(points)
    caption = f"expected calibration error {_per_cent(error)}%"
    table = _table("score", "entities", "mean score", "right", caption=caption)
    for in_bin in reliability(points):
        place = min(N_BINS - 1, int(in_bin.score * N_BINS + 1e-9))
        name = f"{place / N_BINS:.2f} to {(place + 1) / N_BINS:.2f}"
        table.add_row(name, f"{in_bin.n:,}", _per_cent(in_bin.score), _per_cent(in_bin.right))
    return table


def _table(*headers: str, title: str | None = None, caption: str | None = None) -> Table:
    table = Table(*headers, title=title, caption=caption)
    for column in table.columns[1:]:
        column.justify = "right"
    return table


def _add(table: Table, name: str, counts: Counts) -> None:
    ratios = map(_per_cent, (counts.precision, counts.recall, counts.f1))
    totals = (f"{n:,}" for n in (counts.n_gold, counts.n_predicted, counts.n_correct))
    table.add_row(name, *ratios, *totals)


def _per_cent(ratio: float) -> str:
    return f"{100 * ratio:.2f}"
