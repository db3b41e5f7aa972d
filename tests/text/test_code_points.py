"""The normal form of code points, and where each came from."""

import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cige.text import code_points as module
from cige.text.code_points import ALONE, RUN, SPACE, is_plain, normal_form, normal_text

LETTER_OF = {SPACE: "_", ALONE: "A", RUN: "r"}


def kinds(text: str) -> str:
    return "".join(LETTER_OF[kind] for kind in normal_text(text).kinds.tolist())


def spans(text: str) -> list[tuple[int, int]]:
    chars = normal_text(text)
    return list(zip(chars.starts.tolist(), chars.ends.tolist(), strict=True))


@pytest.mark.parametrize(
    ("text", "form", "kinds_of_it"),
    [
        ("研究", "研究", "AA"),
        ("Ab1", "ab1", "rrr"),
        ("Ａｂ１％", "ab1%", "rrrA"),  # full width
        ("，。！", "，。！", "AAA"),
        ("a\u3000b\tc\nd\u2028e", "a b c d e", "r_r_r_r_r"),
        ("İÉ", "ie", "rr"),
        ("e\u0301", "e", "r"),
        ("❤\ufe0f", "❤", "r"),  # a variation selector
        ("a\x00\x07\u200b\ufeff\ue000\ufffdb", "ab", "rr"),  # controls, formats, private use
        ("\ud83d中\ude00", "中", "A"),  # lone surrogates
        ("\uf900𠮷", "豈𠮷", "AA"),  # a compatibility ideograph, one beyond the BMP
        ("가", "\u1100\u1161", "rr"),  # a syllable is two letters in normal form D
        ("$^`|~+<=>", "$^`|~+<=>", "A" * 9),  # symbols that BERT takes for punctuation
        ("😀√", "😀√", "rr"),
        ("", "", ""),
    ],
)
def test_form_and_kinds(text, form, kinds_of_it):
    assert (normal_form(text), kinds(text)) == (form, kinds_of_it)


def test_offsets():
    assert spans("中A\u200b国") == [(0, 1), (1, 2), (3, 4)]
    assert spans("cafe\u0301\u0327s") == [(0, 1), (1, 2), (2, 3), (3, 6), (6, 7)]  # accents belong to their letter
    assert spans("x각y") == [(0, 1), (1, 2), (1, 2), (1, 2), (2, 3)]
    assert spans("\u0301a") == [(1, 2)]


@given(st.text(st.characters(codec=None) | st.sampled_from("éＡ가İ\u0301\u200b中 ")))
def test_every_str_has_a_normal_form_that_is_its_own(text):
    chars = normal_text(text)
    form = str(chars)
    assert normal_form(form) == form
    assert len(form) == len(chars.kinds) == len(chars.starts) == len(chars.ends)
    previous = 0
    for char, start, end in zip(form, chars.starts.tolist(), chars.ends.tolist(), strict=True):
        assert previous <= start < end <= len(text)
        assert unicodedata.category(char) != "Mn" and (char == char.lower() or len(char.lower()) > 1)
        previous = start


@pytest.mark.parametrize(
    ("text", "n_slow"), [("", 0), ("研究ab 1，", 0), ("cafe\u0301", 1), ("研\u200b", 1), ("가", 1)]
)
def test_only_marks_and_characters_that_change_in_number_take_the_slow_way(text, n_slow, monkeypatch):
    calls = []
    usual = module._past_marks
    monkeypatch.setattr(module, "_past_marks", lambda kinds: calls.append(len(kinds)) or usual(kinds))
    normal_text(text)
    assert len(calls) == n_slow


def test_text_without_characters_of_several_is_not_spread_out(monkeypatch):
    calls = []
    usual = np.repeat
    monkeypatch.setattr(np, "repeat", lambda *given: calls.append(given) or usual(*given))
    assert normal_form("cafe\u0301研") == "cafe研" and not calls
    assert normal_form("각a") == unicodedata.normalize("NFD", "각") + "a" and calls


def test_a_code_point_is_worked_out_once(monkeypatch):
    monkeypatch.setattr(module, "_TABLE", module._CodePointTable())
    calls = []
    usual = module._kind_and_form
    monkeypatch.setattr(module, "_kind_and_form", lambda char: calls.append(char) or usual(char))
    normal_text("研ab研")
    assert sorted(calls) == ["a", "b", "研"]
    normal_text("ab研c")
    assert calls[3:] == ["c"]
    monkeypatch.setattr(np, "unique", None)  # there is nothing new to look for
    assert str(normal_text("c研ba")) == "c研ba" and calls[3:] == ["c"]


def test_the_form_of_plain_text_is_the_text_itself(monkeypatch):
    monkeypatch.setattr(module, "normal_text", None)  # not asked
    text = "研究生"
    assert normal_form(text) is text


def test_plain_text_is_its_own_form():
    assert is_plain("研究生") and not is_plain("T恤") and not is_plain("研究 生") and not is_plain("")
