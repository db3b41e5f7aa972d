"""What is not a text, or not a whole number, is named."""

import numpy as np
import pandas as pd
import pytest

from cige.text.given import check_text, check_texts, decode_hint, item_hint, whole_number


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (None, "given NoneType; expected a str"),
        (5, "given int; expected a str"),
        (["a"], "given list; expected a str; give one text per call"),
        ((), "given tuple; expected a str; give one text per call"),
        (b"a", "given bytes; expected a str, so decode it first: text.decode('utf-8')"),
        (bytearray(b"a"), "given bytearray; expected a str, so decode it first: text.decode('utf-8')"),
    ],
)
def test_what_is_not_a_text_is_named(given, message):
    with pytest.raises(TypeError) as found:
        check_text(given)
    assert str(found.value) == message


def test_texts_are_taken():
    check_text("")
    check_text("北京")
    assert decode_hint("北京") == decode_hint(None) == ""


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("北京", "given one str; expected an iterable of str, such as [text]"),
        (b"a", "given one bytes; expected an iterable of str, such as [text]"),
        (5, "given int; expected an iterable of str, such as [text]"),
        ({"text": "北京"}, "given dict; expected an iterable of str, such as [text]"),
        (pd.DataFrame({"text": ["北京"]}), "given DataFrame; expected an iterable of str, such as table['text']"),
    ],
)
def test_what_does_not_hold_texts_is_named(given, message):
    with pytest.raises(TypeError) as found:
        check_texts(given)
    assert str(found.value) == message


def test_what_holds_texts_is_taken():
    for given in (["北京"], iter(["北京"]), {"北京"}, pd.Series(["北京"]), np.array(["北京"]), {"text": 1}.keys()):
        check_texts(given)


def test_missing_values_of_a_column_have_a_hint():
    missing = ", so fill or drop missing values first"
    assert {item_hint(value) for value in (None, float("nan"), np.float64("nan"), pd.NA)} == {missing}
    assert item_hint(3.5) == item_hint(np.zeros(2)) == item_hint(["北京"]) == ""
    assert item_hint(b"a") == decode_hint(b"a")


@pytest.mark.parametrize("value", [-1, 2.0, "3", None, True, np.float32(2)])
def test_what_is_no_whole_number_is_named(value):
    with pytest.raises(ValueError) as found:
        whole_number("n_words", value, least=0)
    assert str(found.value) == f"given n_words={value!r}; expected a whole number, 0 or more"


def test_integers_of_numpy_are_whole_numbers():
    assert type(whole_number("n_words", np.int64(2), least=1)) is int
    assert whole_number("n_words", 0, least=0) == 0
