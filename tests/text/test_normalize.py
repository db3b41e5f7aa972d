"""Width and traditional characters are folded one code point to one; nothing else changes."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cige.text import normalize as module
from cige.text.normalize import fold_width, normalize


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


def test_simplified_text_is_returned_as_it_is() -> None:
    text = "重庆人和药店在北京开了一家分店。" * 100
    assert normalize(text) is text


def test_text_that_nothing_changes_in_is_searched_once(monkeypatch: pytest.MonkeyPatch) -> None:
    folded: list[str] = []

    def noting(pattern: re.Pattern[str]) -> SimpleNamespace:
        return SimpleNamespace(search=pattern.search, sub=lambda by, text: folded.append(text) or pattern.sub(by, text))

    for name in ("_WIDTH_CHANGES", "_CHANGES"):
        monkeypatch.setattr(module, name, noting(getattr(module, name)))
    assert (fold_width("藝人a"), normalize("艺人a")) == ("藝人a", "艺人a") and not folded
    assert (fold_width("藝人Ａ"), normalize("藝人a")) == ("藝人A", "艺人a") and folded == ["藝人Ａ", "藝人a"]


def test_no_character_is_folded_twice() -> None:
    folded = {chr(code): normalize(chr(code)) for code in range(0x20000)}
    changed = {a: b for a, b in folded.items() if a != b and b != "\ufffd"}
    assert len(changed) > 2900
    assert not set(changed) & set(changed.values())
