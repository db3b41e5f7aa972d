"""Write drawings as PNG, rendered by resvg.

A character that no font on this machine has is never drawn as an empty box. A letter or a Chinese character raises an
error that says what to install, and a symbol is replaced by its code point.
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from xml.etree import ElementTree

from cige.drawing.fonts import SIMPLIFIED, Fonts
from cige.errors import CigeError
from cige.folders.atomic import atomic_file

SCALE = 2  # pixels of the PNG per pixel of the drawing, as on a high-resolution screen
MAX_PIXELS = 80_000_000
_SVG = "http://www.w3.org/2000/svg"


def save_png(svg: str, path: str | PathLike[str]) -> None:
    """Render an SVG to a PNG file, which is written completely or not at all.

    Raises:
        CigeError: no installed font has a letter of the text, or the drawing is too large for a PNG.
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
        if len(shown) > 1.6 * len(given):  # symbols were replaced by code points: keep the text within its width
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
