"""Drawings: what is in them, where, and that any browser can read them."""

import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from cige.drawing.colours import colour_of
from cige.drawing.lattice import USER_EDGE, WIDE, Emphasis, Mark, draw_lattice
from cige.lattice.lattice import Lattice

SVG = "{http://www.w3.org/2000/svg}"
LATTICE = Lattice(text="重庆人和药店", words=np.array([[0, 2, 0], [0, 3, 1], [2, 6, 2], [4, 6, 9]], np.int32), n_base=4)


def parse(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg)


def texts(root: ElementTree.Element) -> list[str]:
    return [element.text or "" for element in root.iter(f"{SVG}text")]


def words(root: ElementTree.Element) -> dict[str, float]:
    """Each drawn word with the top of its bar."""
    found = {}
    for group in root.iter(f"{SVG}g"):
        path, label = group.find(f"{SVG}path"), group.find(f"{SVG}text")
        assert path is not None and label is not None
        found[label.text] = float(re.match(r"M[\d.]+ ([\d.]+)H", path.attrib["d"]).group(1))
    return found


def test_characters_words_and_marks_are_all_there():
    shown = texts(parse(draw_lattice(LATTICE, marks=[Mark(0, 2, "LOC", "0.98"), Mark(2, 6, "ORG")])))
    assert [c for c in shown if len(c) == 1 and c != "0"] == list("重庆人和药店")
    assert {"重庆", "重庆人", "人和药店", "药店", "LOC 0.98", "ORG"} <= set(shown)


def test_of_marks_that_overlap_the_outermost_is_drawn():
    marks = [Mark(0, 2, "LOC"), Mark(0, 3, "ORG"), Mark(1, 2, "PER"), Mark(2, 6, "TIME"), Mark(4, 6, "GAME")]
    root = parse(draw_lattice(LATTICE, marks=marks))
    drawn = [group.attrib["data-start"] for group in root.iter(f"{SVG}g") if group.get("class") == "mark"]
    shown = [text for text in texts(root) if text.isupper()]
    assert drawn == ["0", "4"] and shown == ["ORG", "GAME", "GAME", "ORG"]  # under the characters and in the legend


def test_words_that_overlap_are_in_different_lanes_and_short_ones_are_lower():
    tops = words(parse(draw_lattice(LATTICE)))
    assert tops["重庆"] == tops["药店"] > tops["重庆人"] > tops["人和药店"]


def test_the_users_own_words_look_different_and_the_legend_says_so():
    svg = draw_lattice(LATTICE)
    assert svg.count(USER_EDGE) == 2  # the word and the legend
    assert "your own word" in svg and "your own word" not in draw_lattice(LATTICE, legend=False).replace(
        "  your own", ""
    )


def test_emphasis_colours_a_word_by_strength_and_label():
    svg = draw_lattice(LATTICE, emphasis={2: Emphasis(1.0, "ORG", "100% of it"), 0: Emphasis(0.0, "LOC")})
    colour_of_org, colour_of_loc = colour_of("ORG"), colour_of("LOC")
    assert f'fill="{colour_of_org}" fill-opacity="0.68"' in svg
    assert f'fill="{colour_of_loc}" fill-opacity="0.08"' in svg
    assert "100% of it" in svg


def test_long_texts_go_on_in_further_rows_and_no_word_is_cut_where_it_need_not_be():
    text = "一二三四五六七八九十" * 3
    lattice = Lattice(text=text, words=np.array([[8, 12, 0]], np.int32), n_base=1)
    svg = draw_lattice(lattice, width=10 * WIDE + 2 * 20 + 34)
    root = parse(svg)
    baselines = {float(e.attrib["y"]) for e in root.iter(f"{SVG}text") if e.attrib["font-size"] == "22"}
    assert len(baselines) == 4  # 8, 10, 10 and 2 characters
    assert "九十一二" in texts(root)


def test_a_word_longer_than_a_row_is_drawn_in_pieces():
    text = "一二三四五六七八九十"
    root = parse(
        draw_lattice(Lattice(text=text, words=np.array([[0, 10, 0]], np.int32), n_base=1), width=6 * WIDE + 74)
    )
    assert {"一二三四五六", "七八九十"} <= set(texts(root))


def test_a_line_break_ends_a_row():
    lattice = Lattice(text="甲\n乙", words=np.zeros((0, 3), np.int32), n_base=0)
    root = parse(draw_lattice(lattice))
    y = {e.text: e.attrib["y"] for e in root.iter(f"{SVG}text")}
    assert y["甲"] == y["↵"] != y["乙"]


@pytest.mark.parametrize("text", ["", "<script>&\"'", "\x00\x1b[31m\ud800\ufffe\u202e", "👨\u200d👩", " \t\r"])
def test_anything_gives_well_formed_xml(text):
    svg = draw_lattice(Lattice(text=text, words=np.zeros((0, 3), np.int32), n_base=0))
    parse(svg)
    assert "<script>" not in svg


def test_words_left_out_are_told():
    lattice = Lattice(text="哈哈", words=np.zeros((0, 3), np.int32), n_base=0, n_dropped=1234)
    assert "1,234 more words are over the node budget" in draw_lattice(lattice)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"width": 0}, "given width=0; expected a whole number"),
        ({"text": "北京大"}, "given a text of 3 characters; expected"),
    ],
)
def test_what_does_not_fit_the_lattice_is_refused(options, told):
    with pytest.raises(ValueError, match=told):
        draw_lattice(LATTICE, **options)
