"""Explanation: the result of explaining a text, with methods that show it in a terminal, a drawing or an HTML page."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from cige.errors import CigeError
from cige.explain.evidence import Evidence
from cige.folders.atomic import atomic_file

if TYPE_CHECKING:
    from rich.console import RenderableType


class Explanation(Evidence):
    """The result of `NER.explain`: `Evidence` with methods that show it."""

    def to_terminal(self) -> RenderableType:
        """Tables for a terminal: `rich.print(explanation.to_terminal())`."""
        from cige.explain.page import to_terminal

        return to_terminal(self)

    def to_svg(self) -> str:
        """One SVG file: the lattice with attention as the depth of colours, then word sets and maps, if any."""
        from cige.explain.page import to_svg

        return to_svg(self)

    def to_html(self) -> str:
        """One self-contained HTML page: the drawings, the entities with their words, and what changes."""
        from cige.explain.page import to_html

        return to_html(self)

    def _repr_html_(self) -> str:
        """The HTML that a notebook displays: the drawing of the lattice."""
        return self.to_svg()

    def save(self, path: str | PathLike[str]) -> None:
        """Write an HTML page, or only the drawing if `path` ends in .svg or .png, completely or not at all.

        Raises:
            CigeError: `path` has another extension, or it ends in .png and no installed font has the characters of
                the text.
        """
        kind = Path(path).suffix.lower()
        if kind == ".png":
            from cige.drawing.png import save_png

            save_png(self.to_svg(), path)
            return
        if kind not in (".html", ".htm", ".svg"):
            raise CigeError(f"{path}: ends in {kind or 'nothing'!r}; expected .html, .svg or .png")
        content = self.to_svg() if kind == ".svg" else self.to_html()
        with atomic_file(Path(path)) as aside:
            aside.write_text(content, encoding="utf-8")
