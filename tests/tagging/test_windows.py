"""What a model reads: commas next to Chinese characters, and cells of tables, with the offsets of the user's text."""

import pytest
import tiny

from cige import load
from cige.entities.label_facts import LabelFacts
from cige.lexicon.lexicon import Lexicon
from cige.tagging.windows import core_words, read_windows

FACTS = LabelFacts(set_apart=12, wide_commas=True)


def read(text, facts=FACTS):
    return [part.lattice.text for part in read_windows(text, tiny.model().lexicon.snapshot(), facts)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("张三,李四", "张三，李四"),
        ("有1,000人", "有1,000人"),
        ("Acer,Apple在华为", "Acer,Apple在华为"),
        ("华为, Apple", "华为， Apple"),
    ],
)
def test_half_width_commas_in_chinese_text_are_read_as_full_width_ones(text, expected):
    assert read(text) == [expected]
    assert read(text, None) == read(text, LabelFacts()) == [text]


def test_cells_of_a_row_are_read_as_items_of_a_list():
    assert read("张三\t北京,上海\t男\t女") == ["；张三；", "北京，上海", "；男；", "；女；"]
    assert read("张三\t男", LabelFacts()) == ["张三", "男"]


def test_offsets_and_words_are_those_of_the_text():
    text = "北京\t上海，天津\t男"
    lexicon = Lexicon.from_words(["北京", "上海", "天津", "海，"])
    parts = read_windows(text, lexicon.snapshot(), FACTS)
    assert [part.window.start for part in parts] == [-1, 3, 8]
    words = [word for part in parts for word in core_words(part, lexicon.snapshot())]
    assert [(word.text, text[word.start : word.end]) for word in words] == [
        (w, w) for w in ("北京", "上海", "海，", "天津")
    ]


def test_entities_explanations_and_streams_of_tables_agree():
    ner = load().with_words(["段誉"])
    text = "王小明\t男\t上海市浦东新区\n段誉\t女\t华为,北京"
    entities = ner(text)
    assert [(e.text, e.label) for e in entities] == [
        ("王小明", "PER"), ("上海市浦东新区", "LOC"), ("段誉", "PER"), ("华为", "COMPANY"), ("北京", "LOC"),
    ]  # fmt: skip
    assert all(text[e.start : e.end] == e.text for e in entities)
    assert ner.analyze(text).entities == entities
    explained = [e.entity for e in ner.explain(text, removals=False).entities]
    assert [(e.start, e.end, e.label) for e in explained] == [(e.start, e.end, e.label) for e in entities]
    ner.lexicon.add("男", label="SEX", mode="force")
    assert [(e.start, e.text) for e in ner(text) if e.forced] == [(4, "男")]
