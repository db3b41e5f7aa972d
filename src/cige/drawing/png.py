"""The drawings of this package as PNG: what `cige.drawing.svg` and its users write, drawn again by Matplotlib.

Only the elements that they use are known: nested svg, g, title, rect, path (M H V h v q z, as they write it) and text.
Characters are drawn in the first font of this machine that has them, those for Chinese first. What no font has is
never a box: a letter or a Chinese character is an error that says what to install, a symbol becomes its code point.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache
from os import PathLike
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from cige.errors import CigeError
from cige.folders.atomic import atomic_file

SCALE = 2  # pixels of the PNG for one of the drawing, as on a dense screen
MAX_PIXELS = 80_000_000
_SIMPLIFIED = ("Noto Sans CJK SC", "Noto Sans SC", "Source Han Sans SC", "PingFang SC", "Microsoft YaHei")
_PREFERRED = (*_SIMPLIFIED, "Noto Sans CJK", "Source Han Sans", "PingFang", "WenQuanYi", "SimHei", "DejaVu Sans")
_DPI = 72  # a point of Matplotlib is then a pixel of the drawing
_TOKEN = re.compile(r"[A-Za-z]|-?[0-9]*\.?[0-9]+(?:e-?[0-9]+)?")
_NUMBERS_OF = {"M": 2, "H": 1, "V": 1, "h": 1, "v": 1, "q": 4, "z": 0, "Z": 0}


def save_png(svg: str, path: str | PathLike[str]) -> None:
    """Draw an SVG of this package into a PNG file; whole or not at all.

    Raises:
        CigeError: no font here has a letter of the text, or the drawing is too large for a PNG.
        ModuleNotFoundError: Matplotlib is not installed (pip install 'cige[plots]').
    """
    from matplotlib.figure import Figure

    root = ElementTree.fromstring(svg)
    width, height = float(root.get("width", 0)), float(root.get("height", 0))
    if width * height * SCALE**2 > MAX_PIXELS:
        raise CigeError(
            f"{path}: the drawing is {width:.0f} by {height:.0f}, too large for a PNG; write .svg or .html, or draw a "
            "shorter text"
        )
    fonts = _Fonts.for_text(element.text or "" for element in root.iter() if _name(element) == "text")
    figure = Figure(figsize=(width / _DPI, height / _DPI), dpi=_DPI)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, width)
    axes.set_ylim(height, 0)
    axes.axis("off")
    _draw(axes, root, 0.0, width, height, fonts)
    with atomic_file(Path(path)) as aside:
        figure.savefig(aside, format="png", dpi=_DPI * SCALE)


# ---- fonts


class _Fonts:
    """The families that a text is drawn with, and what to write for the symbols that none of them has."""

    def __init__(self, families: list[str], missing: set[str]):
        self.families, self._missing = families, missing

    @classmethod
    def for_text(cls, lines: Iterable[str]) -> _Fonts:
        wanted = {char for line in lines for char in line if not char.isspace()}
        families: list[str] = []
        left = set(wanted)
        for family, path in _candidates():
            if not left:
                break
            if has := left & _characters_of(path):
                families.append(family)
                left -= has
        letters = sorted(char for char in left if unicodedata.category(char)[0] == "L")
        if letters:
            shown = " ".join(f"{char} (U+{ord(char):04X})" for char in letters[:5])
            raise CigeError(
                f"no font on this machine has {shown}{' ...' if len(letters) > 5 else ''}; install one that does, such "
                "as Noto Sans CJK (Debian and Ubuntu: apt-get install fonts-noto-cjk), or write .svg or .html, which "
                "are shown with the fonts of whoever looks at them"
            )
        return cls(families or ["DejaVu Sans"], left)

    def shown(self, text: str) -> str:
        if not self._missing & set(text):
            return text
        return "".join(f"U+{ord(char):X}" if char in self._missing else char for char in text)


def families_for(texts: Iterable[str]) -> list[str]:
    """Font families for Matplotlib that together have every letter of the texts.

    Raises:
        CigeError: there is none; it says what to install.
    """
    return _Fonts.for_text(texts).families


def _candidates() -> Iterator[tuple[str, str]]:
    """Families of this machine and a file of each: for Chinese in a preferred order, Matplotlib's own, all others."""
    from matplotlib import font_manager

    found: dict[str, str] = {}
    for entry in font_manager.fontManager.ttflist:
        if entry.name not in found or (entry.style == "normal" and entry.weight in (400, "normal", "regular")):
            found[entry.name] = entry.fname

    def rank(family: str) -> tuple[int, str]:
        known = [k for k, prefix in enumerate(_PREFERRED) if family.startswith(prefix)]
        return (known[0] if known else len(_PREFERRED), family)

    # Matplotlib's Last Resort claims every character and draws each as a box.
    yield from ((family, found[family]) for family in sorted(found, key=rank) if not family.startswith("Last Resort"))


