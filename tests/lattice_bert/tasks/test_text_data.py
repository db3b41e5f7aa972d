import pytest
import tiny_tasks as tiny

from cige.errors import DataError
from cige.lattice_bert.tasks import readers
from cige.lattice_bert.tasks.examples import TextExample
from cige.lattice_bert.tasks.readers import read_text_examples


def read(path, make, is_labelled=True):
    return read_text_examples(path, make, is_labelled=is_labelled)


def test_pairs_lose_those_without_a_majority(tmp_path):
    path = tiny.write_lines(
        tmp_path / "dev.json",
        [
            {"sentence1": "甲", "sentence2": "乙", "label": "neutral", "id": 7},
            {"sentence1": "甲", "sentence2": "丙", "label": "-", "id": 8},
            {"sentence1": "甲", "sentence2": "丁", "gold_label": "entailment"},
        ],
    )
    assert read(path, readers.sentence_pair) == [
        TextExample("7", "甲", "乙", "neutral"),
        TextExample("2", "甲", "丁", "entailment"),
    ]


def test_news_keywords_are_the_second_text(tmp_path):
    records = [
        {"label": "102", "sentence": "标题", "keywords": "词,语"},
        {"label": 104, "sentence": "题", "keywords": ""},
    ]
    path = tiny.write_lines(tmp_path / "dev.jsonl", records)
    assert read(path, readers.news_title) == [
        TextExample("0", "标题", "词,语", "102"),
        TextExample("1", "题", None, "104"),
    ]


def test_description_and_abstract(tmp_path):
    path = tiny.write_lines(tmp_path / "a.jsonl", [{"label": "1", "label_des": "x", "sentence": "介绍"}])
    assert read(path, readers.description) == [TextExample("0", "介绍", None, "1")]
    path = tiny.write_lines(tmp_path / "b.jsonl", [{"id": 3, "abst": "摘要", "keyword": ["水声", "FFT"], "label": "0"}])
    assert read(path, readers.keywords_of_abstract) == [TextExample("3", "水声 FFT", "摘要", "0")]


def pronoun(text, span1, start1, span2, start2, **others):
    target = {"span1_text": span1, "span1_index": start1, "span2_text": span2, "span2_index": start2}
    return {"text": text, "target": target, "label": "true", **others}


def test_pronoun_and_candidate_are_marked_wherever_they_stand(tmp_path):
    path = tiny.write_lines(
        tmp_path / "train.json",
        [pronoun("小明说他好", "小明", 0, "他", 3, idx=4), pronoun("他好，小明说", "小明", 3, "他", 0)],
    )
    first, second = read(path, readers.pronoun)
    assert first == TextExample("4", "_小明_说[他]好", None, "true")
    assert second.first == "[他]好，_小明_说"


def test_pronoun_that_is_not_where_it_is_said_to_be(tmp_path):
    path = tiny.write_lines(tmp_path / "train.json", [pronoun("小明说他好", "小明", 1, "他", 3)])
    with pytest.raises(DataError, match=r"train.json, line 1, target: span1 is '小明' at 1.*'明说'"):
        read(path, readers.pronoun)


@pytest.mark.parametrize("make", [readers.sentence_pair, readers.news_title, readers.description])
def test_test_files_need_no_label(tmp_path, make):
    path = tiny.write_lines(tmp_path / "t.json", [{"id": 5, "sentence": "a", "sentence1": "a", "sentence2": "b"}])
    assert read(path, make, is_labelled=False)[0].label is None
    with pytest.raises(DataError, match=r"t.json, line 1: the field 'label' is missing"):
        read(path, make)


@pytest.mark.parametrize(
    "line, message",
    [
        ('{"sentence1": "a", "label": "0"}', "line 2: the field 'sentence2' is missing; it has sentence1, label"),
        ('{"sentence1": "a", "sentence2": 3, "label": "0"}', "line 2: sentence2 is 3, expected a text"),
        ("[1, 2]", r"line 2: \[1, 2\], expected an object"),
        ('{"sentence1": ', "line 2: not JSON"),
    ],
)
def test_bad_records_are_named_by_file_and_line(tmp_path, line, message):
    path = tmp_path / "train.json"
    path.write_text('{"sentence1": "a", "sentence2": "b", "label": "0"}\n' + line, encoding="utf-8")
    with pytest.raises(DataError, match=f"train.json, {message}"):
        read(path, readers.sentence_pair)


def test_an_empty_file(tmp_path):
    (tmp_path / "train.json").write_text("\n\n")
    with pytest.raises(DataError, match="holds no record"):
        read(tmp_path / "train.json", readers.sentence_pair)
