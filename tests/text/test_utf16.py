"""Offsets in UTF-16 code units."""

from hypothesis import given
from hypothesis import strategies as st

from cige.text.utf16 import utf16_offsets


@given(st.text(st.one_of(st.characters(), st.sampled_from("a中😀𠮷\ud83d\ude00")), max_size=30))
def test_every_place_is_where_the_encoded_text_before_it_ends(text):
    place = utf16_offsets(text)
    for offset in range(len(text) + 1):
        assert place(offset) == len(text[:offset].encode("utf-16-le", "surrogatepass")) // 2
