"""The table of word sets: in a terminal, in a page, as SVG."""

from __future__ import annotations

import io
from html.parser import HTMLParser
from xml.etree import ElementTree

from rich.console import Console

from cige.api import LatticeWord
from cige.drawing.lattice import Mark
from cige.explain.attention import CharacterSets, SetMember
from cige.explain.sets import draw_sets, html_table, terminal_table

SVG = "{http://www.w3.org/2000/svg}"


def sets_of(place: int, char: str, **words: list[tuple[str, bool, float]]) -> CharacterSets:
    sets = {
        name: [SetMember(LatticeWord(place, place + 2, text, own), weight) for text, own, weight in words.get(name, [])]
        for name in "BMES"
    }
    sets["S"].append(SetMember(None, 0.1))
    return CharacterSets(place, char, sets, {name: 0.2 for name in "BME" if not sets[name]})


FOUND = [
    sets_of(0, "开", B=[("开公司", True, 0.4)], E=[("花<b>&", False, 0.3)]),
    sets_of(1, " "),
    sets_of(2, "<", M=[(f"很长的词{k}", False, 0.01) for k in range(20)]),
]


def test_in_a_terminal():
    console = Console(file=io.StringIO(), width=120)
    console.print(terminal_table(FOUND))
    shown = console.file.getvalue()
    for expected in ("开公司*\xa040%", "花<b>&\xa030%", "none\xa020%", "开\xa010%", "B: begin here"):
        assert expected in shown
    assert all(f"很长的词{k}" in shown for k in range(20))


def test_as_svg():
    root = ElementTree.fromstring(draw_sets(FOUND, [Mark(0, 1, "ORG")]))
    shown = [element.text for element in root.iter(f"{SVG}text")]
    for expected in ("开公司", "40%", "花<b>&", "none 20%", "<", *(f"很长的词{k}" for k in range(20))):
        assert expected in shown
    assert " " not in shown
    boxes = [r for r in root.iter(f"{SVG}rect") if r.get("rx") == "5"]
    assert len(boxes) == 25 - 1  # 20 + 2 words, and each shown character in S
    edges = [(float(b.get("x")), float(b.get("y")), float(b.get("width"))) for b in boxes]
    for x, y, width in edges:  # none over another
        assert not [1 for a, b, w in edges if b == y and (a, w) != (x, width) and x <= a < x + width]
        assert y + 20 <= float(root.get("height"))
    assert sum(1 for b in boxes if b.get("stroke-dasharray")) == 1
    assert sum(1 for r in root.iter(f"{SVG}rect") if r.get("fill-opacity")) == 1


def test_in_a_page():
    page = html_table(FOUND, [Mark(0, 1, "ORG")])
    assert "<b>" not in page and "花&lt;b&gt;&amp;" in page and page.count("background:") == 1
    assert page.count('class="word user"') == 1 and page.count("<tr>") == 3

    class Cells(HTMLParser):
        shown: list[str] = []  # noqa: RUF012

        def handle_data(self, data):
            self.shown.append(data)

    Cells().feed(page)
    assert "开公司" in Cells.shown and "none 20%" in Cells.shown
