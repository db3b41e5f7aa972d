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
from cige.drawing import fonts
from cige.drawing.fonts import Fonts
from cige.drawing.png import SCALE, save_png
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


def test_paths_and_lines_are_drawn(tmp_path):
    picture = drawn(page('<path d="M10 10h20v20h-20z" fill="#00ff00"/>'), tmp_path)
    assert (picture[11 * SCALE : 29 * SCALE, 11 * SCALE : 29 * SCALE] == (0, 255, 0)).all()
    picture = drawn(page('<circle cx="30" cy="20" r="10" fill="#0000ff"/>'), tmp_path)
    assert (picture[20 * SCALE, 30 * SCALE] == (0, 0, 255)).all() and (picture[11 * SCALE, 21 * SCALE] == 255).all()


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
    builder.setupNameTable({"familyName": family, "styleName": "Regular", "psName": family.replace(" ", "")})
    builder.setupOS2()
    builder.setupPost()
    builder.save(path)


def test_chinese_is_drawn_where_a_font_has_it(tmp_path, monkeypatch):
    square, triangle = [(0, 0), (0, 800), (800, 800), (800, 0)], [(0, 0), (400, 800), (800, 0)]
    small_font(tmp_path / "small.ttf", "Noto Sans SC Small", {"花": square, "开": triangle})
    monkeypatch.setattr(font_manager.fontManager, "ttflist", [])  # as if no other font were installed
    font_manager.fontManager.addfont(tmp_path / "small.ttf")
    pictures = [drawn(page(svg_text(char, 30, 30, size=20)), tmp_path) for char in "花开"]
    n_dark = [int((picture < 128).all(2).sum()) for picture in pictures]
    assert n_dark[0] > 1.5 * n_dark[1] > 0, "a square and a triangle, and no box for either"


def test_no_font_that_has_a_box_for_everything_is_taken():
    assert not any("Last Resort" in family for family, _ in fonts.candidates())


def only_latin(monkeypatch) -> None:
    latin = [entry for entry in fonts.candidates() if entry[0] == "DejaVu Sans"]
    monkeypatch.setattr(fonts, "candidates", lambda: iter(latin))


def test_without_a_font_it_says_what_to_install(tmp_path, monkeypatch):
    only_latin(monkeypatch)
    with pytest.raises(CigeError, match=r"no font on this machine has 公 \(U\+516C\) .*fonts-noto-cjk.*write \.svg or"):
        save_png(page(svg_text("花开公司", 30, 30, size=20)), tmp_path / "picture.png")
    assert not list(tmp_path.iterdir())


def test_bold_text_is_bolder(tmp_path):
    plain, bold = (drawn(page(svg_text("MM", 30, 30, size=20, weight=w)), tmp_path) for w in ("400", "600"))
    assert (bold < 128).sum() > 1.1 * (plain < 128).sum()


def test_a_font_file_that_is_gone_is_passed_over(tmp_path, monkeypatch):
    small_font(tmp_path / "small.ttf", "Noto Sans SC Gone", {"开": [(0, 0), (400, 800), (800, 0)]})
    monkeypatch.setattr(font_manager.fontManager, "ttflist", [*font_manager.fontManager.ttflist])
    font_manager.fontManager.addfont(tmp_path / "small.ttf")
    (tmp_path / "small.ttf").unlink()
    assert "Noto Sans SC Gone" not in Fonts.for_text(["abc"]).families


def test_a_symbol_without_a_font_is_its_code_point(tmp_path, monkeypatch):
    only_latin(monkeypatch)
    symbol = "\U0001f9f8"  # an emoji that the font lacks
    found = Fonts.for_text([f"a{symbol}"])
    assert found.shown(f"a{symbol}") == "aU+1F9F8" and found.shown("abc") == "abc"
    pictures = [drawn(page(svg_text(char, 30, 30, size=20)), tmp_path) for char in (symbol, "\U0001f9d0")]
    assert (pictures[0] < 128).any() and (pictures[0] != pictures[1]).any()


def test_a_drawing_that_is_too_large_is_refused(tmp_path):
    with pytest.raises(CigeError, match=r"9000 by 9000 pixels, too large for a PNG.*\.svg"):
        save_png(page("", 9000, 9000), tmp_path / "picture.png")


def test_an_explanation_as_a_picture(tmp_path):
    config = DcsanConfig(width=16, n_cross_heads=2, n_self_heads=2, ff_width=16)
    explanation = NER(tiny.model(architecture="dcsan", config=config)).explain("abc", maps=True)
    explanation.save(tmp_path / "picture.png")
    assert (tmp_path / "picture.png").read_bytes()[1:4] == b"PNG"


def test_a_stale_list_of_fonts_is_brought_up_to_date(tmp_path, monkeypatch):
    """A font that was installed after Matplotlib made its list is found, and one that is gone is left out."""
    char = "\U00020000"
    small_font(tmp_path / "new.ttf", "Brand New", {char: [(0, 0), (500, 0), (500, 500)]})
    listed = font_manager.fontManager.ttflist
    gone = font_manager.FontEntry(fname=str(tmp_path / "gone.ttf"), name="Noto Sans CJK SC", weight=400, style="normal")
    monkeypatch.setattr(font_manager.fontManager, "ttflist", [gone, *(x for x in listed if "new.ttf" not in x.fname)])
    monkeypatch.setattr(font_manager, "findSystemFonts", lambda: [str(tmp_path / "new.ttf"), str(tmp_path / "bad.ttf")])
    (tmp_path / "bad.ttf").write_bytes(b"no font")
    found = Fonts.for_text([char])
    assert "Brand New" in found.families and not found.missing
    assert str(tmp_path / "gone.ttf") not in found.files
