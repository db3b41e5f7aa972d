"""Texts with their entities marked, as HTML."""

from __future__ import annotations

from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from cige.drawing.colours import colour_of
from cige.drawing.highlight import highlighted, notebook_page
from cige.drawing.lattice import Mark
from cige.text.visible import visible


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""
        self.in_label = False

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.in_label = tag == "sub"

    def handle_endtag(self, tag):
        self.in_label = False

    def handle_data(self, data):
        self.text += "" if self.in_label else data


@given(st.text("北京<b>&\n\x1b😀", max_size=30), st.data())
def test_the_text_is_all_there_and_nothing_of_it_is_markup(text, data):
    place = st.integers(0, len(text))
    spans = data.draw(st.lists(st.tuples(place, place, st.sampled_from(["LOC", "<i>"]))))
    marks = [Mark(*sorted((a, b)), label) for a, b, label in spans if a != b]
    reader = _Reader()
    reader.feed(highlighted(text, marks))
    reader.close()
    assert reader.text == "\n".join(visible(line) for line in text.split("\n"))
    assert set(reader.tags) <= {"b", "sub"}
    assert reader.tags.count("b") >= bool(marks)


def test_a_label_has_its_colour():
    assert f"color:{colour_of('LOC')}" in highlighted("在北京", [Mark(1, 3, "LOC")])


def test_of_overlapping_spans_the_longer_is_marked():
    assert highlighted("南京市长", [Mark(0, 2, "LOC"), Mark(0, 3, "ORG")]).count("<b") == 1


def test_a_long_text_is_cut_in_a_notebook():
    page = notebook_page("北京" * 100, [Mark(0, 2, "LOC"), Mark(9, 11, "LOC")], max_chars=10)
    assert page.count("<b ") == 1 and "first 10 of 200 characters" in page and len(page) < 1000
