"""Lists of names with kinds: reading, merging and writing them, and gazetteers beside a lexicon."""

from __future__ import annotations

from pathlib import Path

import pytest

from cige.errors import LexiconError
from cige.lexicon.lexicon import Lexicon
from cige.lexicon.names_list import MAX_GAZETTEERS, NamesList, merged, with_gazetteers, with_lists


def written(folder: Path, text: str) -> Path:
    path = folder / "names.tsv"
    path.write_text(text, encoding="utf-8")
    return path


def test_kinds_of_several_lines_are_joined_and_facts_are_read(tmp_path):
    names = NamesList.read(
        written(tmp_path, "# version: 3\n# date: 2026-11-25\n三体\tBOOK\n\n三体\tVIDEO, BOOK\nＡｐｐ　Store\tPRODUCT\n")
    )
    assert names.kinds == {"三体": ("BOOK", "VIDEO"), "App Store": ("PRODUCT",)}
    assert names.about == {"version": "3", "date": "2026-11-25"}
    assert names.all_kinds == ("BOOK", "PRODUCT", "VIDEO")
    assert names.counts() == {"BOOK": 1, "PRODUCT": 1, "VIDEO": 1}


def test_lines_that_cannot_be_used_are_reported(tmp_path):
    names = NamesList.read(written(tmp_path, "原神\tGAME\n普京\n王\tPER\n"))
    assert list(names.kinds) == ["原神"]
    assert names.report is not None and names.report.n_refused == 2
    assert "no kind after a tab" in str(names.report) and "single character" in str(names.report)


def test_a_file_without_names_is_an_error(tmp_path):
    with pytest.raises(LexiconError, match="expected a name, a tab and its kinds"):
        NamesList.read(written(tmp_path, "普京\n小红书\n"))


def test_too_many_kinds_are_an_error(tmp_path):
    rows = "".join(f"名字{k}\tKIND{k}\n" for k in range(MAX_GAZETTEERS + 1))
    with pytest.raises(LexiconError, match=f"expected at most {MAX_GAZETTEERS}"):
        NamesList.read(written(tmp_path, rows))


def test_what_is_written_is_read_again(tmp_path):
    names = NamesList({"原神": ("GAME/x",), "三体": ("VIDEO", "BOOK")}, version="1")
    names.write(tmp_path / "list.tsv")
    assert (tmp_path / "list.tsv").read_text(encoding="utf-8") == "# version: 1\n三体\tBOOK,VIDEO\n原神\tGAME/x\n"
    again = NamesList.read(tmp_path / "list.tsv")
    assert again.kinds == {"三体": ("BOOK", "VIDEO"), "原神": ("GAME/x",)} and again.version == "1"
    assert names.words_by_kind() == {"BOOK": ["三体"], "GAME/x": ["原神"], "VIDEO": ["三体"]}


def test_merged_names_have_the_kinds_of_all_lists():
    one, two = NamesList({"三体": ("BOOK",), "普京": ("PER",)}), NamesList({"三体": ("VIDEO", "BOOK")})
    assert merged([one, two], date="2026").kinds == {"三体": ("BOOK", "VIDEO"), "普京": ("PER",)}
    assert merged([one, two], date="2026").date == "2026"


def test_one_kind_in_place_of_a_tuple_is_refused():
    with pytest.raises(LexiconError, match=r"'阿莫西林' was given with 'MEDICINE'; expected .* \('MEDICINE',\)"):
        NamesList({"阿莫西林": "MEDICINE"})


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


def test_a_name_with_invisible_characters_is_the_same_name(tmp_path):
    path = written(tmp_path, "阿莫\u200b西林\tMEDICINE\n阿莫西林\tMEDICINE/x\n\u200b华为\u200b\tCOMPANY\n")
    assert NamesList.read(path).kinds == {"阿莫西林": ("MEDICINE", "MEDICINE/x"), "华为": ("COMPANY",)}


def test_words_that_differ_in_invisible_characters_are_one_row():
    union, groups = with_lists(Lexicon.from_words(["长江"]), [["阿莫\u200b西林", "阿莫西林", "大桥"]])
    assert dict(zip(union, groups.tolist(), strict=True)) == {"阿莫西林": 0b10, "大桥": 0b10, "长江": 0b01}
