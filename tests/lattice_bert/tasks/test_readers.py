"""Files of tasks, each in its formats: idioms and choices, labelled texts, questions, and single texts or pairs."""

import pytest
import tiny_tasks as tiny
from hypothesis import given
from hypothesis import strategies as st

from cige.data.sentence import Span
from cige.data.tags import spans_to_tags
from cige.errors import DataError
from cige.lattice_bert.tasks import readers
from cige.lattice_bert.tasks.examples import Answer, TextExample
from cige.lattice_bert.tasks.readers import (
    WORD,
    count_misplaced,
    place_answer,
    read_dialogues_and_texts,
    read_entities,
    read_idioms,
    read_questions,
    read_segmented,
    read_text_examples,
)


def test_idioms_in_the_original_format(tmp_path):
    before, after = "前" * 40, "后" * 10
    record = {
        "id": 9,
        "content": f"{before}#idiom#中#idiom#{after}",
        "candidates": [["甲甲", "乙乙"], ["丙丙", "丁丁", "戊戊"]],
        "answer": [1, 2],
    }
    tiny.write_lines(tmp_path / "dev.jsonl", [record])
    first, second = read_idioms(tmp_path, "dev")
    assert (first.id, first.answer, [idiom for idiom, _ in first.pairs]) == ("9-0", 1, ["甲甲", "乙乙"])
    assert first.pairs[0][1] == "前" * 32 + "_中_" + after  # 32 characters on the left
    assert first.pairs[0][1][first.blank] == "_" and first.blank == 32
    assert second.pairs[2] == ("戊戊", "前" * 30 + "_中_" + after) and second.blank == 32


def test_idioms_in_clues_format(tmp_path):
    record = {
        "candidates": ["甲甲", "乙乙", "丙丙"],
        "content": ["左#idiom000007#右", "一#idiom000008#二#idiom000009#三"],
    }
    tiny.write_lines(tmp_path / "train.json", [record])
    tiny.write_json(tmp_path / "train_answer.json", {"#idiom000007#": 2, "#idiom000008#": 0, "#idiom000009#": 1})
    examples = read_idioms(tmp_path, "train")
    assert [(e.id, e.answer) for e in examples] == [("#idiom000007#", 2), ("#idiom000008#", 0), ("#idiom000009#", 1)]
    assert examples[0].pairs == (("甲甲", "左_右"), ("乙乙", "左_右"), ("丙丙", "左_右"))
    assert examples[2].pairs[0][1] == "一_二_三" and examples[2].blank == 3
    tiny.write_lines(tmp_path / "test.json", [record])
    assert [e.answer for e in read_idioms(tmp_path, "test")] == [None] * 3
    tiny.write_lines(tmp_path / "dev.json", [record])
    with pytest.raises(DataError, match=r"dev.json, line 1: needs dev_answer.json"):
        read_idioms(tmp_path, "dev")
    tiny.write_json(tmp_path / "dev_answer.json", {"#idiom000007#": 3})
    with pytest.raises(DataError, match="answer to #idiom000007# is 3, expected 0 to 2"):
        read_idioms(tmp_path, "dev")


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"answer": [2]}, r"answer\[0\] is 2, expected 0 to 1"),
        ({"candidates": [["甲"], ["乙"]]}, "1 blanks .* 2 lists"),
        ({"candidates": ["甲"]}, r"candidates\[0\] is '甲', expected a list"),
        ({"content": 3}, "content is 3, expected a text"),
    ],
)
def test_bad_idiom_records(tmp_path, changes, message):
    record = {"content": "左#idiom#右", "candidates": [["甲", "乙"]], "answer": [0]}
    tiny.write_lines(tmp_path / "dev.jsonl", [record, record | changes])
    with pytest.raises(DataError, match=f"dev.jsonl, line 2: {message}"):
        read_idioms(tmp_path, "dev")


