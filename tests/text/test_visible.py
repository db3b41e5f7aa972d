"""Text that a terminal and XML can show."""

import pytest

from cige.text.visible import visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("南京 Nanjing 😀", "南京 Nanjing 😀"),
        ("甲\r\n乙\t丙", "甲↵↵乙→丙"),
        ("\x1b[31m", "\ufffd[31m"),
        ("\x00\ud800\ufffe", "\ufffd" * 3),
        ("a\u202eb\u200d", "a·b·"),
        ("全　角\xa0", "全 角 "),
    ],
)
def test_what_is_shown(text, shown):
    assert visible(text) == shown
    assert len(visible(text)) == len(text)


def test_text_that_can_be_shown_is_returned_as_it_is():
    text = "南京 Nanjing 😀"
    assert visible(text) is text
