"""PNG of the drawings: shapes where the SVG has them, and no box in place of a character."""

from __future__ import annotations

from pathlib import Path

import matplotlib.image
import numpy as np
import pytest
import tiny
from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen
from matplotlib import font_manager

from cige.api import NER
from cige.drawing import png as svg_to_png
from cige.drawing.png import SCALE, path_points, save_png
from cige.drawing.svg import stacked, svg_page, svg_text
from cige.errors import CigeError
from cige.models.dcsan import DcsanConfig


def drawn(svg: str, tmp_path) -> np.ndarray:
    """uint8[height, width, 3]."""
    save_png(svg, tmp_path / "picture.png")
    return (matplotlib.image.imread(tmp_path / "picture.png")[:, :, :3] * 255).round().astype(np.uint8)


def page(elements: str, width: int = 60, height: int = 40) -> str:
    return svg_page(width, height, elements, title="a page")


def test_rectangles_stand_where_the_svg_has_them(tmp_path):
    rects = '<g><rect x="10" y="20" width="30" height="10" fill="#ff0000"><title>t</title></rect></g>'
    rects += '<rect x="50" y="0" width="10" height="40" fill="#0000ff" fill-opacity="0.5"/>'
    picture = drawn(page(rects), tmp_path)
    assert picture.shape == (40 * SCALE, 60 * SCALE, 3)
    assert (picture[21 * SCALE : 29 * SCALE, 11 * SCALE : 39 * SCALE] == (255, 0, 0)).all()
    assert (picture[: 19 * SCALE, : 49 * SCALE] == 255).all() and (picture[32 * SCALE :, : 49 * SCALE] == 255).all()
    assert (picture[10, 55 * SCALE] == (127, 127, 255)).all()


def test_paths_are_read_as_they_are_written(tmp_path):
    points, codes = path_points("M1 2h6v-3h-6zM10.5 0H20V5q0 6 -6 6Z")
    assert points == [
        (1, 2),
        (7, 2),
        (7, -1),
        (1, -1),
        (1, -1),
        (10.5, 0),
        (20, 0),
        (20, 5),
        (20, 11),
        (14, 11),
        (14, 11),
    ]
    assert codes == [1, 2, 2, 2, 79, 1, 2, 2, 3, 3, 79]
    picture = drawn(page('<path d="M10 10h20v20h-20z" fill="#00ff00"/>'), tmp_path)
    assert (picture[11 * SCALE : 29 * SCALE, 11 * SCALE : 29 * SCALE] == (0, 255, 0)).all()


def test_stacked_pages_stand_under_one_another(tmp_path):
    box = '<rect x="0" y="0" width="9" height="9" fill="{}"/>'
    picture = drawn(stacked([page(box.format("#ff0000")), page(box.format("#00ff00"), 80)], title="two"), tmp_path)
    assert picture.shape == (80 * SCALE, 80 * SCALE, 3)
    assert (picture[4, 4] == (255, 0, 0)).all() and (picture[40 * SCALE + 4, 4] == (0, 255, 0)).all()


def test_different_characters_look_different(tmp_path):
    pictures = [drawn(page(svg_text(char, 30, 30, size=20)), tmp_path) for char in "AB"]
    assert (pictures[0] < 128).any() and (pictures[0] != pictures[1]).any()


def small_font(path: Path, family: str, outlines: dict[str, list[tuple[int, int]]]) -> None:
    """A TrueType font with one polygon for each character."""
    glyphs = {".notdef": TTGlyphPen(None).glyph()}
    for name, points in outlines.items():
        pen = TTGlyphPen(None)
        pen.moveTo(points[0])
        for point in points[1:]:
            pen.lineTo(point)
        pen.closePath()
        glyphs[f"uni{ord(name):04X}"] = pen.glyph()
    builder = FontBuilder(1000, isTTF=True)
    builder.setupGlyphOrder(list(glyphs))
    builder.setupCharacterMap({ord(name): f"uni{ord(name):04X}" for name in outlines})
    builder.setupGlyf(glyphs)
    builder.setupHorizontalMetrics(dict.fromkeys(glyphs, (1000, 0)))
    builder.setupHorizontalHeader(ascent=800, descent=-200)
    builder.setupNameTable({"familyName": family, "styleName": "Regular"})
    builder.setupOS2()
    builder.setupPost()
    builder.save(path)


def test_chinese_is_drawn_where_a_font_has_it(tmp_path, monkeypatch):
    square, triangle = [(0, 0), (0, 800), (800, 800), (800, 0)], [(0, 0), (400, 800), (800, 0)]
    small_font(tmp_path / "small.ttf", "Noto Sans SC Small", {"花": square, "开": triangle})
    monkeypatch.setattr(font_manager.fontManager, "ttflist", [*font_manager.fontManager.ttflist])
    font_manager.fontManager.addfont(tmp_path / "small.ttf")
    pictures = [drawn(page(svg_text(char, 30, 30, size=20)), tmp_path) for char in "花开"]
    n_dark = [int((picture < 128).all(2).sum()) for picture in pictures]
    assert n_dark[0] > 1.5 * n_dark[1] > 0, "a square and a triangle, and no box for either"


def test_no_font_that_has_a_box_for_everything_is_taken():
    assert not any("Last Resort" in family for family, _ in svg_to_png._candidates())


def only_latin(monkeypatch) -> None:
    latin = [entry for entry in svg_to_png._candidates() if entry[0] == "DejaVu Sans"]
    monkeypatch.setattr(svg_to_png, "_candidates", lambda: iter(latin))


def test_without_a_font_it_says_what_to_install(tmp_path, monkeypatch):
    only_latin(monkeypatch)
    with pytest.raises(CigeError, match=r"no font on this machine has 公 \(U\+516C\) .*fonts-noto-cjk.*write \.svg or"):
        save_png(page(svg_text("花开公司", 30, 30, size=20)), tmp_path / "picture.png")
    assert not list(tmp_path.iterdir())


def test_a_symbol_without_a_font_is_its_code_point(tmp_path, monkeypatch):
    only_latin(monkeypatch)
    symbol = "\U0001fae8"  # an emoji that the font lacks
    fonts = svg_to_png._Fonts.for_text([f"a{symbol}"])
    assert fonts.shown(f"a{symbol}") == "aU+1FAE8" and fonts.shown("abc") == "abc"
    pictures = [drawn(page(svg_text(char, 30, 30, size=20)), tmp_path) for char in (symbol, "\U0001fae7")]
    assert (pictures[0] != pictures[1]).any()


def test_what_it_does_not_know_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="an element circle"):
        save_png(page("<circle/>"), tmp_path / "picture.png")
    with pytest.raises(ValueError, match="a path command L"):
        save_png(page('<path d="M0 0L1 1"/>'), tmp_path / "picture.png")
    with pytest.raises(CigeError, match=r"9000 by 9000, too large for a PNG.*\.svg"):
        save_png(page("", 9000, 9000), tmp_path / "picture.png")


def test_an_explanation_as_a_picture(tmp_path):
    config = DcsanConfig(width=16, n_cross_heads=2, n_self_heads=2, ff_width=16)
    explanation = NER(tiny.model(architecture="dcsan", config=config)).explain("abc", maps=True)
    explanation.save(tmp_path / "picture.png")
    assert (tmp_path / "picture.png").read_bytes()[1:4] == b"PNG"
