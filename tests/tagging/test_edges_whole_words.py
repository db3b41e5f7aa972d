"""Entities whose edges split a Latin word or leave out a bracket are completed; C and NumPy decoding agree."""

from __future__ import annotations

from itertools import pairwise

import pytest
import tiny
from hypothesis import given
from hypothesis import strategies as st

from cige.api import NER
from cige.runtime.native_model import NativeModel
from cige.tagging.edges import _MAY_BE_CUT, splits_word, whole_edges, with_whole_edges
from cige.tagging.prediction_model import ScoredSpan


def spans(*given):
    return [ScoredSpan(start, end, "ORG", score) for start, end, score in given]


def edges(text, *given):
    return [text[span.start : span.end] for span in with_whole_edges(text, spans(*given))]


@pytest.mark.parametrize(
    ("text", "place", "splits"),
    [
        ("Asia在", 1, True),
        ("Asia在", 4, False),
        ("在Asia", 1, False),
        ("OpenAI", 4, False),
        ("iPhone", 1, False),
        ("NBA", 2, True),
        ("SU7", 2, False),
        ("a", 0, False),
        ("a", 1, False),
        ("éa", 1, False),
    ],
)
def test_where_a_latin_word_is_split(text, place, splits):
    assert splits_word(text, place) is splits


def test_spans_are_completed_and_of_those_that_overlap_then_the_most_probable_stays():
    text = "Microsoft Research Asia在北京"
    assert edges(text, (0, 20, 0.3), (24, 26, 0.9)) == ["Microsoft Research Asia", "北京"]
    assert edges(text, (0, 20, 0.3), (20, 23, 0.4), (24, 26, 0.9)) == ["Asia", "北京"]
    assert edges(text, (0, 20, 0.5), (20, 23, 0.4)) == ["Microsoft Research Asia"]
    assert edges(text, (0, 23, 0.5), (24, 26, 0.9)) == ["Microsoft Research Asia", "北京"]


@pytest.mark.parametrize(
    ("text", "found", "expected"),
    [
        ("由红杉中心（有限合伙）管理", "红杉中心（有限合伙", "红杉中心（有限合伙）"),
        ("由红杉中心(有限合伙）管理", "红杉中心(有限合伙", "红杉中心(有限合伙）"),
        ("在《国家地理》杂志社", "国家地理》杂志社", "《国家地理》杂志社"),
        ("（见《红楼（梦》）", "红楼（梦", "红楼（梦"),
        ("（上海）", "上海", "上海"),
        ("上海医药（集团）公司（总部）", "上海医药（集团）公司", "上海医药（集团）公司"),
        ("A（B（C））", "A（B（C", "A（B（C））"),
    ],
)
def test_a_bracket_whose_counterpart_is_in_an_entity_belongs_to_it(text, found, expected):
    start = text.index(found)
    assert edges(text, (start, start + len(found), 0.5)) == [expected]
    limits = {"ORG": len(found)}
    (kept,) = with_whole_edges(text, spans((start, start + len(found), 0.5)), max_lengths=limits)
    assert text[kept.start : kept.end] == found


@given(st.text("abC在 1", max_size=12), st.lists(st.tuples(st.integers(0, 11), st.integers(1, 4)), max_size=4))
def test_no_edge_splits_a_word_and_no_spans_overlap(text, given):
    places = sorted({(start, min(start + n, len(text))) for start, n in given if start < len(text)})
    disjoint = [p for k, p in enumerate(places) if all(p[0] >= other[1] for other in places[:k])]
    found = with_whole_edges(text, spans(*[(a, b, (a % 3) / 3) for a, b in disjoint]))
    assert not any(splits_word(text, place) for span in found for place in (span.start, span.end))
    assert all(a.end <= b.start for a, b in pairwise(found))
    assert bool(found) == bool(disjoint)


def test_compiled_and_numpy_decoding_agree_in_text_with_latin_words(tmp_path):
    tiny.trained_model().save(tmp_path / "tiny")
    compiled, plain = (NER(NativeModel.load(tmp_path / "tiny", kernels=k)) for k in (None, "off"))
    texts = [s.text.replace("在", "xAsia").replace("小", "Lee") for s in tiny.sentences(80, seed=9)]
    for text in texts:
        found = [(e.start, e.end, e.label) for e in compiled(text)]
        assert found == [(e.start, e.end, e.label) for e in plain(text)]
        assert not any(splits_word(text, place) for start, end, _ in found for place in (start, end))


@given(st.text("aZé9 中.（)", max_size=8))
def test_only_texts_with_two_letters_in_a_row_or_brackets_are_looked_at(text):
    is_cut = any(whole_edges(text, a, b) != (a, b) for b in range(len(text) + 1) for a in range(b))
    assert not is_cut or _MAY_BE_CUT.search(text)
