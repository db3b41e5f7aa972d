"""The programs of annotations/, and that every answer there has the form that they read."""

from __future__ import annotations

import importlib
import lzma
import re
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

from cige import Entity, Sentence, Span

FOLDER = Path(__file__).parents[2] / "annotations"


@pytest.fixture(scope="module")
def programs():
    """A function that imports a program by name; `names` and its like are no names for the rest of the tests."""
    before = set(sys.modules)
    sys.path.insert(0, str(FOLDER))

    def program(name: str) -> ModuleType:
        return importlib.import_module(name)

    yield program
    sys.path.remove(str(FOLDER))
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(FOLDER)):
            del sys.modules[name]


@pytest.fixture
def corpus(tmp_path):
    """A raw corpus of one source that is drawn from and one that is not, and the set "today" with one of its lines."""
    medicine = [f"医生给他开了第{k}种感冒药。" for k in range(30)]
    lines = medicine + [f"第{k}场游戏输了。" for k in range(30)] + [f"第{k}场游戏也输了，药也没了。" for k in range(5)]
    with lzma.open(tmp_path / "part.txt.xz", "wt", encoding="utf-8") as file:
        file.write("\n".join(lines))
    rows = ["source\t\t\tfirst\tlast", "zhihu\t\t\t1\t60", "a_source_without_licence\t\t\t61\t65"]
    (tmp_path / "part.index.tsv").write_text("\n".join(rows), encoding="utf-8")
    (tmp_path / "today").mkdir()
    (tmp_path / "today" / "dev.bmes").write_text("".join(f"{c} O\n" for c in medicine[7]), encoding="utf-8")
    return tmp_path, medicine


def test_lines_of_the_kinds_asked_for_are_drawn_once_and_none_that_is_known(programs, corpus):
    draw, (folder, medicine) = programs("draw").draw, corpus
    drawn = draw(folder, folder / "today", ["medicine"], 29, 3)
    assert sorted(text for *_, text in drawn) == sorted(set(medicine) - {medicine[7]})
    assert all(medicine[line - 1] == text and part == "part" for _, part, line, text in drawn)
    both = draw(folder, folder / "today", ["medicine", "games"], 20, 3)
    assert Counter(kind for kind, *_ in both) == {"medicine": 10, "games": 10}
    assert both == draw(folder, folder / "today", ["medicine", "games"], 20, 3)
    with pytest.raises(SystemExit, match="30 lines were asked for, and there are 29"):
        draw(folder, folder / "today", ["medicine"], 30, 3)


def test_a_name_counts_where_it_lies_in_no_longer_one(programs):
    spans_of = programs("names").spans_of
    assert spans_of("北京大学在北京，北京", ("北京|LOC", "北京大学|ORG")) == [
        (0, 4, "ORG"),
        (5, 7, "LOC"),
        (8, 10, "LOC"),
    ]
    assert spans_of("苹果发布苹果", ("苹果|COMPANY|1", "苹果|BRAND|2")) == [(0, 2, "COMPANY"), (4, 6, "BRAND")]
    assert spans_of("A|B上线", ("A|B|PRODUCT",)) == [(0, 3, "PRODUCT")]
    for wrong in ("上海|LOC", "北京|CITY", "北京", "北京|LOC|4", "北京|LOC|0"):
        with pytest.raises(ValueError):
            spans_of("北京大学在北京，北京", (wrong,))


def test_every_answer_is_well_formed_and_no_line_is_in_two_files(programs):
    names = programs("names")
    places: Counter[tuple[str, int]] = Counter()
    n_names = 0
    for path in sorted((FOLDER / "today").glob("*.tsv")):
        rows = names.read_rows(path)
        assert rows, path
        for row in rows:
            assert re.fullmatch(r"[0-9a-f]{8}", row.checksum), row
            for written in row.names:
                form = re.fullmatch(r"(.+?)\|([A-Z]+)(\|\d+)?", written)
                assert form is not None and form[2] in names.TYPES, (path, row)
                n_names += 1
        if path.stem != "again":
            places.update((row.part, row.line) for row in rows)
    assert max(places.values()) == 1, "a line is annotated twice, so that development lines may be in training"
    assert len(places) >= 12_000 and n_names > 40_000


def test_the_list_of_names_and_its_kinds_fit(programs):
    from cige.lexicon.names_build import read_kinds, read_rows

    kinds = read_kinds(FOLDER / "gazetteer" / "kinds.tsv")
    rows = list(read_rows(FOLDER / "gazetteer" / "curated.tsv"))
    assert {(type_, source) for _, type_, source in rows} <= set(kinds)
    assert len(rows) == len(set(rows)) > 30_000


def test_places_are_separated_where_all_parts_are_places(programs):
    parts_of = programs("separate_places").parts_of
    places = {"湖北省", "武汉市", "湖北", "省武", "汉市", "武汉市区"}
    assert parts_of("湖北省武汉市", places) == [3, 3]
    assert parts_of("武汉市区", places) == [4], "a place of its own is not cut"
    assert parts_of("湖北省某地", places) == [5]
    sentence = Sentence("湖北省武汉市", (Span(0, 6, "LOC"),))
    assert programs("separate_places").separated(sentence, places).spans == (Span(0, 3, "LOC"), Span(3, 6, "LOC"))


def test_what_taggers_and_lac_agree_on_counts_and_the_rest_is_open(programs):
    agree = programs("agree_with_lac")
    text = "昨天普京去了小红书和张三家"

    def entity(start: int, end: int, label: str, score: float) -> Entity:
        return Entity(start=start, end=end, label=label, text=text[start:end], score=score)

    one = [entity(2, 4, "PER", 0.5), entity(6, 9, "PRODUCT", 0.9), entity(10, 12, "PER", 0.6)]
    two = [entity(2, 4, "PER", 0.5), entity(6, 9, "COMPANY", 0.9)]
    found = agree.labelled(text, [one, two], [(0, 2, "TIME"), (2, 4, "PER"), (12, 13, "LOC")])
    assert found.spans == (
        Span(0, 2, "TIME"),
        Span(2, 4, "PER"),  # with LAC, half of the score is enough
        Span(6, 9, "?"),  # the taggers disagree
        Span(10, 12, "?"),  # one tagger alone
        Span(12, 13, "?"),  # LAC alone
    )


def test_times_are_joined_and_open_where_lac_left_out_their_beginning(programs):
    joined = programs("agree_with_lac").joined
    assert joined("夏四月初四，辽朝", [(0, 1), (1, 3), (3, 5)]) == [Span(0, 5, "TIME")]
    assert joined("在7 月 16 日，", [(5, 9)]) == [Span(1, 9, "?")]


def test_short_texts_hold_what_they_are_labelled_with(programs):
    import random

    made = programs("make_short")
    rng = random.Random(0)
    names = {label: [f"名{label}"] for label in made.QUESTIONS}
    for sentence in made.names_alone(names, rng, 40, 200):
        (span,) = sentence.spans
        assert sentence.text[span.start : span.end] == f"名{span.label}"
    for sentence in made.persons(["李雷", "韩梅梅", "克里斯"], rng, 50):
        (span,) = sentence.spans
        name = sentence.text[span.start : span.end]
        assert span.label == "PER" and (name == "克里斯" or name[0] in made.SURNAMES)
        assert span.start or span.end < len(sentence.text)  # never alone
    for sentence in made.repeated(["北京市", "海淀区", "湖北省"], rng, 50):
        assert "".join(sentence.text[s.start : s.end] for s in sentence.spans) == sentence.text
    assert all(not sentence.spans for sentence in made.digits(rng, 50))
