"""Width and traditional characters are folded one code point to one; nothing else changes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cige.text.normalize import _LONG, fold_width, normalize


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


@pytest.mark.parametrize("n_times", [1, 1000])  # by look-ups, and by a pattern
def test_text_that_nothing_changes_in_is_returned_as_it_is(n_times: int) -> None:
    text = "重庆人和药店，在北京 AB1 开了一家分店。" * n_times
    assert normalize(text) is text and fold_width(text) is text
    traditional = "藝人" * n_times
    assert fold_width(traditional) is traditional


def test_long_texts_are_folded_as_short_ones() -> None:
    text = "".join(map(chr, [*range(0x250), *range(0x3000, 0xA000), *range(0xD7F0, 0xE010), *range(0xFF00, 0x10010)]))
    assert len(text) > 2 * _LONG
    parts = [text[k : k + 100] for k in range(0, len(text), 100)]
    assert normalize(text) == "".join(map(normalize, parts))
    assert fold_width(text) == "".join(map(fold_width, parts)) != text


def test_no_character_is_folded_twice() -> None:
    folded = {chr(code): normalize(chr(code)) for code in range(0x20000)}
    changed = {a: b for a, b in folded.items() if a != b and b != "\ufffd"}
    assert len(changed) > 2900
    assert not set(changed) & set(changed.values())
