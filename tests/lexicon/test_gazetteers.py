"""Gazetteers beside a lexicon: the union of words, and who is in which list."""

from __future__ import annotations

from pathlib import Path

import pytest

from cige.errors import LexiconError
from cige.lexicon.lexicon import Lexicon
from cige.lexicon.names_list import MAX_GAZETTEERS, with_gazetteers


@pytest.fixture
def lists(tmp_path: Path) -> list[Path]:
    made = []
    for name, words in (("brands", ["长江", "罗氏", "江"]), ("products", ["陶瓷勺", "罗氏", "ＡＢ"])):
        made.append(tmp_path / f"{name}.txt")
        made[-1].write_text("\n".join(words), encoding="utf-8")
    return made


def test_each_word_knows_its_lists(lists):
    base = Lexicon.from_words(["大桥", "长江"])
    union, groups = with_gazetteers(base, lists)
    assert dict(zip(union, groups.tolist(), strict=True)) == {
        "长江": 0b011, "罗氏": 0b110, "陶瓷勺": 0b100, "AB": 0b100, "大桥": 0b001,
    }  # fmt: skip
    assert groups.dtype == "int32" and list(union)[-1] == "大桥"
    assert sorted(union.match("罗氏长江大桥")[:, :2].tolist()) == [[0, 2], [2, 4], [4, 6]]


def test_counts_of_the_base_are_kept(lists):
    union, _ = with_gazetteers(Lexicon.from_words(["大桥", "长江"], counts=[7, 5]), lists)
    assert {word: union.count(union.id(word)) for word in ("大桥", "长江", "罗氏")} == {"大桥": 7, "长江": 5, "罗氏": 1}
    assert with_gazetteers(Lexicon.from_words(["大桥"]), lists)[0].count(0) is None


def test_a_user_of_the_base_is_not_taken_over(lists):
    base = Lexicon.from_words(["大桥"])
    base.add("我的词")
    assert "我的词" not in with_gazetteers(base, lists)[0]


def test_a_list_that_cannot_be_used(tmp_path, lists):
    base = Lexicon.from_words(["大桥"])
    with pytest.raises(LexiconError, match="nowhere"):
        with_gazetteers(base, [tmp_path / "nowhere.txt"])
    (tmp_path / "short.txt").write_text("江\n河\n", encoding="utf-8")
    with pytest.raises(LexiconError, match=r"no usable word(.|\n)*short.txt"):
        with_gazetteers(base, [tmp_path / "short.txt"])
    with pytest.raises(LexiconError, match="31 gazetteers; expected at most 30"):
        with_gazetteers(base, lists[:1] * (MAX_GAZETTEERS + 1))
