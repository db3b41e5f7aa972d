"""What views have in common: short names, tables in Markdown, and figures in fonts that have their words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from cige.drawing.fonts import Fonts
from cige.errors import CigeError
from cige.folders.atomic import atomic_file
from cige.folders.hub import RUN_MODEL


def names_of_folders(given: Sequence[str]) -> list[str]:
    """A short name for each: its folder, or the run whose `model` folder it is; as it was given where those clash."""
    short = [Path(one).parent.name if Path(one).name == RUN_MODEL else Path(one).name for one in given]
    return short if len(set(short)) == len(short) and all(short) else list(given)


def markdown_table(heads: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (heads, ["---"] * len(heads), *body))


def drawn_with_fonts_for(texts: Iterable[str]) -> AbstractContextManager[None]:
    """What is drawn and saved within it has fonts with every letter of the texts, which are taken as they are.

    Raises:
        CigeError: no font of this machine has the letters.
    """
    import matplotlib

    families = Fonts.for_text(texts).families
    return matplotlib.rc_context({"font.family": families, "text.parse_math": False, "svg.fonttype": "none"})


def save_figure(figure: Any, path: Path) -> None:
    """Write a Matplotlib figure in the format that the path's ending names; without an ending SVG.

    Raises:
        CigeError: the ending names no format.
    """
    form = path.suffix.lstrip(".").lower() or "svg"
    if form not in figure.canvas.get_supported_filetypes():
        raise CigeError(f"{path}: ends in {path.suffix!r}; expected .svg, .png or .pdf")
    with atomic_file(path) as aside:
        figure.savefig(aside, format=form, dpi=150)
