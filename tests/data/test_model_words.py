"""What does not fit the manifest of a model is told with its reason, which is cut if it is long."""

from __future__ import annotations

from pathlib import Path

import pytest

from cige.data.model_words import must_fit_manifest
from cige.errors import ModelError


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("one\n  line", "one line"),
        ("x" * 300, "x" * 300),
        ("x" * 301, "x" * 297 + "..."),
    ],
)
def test_a_reason_is_told_on_one_line_of_at_most_300_characters(reason, told):
    with pytest.raises(ModelError) as raised, must_fit_manifest(Path("model")):
        raise ValueError(reason)
    assert f"model: weights or vocabulary do not fit the manifest ({told}); the folder is damaged" in str(raised.value)


def test_what_says_enough_itself_and_what_is_no_matter_of_the_folder_pass():
    for error in (ModelError("its own words"), KeyboardInterrupt()):
        with pytest.raises(type(error)) as raised, must_fit_manifest(Path("model")):
            raise error
        assert raised.value is error
