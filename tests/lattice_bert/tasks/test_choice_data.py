import pytest
import tiny_tasks as tiny

from cige.errors import DataError
from cige.lattice_bert.tasks.readers import read_dialogues_and_texts, read_idioms


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
