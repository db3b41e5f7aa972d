"""What is not a text is named."""

import pytest

from cige.text.given import check_text, decode_hint


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
