"""Width and traditional characters are folded one code point to one; nothing else changes."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cige.text.normalize import (
    MARKS,
    SIMPLIFIED,
    SUBSCRIPTS,
    UNIFIED,
    WIDTH,
    Folding,
    fold_marks,
    fold_width,
    normalize,
    normalize_word,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ＡＢＣ１２％\u3000", "ABC12% "),
        ("你好，世界！（是）", "你好，世界！（是）"),
        ("瀋陽皇朝萬鑫酒店", "沈阳皇朝万鑫酒店"),
        ("台灣大學後於二零零八年", "台湾大学后于二零零八年"),
        ("乾坤，著名，干杯", "乾坤，著名，干杯"),
        ("a\ud800b", "a\ufffdb"),
        ("", ""),
        ("IT it", "IT it"),
        ("⼩⽶汽⻋在⻓沙⾒⾦⼀⾨", "小米汽车在长沙见金一门"),  # as from a PDF
        ("\uf90a\ufa12\U0002f800", "金晴丽"),
        ("GPT\u20114o，F\u2010150，\u22125度", "GPT-4o，F-150，-5度"),
        ("唐纳德・特朗普，安格拉‧默克尔，A･B", "唐纳德·特朗普，安格拉·默克尔，A·B"),
        ("埃隆⋅马斯克，埃隆∙马斯克", "埃隆·马斯克，埃隆·马斯克"),
        ("维生素B₁₂，PM₂.₅，10²", "维生素B12，PM2.5，10²"),
    ],
)
def test_folds(text: str, expected: str) -> None:
    assert normalize(text) == expected


def test_width_alone() -> None:
    assert fold_width("藝人Ａ") == "藝人A"


@given(st.text(st.characters()))
def test_one_code_point_to_one_and_settled(text: str) -> None:
    once = normalize(text)
    assert len(once) == len(text)
    assert normalize(once) == once
    once.encode("utf-8")


@pytest.mark.parametrize("compile_after", [0, 1000])  # by a pattern, and by look-ups
def test_text_that_nothing_changes_in_is_returned_as_it_is(compile_after: int) -> None:
    text = "重庆人和药店，在北京 AB1 开了一家分店。"
    assert Folding(WIDTH | SIMPLIFIED, compile_after=compile_after)(text) is text
    traditional = "藝人"
    assert Folding(WIDTH, compile_after=compile_after)(traditional) is traditional


@pytest.mark.parametrize("changes", [WIDTH, MARKS, WIDTH | SIMPLIFIED | UNIFIED | SUBSCRIPTS])
def test_the_pattern_finds_what_is_looked_up(changes: dict[str, str]) -> None:
    text = "".join(map(chr, range(0x30000)))
    by_pattern, looked_up = Folding(changes, compile_after=0), Folding(changes, compile_after=len(text))
    assert by_pattern(text) == looked_up(text) != text
    assert by_pattern._pattern is not None and looked_up._pattern is None
    assert [k for k, char in enumerate(by_pattern(text)) if char != text[k]] == sorted(
        [*map(ord, changes), *range(0xD800, 0xE000)]
    )


def test_the_pattern_is_compiled_after_many_short_texts() -> None:
    fold = Folding(WIDTH, compile_after=10)
    for n_left, text in [(6, "Ａ是字母"), (6, "ascii is not looked up"), (0, "Ｂ也是字母呢")]:
        fold(text)
        assert fold._n_left == n_left and fold._pattern is None
    assert fold("Ｃ呢") == "C呢" and fold._pattern is not None


def test_no_character_is_folded_twice() -> None:
    folded = {chr(code): normalize(chr(code)) for code in range(0x30000)}
    changed = {a: b for a, b in folded.items() if a != b and b != "\ufffd"}
    assert len(changed) > 4200
    assert not set(changed) & set(changed.values())


@given(st.text("（）()：:，,；;！!？?“”‘’\"'–-•·\u00a0\u2009 上海", max_size=20))
def test_marks_of_words_are_folded_once_and_stay_as_they_are_in_texts(text: str) -> None:
    assert normalize(text) == text
    folded = normalize_word(text)
    assert folded == fold_marks(text) and len(folded) == len(text)
    assert fold_marks(folded) == normalize(folded) == folded


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("上海医藥（集團）", "上海医药(集团)"),
        ("Levi’s", "Levi's"),
        ("iPhone\u00a017\u2009Pro\u202fMax", "iPhone 17 Pro Max"),
        ("埃隆•马斯克", "埃隆·马斯克"),
        ("黑神话：悟空", "黑神话:悟空"),
        ("北\u200b京\u00ad大\u200d学\ufeff", "北京大学"),
    ],
)
def test_the_form_of_a_users_word(word: str, expected: str) -> None:
    assert normalize_word(word) == expected


def test_every_radical_is_a_character_of_its_own_shape() -> None:
    """Unicode has names for radicals, and for compatibility ideographs a normal form."""
    for char, same in UNIFIED.items():
        assert len(same) == 1 and unicodedata.name(char).startswith(("CJK RADICAL", "KANGXI RADICAL", "CJK COMPAT"))
        form = unicodedata.normalize("NFKC", char)
        assert same == SIMPLIFIED.get(form, form) or unicodedata.name(char).startswith("CJK RADICAL")
