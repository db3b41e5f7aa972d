import pytest
import tiny_tasks as tiny
from hypothesis import given
from hypothesis import strategies as st

from cige.errors import DataError
from cige.lattice_bert.tasks.examples import Answer
from cige.lattice_bert.tasks.readers import count_misplaced, place_answer, read_questions


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
