"""Listed words are found as words of the text, not as parts of others."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from cige.distant.matching import ListMatcher, fewest_words
from cige.lexicon.lexicon import Lexicon

LEXICON = Lexicon.from_words(["咖啡", "咖啡豆", "包装袋", "纯棉", "上衣", "新款"])


def found(text: str, **lists: list[str]) -> list[tuple[str, tuple[str, ...]]]:
    return [(word.text, word.lists) for word in ListMatcher(LEXICON.snapshot(), lists).words(text) if word.lists]


def test_a_listed_word_that_cuts_others_is_not_found() -> None:
    assert found("咖啡豆包装袋", P=["豆包", "包装袋"]) == [("包装袋", ("P",))]
    assert found("纯棉上衣", P=["棉上衣", "上衣"]) == [("上衣", ("P",))], "of two divisions the more even one"


def test_words_of_several_lists_and_normalisation() -> None:
    assert found("ＢＲＡＮＤ上衣", P=["上衣"], B=["Brand", "上衣", "BRAND"]) == [
        ("BRAND", ("B",)),
        ("上衣", ("P", "B")),
    ]


def test_a_listed_word_with_an_invisible_character_in_the_text() -> None:
    assert found("纯棉上\u200b衣", P=["上衣"]) == [("上\u200b衣", ("P",))]


def test_nothing_is_found_inside_latin_words_and_numbers() -> None:
    assert found("brandnew2017款", B=["brand", "201"]) == []


def test_all_words_are_reported_with_places() -> None:
    words = ListMatcher(LEXICON.snapshot(), {"P": ["上衣"]}).words("新款的上衣abc")
    assert [(w.start, w.end, w.text, w.lists) for w in words] == [
        (0, 2, "新款", ()), (3, 5, "上衣", ("P",)), (5, 8, "abc", ()),
    ]  # fmt: skip


@st.composite
def texts_and_words(draw: st.DrawFn) -> tuple[int, list[tuple[int, int]]]:
    n = draw(st.integers(0, 7))
    places = list(combinations(range(n + 1), 2))
    return n, draw(st.lists(st.sampled_from(places), max_size=8)) if places else []


@given(texts_and_words())
def test_the_division_is_the_best_of_all(case: tuple[int, list[tuple[int, int]]]) -> None:
    n, places = case
    words = {place for place in places if place[1] - place[0] > 1} | {(k, k + 1) for k in range(n)}

    def divisions(start: int) -> list[list[tuple[int, int]]]:
        if start == n:
            return [[]]
        return [[word, *rest] for word in words if word[0] == start for rest in divisions(word[1])]

    def cost(division: list[tuple[int, int]]) -> tuple[float, int]:
        lengths = [end - start for start, end in division]
        return sum(1.5 if k == 1 else 1.0 for k in lengths), sum(k * k for k in lengths)

    got = fewest_words(n, places)
    assert got in divisions(0) and cost(got) == min(map(cost, divisions(0)))


def test_listed_words_are_found_with_marks_of_either_width() -> None:
    assert found("上衣(新款)", P=["上衣（新款）"]) == [("上衣(新款)", ("P",))]
    assert found("上衣（新款）", P=["上衣(新款)"]) == [("上衣（新款）", ("P",))]
