"""Drawings as PNG, rendered by resvg.

What no font of this machine has is never drawn as a box: a letter or a Chinese character is an error that says what to
install, and a symbol becomes its code point.
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from xml.etree import ElementTree

from cige.drawing.fonts import SIMPLIFIED, Fonts
from cige.errors import CigeError
from cige.folders.atomic import atomic_file

SCALE = 2  # pixels of the PNG per pixel of the drawing, as on a dense screen
MAX_PIXELS = 80_000_000
_SVG = "http://www.w3.org/2000/svg"


def save_png(svg: str, path: str | PathLike[str]) -> None:
    """Render an SVG into a PNG file; whole or not at all.

    Raises:
        CigeError: no font here has a letter of the text, or the drawing is too large for a PNG.
        ModuleNotFoundError: resvg_py or Matplotlib is not installed (pip install 'cige[plots]').
    """
    from resvg_py import svg_to_bytes

    root = ElementTree.fromstring(svg)
    width, height = float(root.get("width", 0)), float(root.get("height", 0))
    if width * height * SCALE**2 > MAX_PIXELS:
        raise CigeError(
            f"{path}: the drawing is {width:.0f} by {height:.0f} pixels, too large for a PNG; write .svg or .html, or "
            "draw a shorter text"
        )
    texts = [element for element in root.iter(f"{{{_SVG}}}text") if (element.text or "").strip()]
    fonts = Fonts.for_text(element.text or "" for element in texts)
    for element in texts:
        given = element.text or ""
        element.text = shown = fonts.shown(given)
        element.set("font-family", ", ".join([*SIMPLIFIED, *fonts.families]))
        if len(shown) > 1.6 * len(given):  # code points in place of symbols: keep the text within its place
            element.set("font-size", f"{float(element.get('font-size', 12)) * 1.6 * len(given) / len(shown):.2f}")
    ElementTree.register_namespace("", _SVG)
    picture = svg_to_bytes(
        svg_string=ElementTree.tostring(root, encoding="unicode"),
        zoom=SCALE,
        background="#ffffff",
        skip_system_fonts=True,
        font_files=fonts.files,
    )
    with atomic_file(Path(path)) as aside:
        aside.write_bytes(picture)
