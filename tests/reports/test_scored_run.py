"""What a run of a comparison is scored on."""

from __future__ import annotations

import pytest

from cige.data import write_sentences
from cige.data.sentence import Sentence, Span
from cige.errors import DataError
from cige.reports.scored_run import splits_of
from cige.training.recipe import load_recipe


def test_a_test_file_that_cannot_be_read_is_an_error_and_a_missing_one_is_none(tmp_path):
    recipe = load_recipe("weibo/flat")
    for split in ("train", "dev"):
        write_sentences(tmp_path / "weibo" / f"{split}.bmes", [Sentence("北京", (Span(0, 2, "LOC"),))])
    assert list(splits_of(recipe, str(tmp_path))) == ["dev"]
    (tmp_path / "weibo" / "test.bmes").write_bytes("北 B-LOC\n".encode("gbk"))
    with pytest.raises(DataError, match=r"test\.bmes, line 1: byte 0xb1 is not UTF-8"):
        splits_of(recipe, str(tmp_path))
