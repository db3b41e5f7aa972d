"""The vocabulary of a model folder: what does not fit its manifest or its tables is refused with the reason."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cige.data.model_words import check_vocabulary, must_fit_manifest
from cige.data.vocabulary import CodeTable, Vocabulary
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


N_ROWS = (5, 6, 7)
GOOD = Vocabulary(
    chars=CodeTable(np.array([3, 9], np.int64), np.array([1, 4], np.int32)),  # the first and the last row there may be
    bigrams=CodeTable(np.array([0, 2, 4], np.int64), np.array([5, 1, 2], np.int32)),
    word_rows=np.array([1, 6, 3], np.int32),
    n_tuned=N_ROWS,
    n_rows=N_ROWS,
    word_counts=np.array([0, 2, 9], np.int32),
    word_groups=np.array([0, 3, 1], np.int32),
    n_groups=2,
    gazetteers=("names",),
)
NO_CODES = CodeTable(np.zeros(0, np.int64), np.zeros(0, np.int32))


def test_the_first_and_the_last_row_may_be_there_and_no_row_need_be():
    check_vocabulary(GOOD)
    none = np.zeros(0, np.int32)
    check_vocabulary(
        replace(GOOD, chars=NO_CODES, bigrams=NO_CODES, word_rows=none, word_counts=none, word_groups=none)
    )


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"word_rows": np.array([1, 7, 3], np.int32)}, "word_rows has rows 1 to 7; expected 1 to 6"),
        ({"word_rows": np.array([0, 6, 3], np.int32)}, "word_rows has rows 0 to 6; expected 1 to 6"),
        ({"word_rows": np.array([1.0, 2.0, 3.0])}, "word_rows is float64[3]; expected a list of whole numbers"),
        ({"chars": replace(GOOD.chars, rows=np.array([5, 1]))}, "chars.rows has rows 1 to 5; expected 1 to 4"),
        ({"chars": replace(GOOD.chars, codes=np.array([9, 9]))}, "chars.codes is not ascending"),
        ({"bigrams": replace(GOOD.bigrams, codes=np.array([-1, 2, 4]))}, "bigrams.codes has -1; expected no negative"),
        ({"bigrams": replace(GOOD.bigrams, codes=np.array([2, 4]))}, "expected as many int64 codes as rows"),
        ({"n_rows": (5, 6, 2)}, "n_rows is (5, 6, 2); expected three whole numbers of at least 3"),
        ({"n_tuned": (5, 6, 8)}, "n_tuned is (5, 6, 8); expected three whole numbers of at most n_rows, (5, 6, 7)"),
        ({"word_counts": np.array([0, -1, 9], np.int32)}, "word_counts has -1; expected counts from 0 on"),
        ({"word_counts": np.array([0, 1], np.int32)}, "word_counts is int32[2]; expected an integer for each word"),
        ({"word_groups": np.array([0, 4, 1], np.int32)}, "word_groups has 0 to 4; expected bits of 2 gazetteers"),
        ({"word_groups": None}, "word_groups is missing; expected the gazetteers, of 2, of each word"),
        ({"n_groups": 32}, "n_groups is 32; expected a whole number from 1 to 31"),
        ({"gazetteers": ("a", "b")}, "gazetteers has 2 names; expected 1, one per group"),
        ({"word_labels": (3,)}, "word_labels holds something that is no name"),
    ],
)
def test_what_is_wrong_is_told(changed, told):
    with pytest.raises(ValueError, match=re.escape(told)):
        check_vocabulary(replace(GOOD, **changed))