def test_c3_flat_and_official_agree(tmp_path):
    flat = {"id": "m-1-0", "context": "甲\n乙", "question": "谁？", "choices": ["子", "丑"], "answer": "丑"}
    tiny.write_lines(tmp_path / "flat" / "dev.jsonl", [flat])
    question = {"question": "谁？", "choice": ["子", "丑"], "answer": "丑"}
    for kind in "md":
        tiny.write_json(tmp_path / "own" / f"c3-{kind}-dev.json", [[["甲", "乙"], [question], "m-1"]])
    (one,) = read_dialogues_and_texts(tmp_path / "flat", "dev")
    assert one.id == "m-1-0" and one.answer == 1 and one.blank is None
    assert one.pairs == (("甲\n乙", "谁？ 子"), ("甲\n乙", "谁？ 丑"))
    own = read_dialogues_and_texts(tmp_path / "own", "dev")
    assert [example.pairs for example in own] == [one.pairs, one.pairs]
    assert read_dialogues_and_texts(tmp_path / "own", "test") == []


def test_c3_answer_that_is_no_choice(tmp_path):
    record = {"context": "甲", "question": "谁？", "choices": ["子", "丑"], "answer": "寅"}
    tiny.write_lines(tmp_path / "dev.jsonl", [record])
    with pytest.raises(DataError, match=r"dev.jsonl, line 1: the answer '寅' is not among the choices 子, 丑"):
        read_dialogues_and_texts(tmp_path, "dev")
    del record["answer"]
    tiny.write_lines(tmp_path / "test.jsonl", [record])
    assert read_dialogues_and_texts(tmp_path, "test")[0].answer is None


def test_c3_without_choices_or_documents(tmp_path):
    record = {"context": "甲", "question": "谁？", "choices": []}
    tiny.write_lines(tmp_path / "test.jsonl", [record])
    with pytest.raises(DataError, match=r"test.jsonl, line 1: choices is empty"):
        read_dialogues_and_texts(tmp_path, "test")
    for value in (None, 5, {"data": []}):
        tiny.write_json(tmp_path / "dev.json", value)
        with pytest.raises(DataError, match=r"dev.json: expected a list of documents"):
            read_dialogues_and_texts(tmp_path, "dev")


def test_idioms_without_candidates(tmp_path):
    tiny.write_lines(tmp_path / "test.jsonl", [{"content": ["甲#idiom000001#乙"], "candidates": []}])
    with pytest.raises(DataError, match=r"test.jsonl, line 1: candidates is empty"):
        read_idioms(tmp_path, "test")


def test_segmented_lines(tmp_path):
    (tmp_path / "train.txt").write_text("他  在 北京\n\n３月５日 好\n", encoding="utf-8")
    first, second = read_segmented(tmp_path, "train")
    assert first.text == "他在北京" and first.spans == (Span(0, 1, WORD), Span(1, 2, WORD), Span(2, 4, WORD))
    assert second.text == "３月５日好" and second.line == 3
    assert spans_to_tags(5, second.spans) == ["B-WORD", "M-WORD", "M-WORD", "E-WORD", "S-WORD"]
    assert read_segmented(tmp_path, "dev") == [] == read_segmented(tmp_path, "test")
    (tmp_path / "dev.txt").write_text("\n \n")
    with pytest.raises(DataError, match=r"dev.txt contains no sentence"):
        read_segmented(tmp_path, "dev")


def columns(n):
    return "".join(f"{'甲乙丙丁'[k % 4]} O\n京 S-LOC\n\n" for k in range(n))


def test_dev_is_cut_off_train_where_it_has_no_file(tmp_path):
    (tmp_path / "train.bmes").write_text(columns(20), encoding="utf-8")
    train, dev = read_entities(tmp_path, "train"), read_entities(tmp_path, "dev")
    assert len(train) == 18 and len(dev) == 2 and read_entities(tmp_path, "test") == []
    assert [s.text for s in train + dev] == ["甲乙丙丁"[k % 4] + "京" for k in range(20)]
    (tmp_path / "dev.bmes").write_text(columns(3), encoding="utf-8")
    assert len(read_entities(tmp_path, "train")) == 20 and len(read_entities(tmp_path, "dev")) == 3


