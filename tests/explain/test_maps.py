"""Heat maps: well-formed SVG with every label, colours that follow the weights, a terminal form that fits."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
from rich.cells import cell_len
from rich.console import Console

from cige.drawing.lattice import Mark
from cige.explain.attention import WORDS_READ, AttentionMap
from cige.explain.maps import MAX_SIDE, TerminalMap, draw_map, reason_not_drawn, shade, shares_of

SVG = "{http://www.w3.org/2000/svg}"


def random_map(text: str, *, n_heads: int = 4, seed: int = 0) -> AttentionMap:
    heads = np.random.default_rng(seed).random((n_heads, len(text), len(text))).astype(np.float32) ** 3
    heads /= heads.sum(2, keepdims=True)
    return AttentionMap("some attention", "word sets", "characters", 7, list(text), list(text), heads)


def words_map(text: str, words: list[str]) -> AttentionMap:
    heads = np.full((1, len(text), len(words)), 0.25, np.float32)
    return AttentionMap(WORDS_READ, "characters", "words", 0, list(text), words, heads)


def texts(svg: str) -> list[str]:
    return [element.text or "" for element in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def printed(drawn: AttentionMap, width: int = 100) -> list[str]:
    console = Console(file=io.StringIO(), width=width)
    console.print(TerminalMap(drawn))
    return console.file.getvalue().splitlines()


def test_labels_are_on_both_sides_and_escaped():
    found = texts(draw_map(random_map('花<b>&"\x00\ud800\n')))
    for label in '花<b>&"↵\ufffd':
        assert found.count(label) >= 2
    assert "rows (queries): word sets; columns (keys): characters; each row sums to 100%; mean of 4 heads" in found
    assert [f"head {k}" in found for k in range(1, 6)] == [True] * 4 + [False]


def test_each_cell_has_its_weight_and_its_colour():
    drawn = random_map("花开公司")
    root = ElementTree.fromstring(draw_map(drawn))
    notes = {
        r.findtext(f"{SVG}title"): r.get("fill") for r in root.iter(f"{SVG}rect") if r.find(f"{SVG}title") is not None
    }
    mean, shares = drawn.mean, shares_of(drawn.mean)
    for row, asking in enumerate("花开公司"):
        for column, answering in enumerate("花开公司"):
            colour = notes[f"{asking} → {answering}  {mean[row, column]:.1%}"]
            assert colour == "#{:02x}{:02x}{:02x}".format(*shade(shares[row, column]))


def test_colours_darken_with_the_share():
    light = [sum(shade(x)) for x in np.linspace(0, 1, 50)]
    assert light == sorted(light, reverse=True) and shade(0) == (255, 255, 255)
    even = np.full((2, 3), 0.25)
    assert not shares_of(even).any()
    np.testing.assert_allclose(shares_of(np.array([0.1, 0.2, 0.3])), [0, 0.5, 1])


def test_words_are_written_downwards_over_their_column():
    root = ElementTree.fromstring(draw_map(words_map("南京市长", ["南京市", "市长"])))
    places: dict[str, list[tuple[float, float]]] = {}
    for element in root.iter(f"{SVG}text"):
        if len(element.text) == 1:
            places.setdefault(element.text, []).append((float(element.get("x")), float(element.get("y"))))
    column = [min(places[char], key=lambda at: at[1]) for char in "南京"] + [
        min(places["市"], key=lambda at: (at[0] > column_of(places), at[1]))
    ]
    xs, ys = zip(*column, strict=True)
    assert len(set(xs)) == 1 and list(ys) == sorted(ys)


def column_of(places: dict[str, list[tuple[float, float]]]) -> float:
    """Where the first word stands."""
    return min(places["南"], key=lambda at: at[1])[0]


def test_characters_of_entities_are_coloured_on_both_axes():
    root = ElementTree.fromstring(draw_map(random_map("花开公司欢迎"), [Mark(7, 11, "ORG"), Mark(100, 101, "PER")]))
    grounds = [r for r in root.iter(f"{SVG}rect") if r.get("fill-opacity")]
    assert [r.findtext(f"{SVG}title") for r in grounds] == ["ORG", "ORG"]
    assert {(float(r.get("width")), float(r.get("height"))) for r in grounds} == {(24, 96), (96, 21)}


def test_everything_is_within_the_drawing():
    for drawn in (
        random_map("花"),
        random_map("花开公司竭诚欢迎您" * 4, n_heads=8),
        words_map("花" * 30, ["花" * 9] * 3),
    ):
        root = ElementTree.fromstring(draw_map(drawn))
        width, height = float(root.get("width")), float(root.get("height"))
        for element in root.iter():
            if element.tag == f"{SVG}rect" and element.get("width") != "100%":
                assert 0 <= float(element.get("x")) <= width - float(element.get("width"))
                assert 0 <= float(element.get("y")) <= height - float(element.get("height"))
            if element.tag == f"{SVG}text":
                assert 0 < float(element.get("x")) < width and 0 < float(element.get("y")) < height


@pytest.mark.parametrize(
    "drawn, expected",
    [
        (words_map("好", []), "no words were matched in this text"),
        (random_map("好" * (MAX_SIDE + 1), n_heads=1), "101 word sets by 101 characters are too many to draw"),
    ],
)
def test_what_cannot_be_drawn_says_so(drawn, expected):
    assert expected in reason_not_drawn(drawn)
    assert expected in "".join(texts(draw_map(drawn)))
    assert expected in " ".join(printed(drawn, width=300))


def test_the_terminal_form_has_every_cell_in_per_cent():
    drawn = random_map("花a公司")
    lines = printed(drawn)
    rows = [line.split() for line in lines[-4:]]
    expected = [["·" if not (p := min(99, round(100 * w))) else str(p) for w in row] for row in drawn.mean.tolist()]
    assert [row[1:] for row in rows] == expected and [row[0] for row in rows] == list("花a公司")
    assert lines[-5].split() == list("花a公司")


def test_wide_maps_go_on_below():
    lines = printed(random_map("花开公司竭诚欢迎您" * 3), width=40)
    assert max(map(cell_len, lines)) <= 40
    assert "".join(lines).count("花") == 3 + 3 * 3  # each column once, each row in each of three parts
    stacked = printed(replace(words_map("南京市长", ["南京市", "市长"])))
    assert [line.strip() for line in stacked[-7:-4]] == ["南", "京 市", "市 长"]
    assert re.fullmatch(r"南 +25 +25 *", stacked[-4])
