"""Words that would cut a Latin word or a number."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cige.lexicon.lexicon import Lexicon
from cige.lexicon.matcher import without_cut_runs


def kind(char: str) -> str:
    return "letter" if char.isascii() and char.isalpha() else "digit" if char.isascii() and char.isdigit() else char


def cuts(text: str, place: int) -> bool:
    return 0 < place < len(text) and kind(text[place - 1]) == kind(text[place]) in ("letter", "digit")


@given(st.text("aZ09中 éａ１", max_size=12), st.data())
def test_rows_are_those_of_the_definition(text, data):
    places = st.integers(0, len(text))
    spans = [sorted(span) for span in data.draw(st.lists(st.tuples(places, places), max_size=8))]
    rows = np.array([[start, end, k] for k, (start, end) in enumerate(spans)], np.int32).reshape(-1, 3)
    kept = without_cut_runs(rows, text)
    assert kept.tolist() == [row for row in rows.tolist() if not cuts(text, row[0]) and not cuts(text, row[1])]
    assert kept.dtype == np.int32


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("BAIDU的AI", ["AI"]),
        ("ＢＡＩＤＵ", []),
        ("2012年12月", ["12"]),
        ("买iPhone 15吧", ["iPhone 15"]),
        ("iPhone 15Pro", ["iPhone 15"]),
        ("iPhone 150", []),
        ("AI2和2AI", ["AI", "AI"]),
        ("卡AI拉OK", ["AI"]),
    ],
)
def test_base_and_user_words_do_not_match_inside_latin_words_and_numbers(text, found):
    base = Lexicon.from_words(["AI", "12"])
    base.add("iPhone 15")
    own = Lexicon.from_words([])
    own.add("AI", "12", "iPhone 15")
    for lexicon in (base, own):
        rows = lexicon.match(text).tolist()
        assert [lexicon.word(number) for _, _, number in rows] == found
