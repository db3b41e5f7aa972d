"""Helpers for tables and figures: short names, Markdown tables, and figures whose fonts cover their text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from cige.drawing.fonts import Fonts
from cige.errors import CigeError
from cige.folders.atomic import atomic_file
from cige.folders.hub import RUN_MODEL

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def names_of_folders(given: Sequence[str]) -> list[str]:
    """A short name for each path: the folder, or the run if it is a run's `model` folder; the path if names clash."""
    short = [Path(one).parent.name if Path(one).name == RUN_MODEL else Path(one).name for one in given]
    return short if len(set(short)) == len(short) and all(short) else list(given)


def markdown_table(heads: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (heads, ["---"] * len(heads), *body))


def drawn_with_fonts_for(texts: Iterable[str]) -> AbstractContextManager[None]:
    """A context in which Matplotlib uses fonts that have every letter of the texts, and draws the texts literally.

    Raises a CigeError if no font on this machine has the letters.
    """
    import matplotlib

    families = Fonts.for_text(texts).families
    return matplotlib.rc_context({"font.family": families, "text.parse_math": False, "svg.fonttype": "none"})


def save_figure(figure: Figure, path: Path) -> None:
    """Write a Matplotlib figure in the format of the extension, or SVG without one; raises a CigeError for others."""
    form = path.suffix.lstrip(".").lower() or "svg"
    if form not in figure.canvas.get_supported_filetypes():
        raise CigeError(f"{path}: ends in {path.suffix!r}; expected .svg, .png or .pdf")
    with atomic_file(path) as aside:
        figure.savefig(aside, format=form, dpi=150)