@cache
def _characters_of(path: str) -> frozenset[str]:
    from matplotlib.ft2font import FT2Font

    try:
        return frozenset(map(chr, FT2Font(path).get_charmap()))
    except (OSError, RuntimeError):  # a file that this FreeType cannot read
        return frozenset()


# ---- shapes


def _draw(axes: Any, element: ElementTree.Element, top: float, width: float, height: float, fonts: _Fonts) -> None:
    """Draw an svg or g and what is in it, `top` pixels down a page of that width and height."""
    for child in element:
        name = _name(child)
        if name == "svg":
            inner = float(child.get("width", width)), float(child.get("height", height))
            _draw(axes, child, top + float(child.get("y", 0)), *inner, fonts)
        elif name == "g":
            _draw(axes, child, top, width, height, fonts)
        elif name == "rect":
            _rect(axes, child, top, width, height)
        elif name == "path":
            _path(axes, child, top)
        elif name == "text":
            _text(axes, child, top, fonts)
        elif name != "title":
            raise ValueError(f"an element {name} in the drawing; none of those known here")


def _rect(axes: Any, element: ElementTree.Element, top: float, page_width: float, page_height: float) -> None:
    from matplotlib.patches import FancyBboxPatch, Rectangle

    width, height = _length(element, "width", page_width), _length(element, "height", page_height)
    at = (float(element.get("x", 0)), top + float(element.get("y", 0)))
    radius = float(element.get("rx", 0))
    style = _style(element)
    if radius and element.get("width") != "100%":
        box = f"round,pad=0,rounding_size={min(radius, width / 2, height / 2)}"
        axes.add_patch(FancyBboxPatch(at, width, height, boxstyle=box, mutation_aspect=1, **style))
    else:  # the page itself fills the picture
        axes.add_patch(Rectangle(at, width, height, antialiased=bool(style["linewidth"]), **style))


def _path(axes: Any, element: ElementTree.Element, top: float) -> None:
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path as Outline

    vertices, codes = path_points(element.get("d", ""))
    outline = Outline([(x, y + top) for x, y in vertices], codes)
    axes.add_patch(PathPatch(outline, **_style(element)))


def path_points(commands: str) -> tuple[list[tuple[float, float]], list[int]]:
    """Points and codes of `matplotlib.path.Path` for the d of a path that uses M, H, V, h, v, q and z."""
    move, line, curve, close = 1, 2, 3, 79  # Path.MOVETO, LINETO, CURVE3, CLOSEPOLY
    points: list[tuple[float, float]] = []
    codes: list[int] = []
    tokens = _TOKEN.findall(commands)
    x = y = 0.0
    place = 0
    while place < len(tokens):
        command = tokens[place]
        if command not in _NUMBERS_OF:
            raise ValueError(f"a path command {command} in the drawing; none of {' '.join(_NUMBERS_OF)}")
        numbers = [float(number) for number in tokens[place + 1 : place + 1 + _NUMBERS_OF[command]]]
        place += 1 + len(numbers)
        if command in "zZ":
            points.append((x, y))
            codes.append(close)
            continue
        if command == "q":
            points += [(x + numbers[0], y + numbers[1]), (x + numbers[2], y + numbers[3])]
            codes += [curve, curve]
            x, y = points[-1]
            continue
        if command == "M":
            x, y = numbers
        elif command in "Hh":
            x = numbers[0] + (x if command == "h" else 0)
        else:
            y = numbers[0] + (y if command == "v" else 0)
        points.append((x, y))
        codes.append(move if command == "M" else line)
    return points, codes


def _text(axes: Any, element: ElementTree.Element, top: float, fonts: _Fonts) -> None:
    if not (element.text or "").strip():
        return
    shown = fonts.shown(element.text or "")
    size = float(element.get("font-size", 12)) * min(1.0, 1.6 * len(element.text or "") / len(shown))
    axes.text(
        float(element.get("x", 0)),
        top + float(element.get("y", 0)),
        shown,
        fontsize=size,
        fontfamily=fonts.families,
        fontweight="bold" if element.get("font-weight") else "normal",
        color=element.get("fill", "#000000"),
        horizontalalignment={"start": "left", "end": "right"}.get(element.get("text-anchor", "start"), "center"),
        verticalalignment="baseline",
        parse_math=False,
    )


def _style(element: ElementTree.Element) -> dict[str, Any]:
    from matplotlib.colors import to_rgba

    fill, stroke = element.get("fill", "#000000"), element.get("stroke")
    dash = element.get("stroke-dasharray")
    return {
        "facecolor": "none" if fill == "none" else to_rgba(fill, float(element.get("fill-opacity", 1))),
        "edgecolor": stroke or "none",
        "linewidth": float(element.get("stroke-width", 1)) if stroke else 0,
        "linestyle": (0, tuple(map(float, dash.split()))) if dash else "solid",
    }


def _length(element: ElementTree.Element, name: str, whole: float) -> float:
    given = element.get(name, "0")
    return whole * float(given[:-1]) / 100 if given.endswith("%") else float(given)


def _name(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]