def test_segmentation_has_a_dev_set_without_its_file_too(tmp_path):
    lines = [f"第 {k} 句" for k in range(30)]
    (tmp_path / "train.txt").write_text("\n".join(lines), encoding="utf-8")
    train, dev = read_segmented(tmp_path, "train"), read_segmented(tmp_path, "dev")
    assert [s.text for s in train + dev] == [line.replace(" ", "") for line in lines] and len(dev) == 3


def test_entities_of_clues_format(tmp_path):
    (tmp_path / "test.json").write_text(
        '{"text": "小明在北京", "label": {"address": {"北京": [[3, 4]]}}}\n', encoding="utf-8"
    )
    assert read_entities(tmp_path, "test")[0].spans == (Span(3, 5, "address"),)


def record(**changes):
    values = {
        "id": "Q1",
        "context": "小明在北京，小红在上海",
        "question": "小明在哪里？",
        "answers": {"text": ["北京", "在北京"], "answer_start": [3, 2]},
    }
    return values | changes


def test_lines_and_squad_agree(tmp_path):
    tiny.write_lines(tmp_path / "flat" / "dev.jsonl", [record()])
    answers = [{"text": "北京", "answer_start": 3}, {"text": "在北京", "answer_start": 2}]
    questions = [{"id": "Q1", "question": "小明在哪里？", "answers": answers}]
    squad = {"version": "1", "data": [{"paragraphs": [{"context": "小明在北京，小红在上海", "qas": questions}]}]}
    tiny.write_json(tmp_path / "squad" / "dev.json", squad)
    (one,) = read_questions(tmp_path / "flat", "dev")
    assert one.answers == (Answer("北京", 3, 3), Answer("在北京", 2, 2))
    assert read_questions(tmp_path / "squad", "dev") == [one]
    assert read_questions(tmp_path / "squad", "train") == []


def test_a_misplaced_answer_is_kept_and_counted(tmp_path):
    context = "小明在北京，小红在北京"
    tiny.write_lines(
        tmp_path / "train.jsonl",
        [
            record(),
            record(context=context, answers={"text": ["北京"], "answer_start": [7]}),
            record(answers={"text": ["广州"], "answer_start": [3]}),
            record(answers={"text": ["广州", "北京"], "answer_start": [99, 3]}),
        ],
    )
    examples = read_questions(tmp_path, "train")
    assert [e.answers[0].start for e in examples] == [3, 9, -1, -1]
    assert count_misplaced(examples) == {"n_answers_moved": 1, "n_answers_outside": 2}


@given(st.text("ab", max_size=12), st.text("ab", max_size=3), st.integers(-3, 15))
def test_an_answer_is_placed_where_the_context_has_it(context, text, given_start):
    found = place_answer(text, given_start, context)
    places = [k for k in range(len(context)) if text and context.startswith(text, k)]
    if not places:
        assert found.start == -1
    else:
        assert found.start in places
        assert abs(found.start - given_start) == min(abs(place - given_start) for place in places)


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"context": None}, "context is null, expected a text"),
        ({"answers": {"text": ["北京"], "answer_start": []}}, "1 texts need as many"),
        ({"answers": {"text": ["北京"]}}, "the field 'answer_start' is missing"),
        ({"answers": {"text": [], "answer_start": []}}, "a question without answers"),
    ],
)
def test_bad_questions(tmp_path, changes, message):
    tiny.write_lines(tmp_path / "train.jsonl", [record(), record(**changes)])
    with pytest.raises(DataError, match=f"train.jsonl, line 2.*{message}"):
        read_questions(tmp_path, "train")


def test_questions_of_a_test_file_need_no_answers(tmp_path):
    values = record(question="")
    del values["answers"]
    tiny.write_lines(tmp_path / "test.jsonl", [values])
    assert read_questions(tmp_path, "test")[0].answers == ()


def test_a_broken_document(tmp_path):
    (tmp_path / "dev.json").write_text('{"data": [{"paragraphs": [{"qas": []}]}]}')
    with pytest.raises(DataError, match=r"data\[0\], paragraphs\[0\]: the field 'context' is missing"):
        read_questions(tmp_path, "dev")
    (tmp_path / "dev.json").write_text('{\n"data": [')
    with pytest.raises(DataError, match="not JSON"):
        read_questions(tmp_path, "dev")


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
