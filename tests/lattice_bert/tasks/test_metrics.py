import pytest
import tiny_tasks  # noqa: F401  (the path of this folder)
from hypothesis import given
from hypothesis import strategies as st

from cige.data.sentence import Sentence, Span
from cige.errors import DataError
from cige.lattice_bert.tasks.metrics import accuracy, exact_match, f1, span_counts, tag_counts, units


def test_accuracy():
    assert accuracy(["1", "0", "1"], ["1", "1", "1"]) == pytest.approx(2 / 3)
    assert accuracy([], []) == 0.0
    with pytest.raises(DataError, match="2 gold answers and 1 predicted"):
        accuracy([1, 2], [1])


def test_tags_and_spans_by_hand():
    gold = [Sentence("北京大学在北京", (Span(0, 4, "ORG"), Span(5, 7, "LOC")))]  # B M M E O B E
    predicted = [[Span(0, 2, "ORG"), Span(5, 7, "LOC")]]  # B E O O O B E
    tags = tag_counts(gold, predicted)
    assert (tags.n_gold, tags.n_predicted, tags.n_correct) == (6, 4, 3)
    assert tags.f1 == pytest.approx(2 * (3 / 4) * (3 / 6) / (3 / 4 + 3 / 6))
    assert span_counts(gold, predicted).f1 == pytest.approx(1 / 2)
    assert tag_counts(gold, [[]]).f1 == 0.0
    assert tag_counts([Sentence("天")], [[]]).f1 == 0.0


def test_word_f1_by_hand():
    gold = [Sentence("研究生活", (Span(0, 2, "WORD"), Span(2, 4, "WORD")))]
    predicted = [[Span(0, 3, "WORD"), Span(3, 4, "WORD")]]
    assert span_counts(gold, predicted).f1 == 0.0
    assert tag_counts(gold, predicted).n_correct == 1  # B of B E B E and B M E S


def test_units():
    assert units("第3届《ACM》大会, 3.5万") == ["第", "3", "届", "acm", "大", "会", ",", "3.5", "万"]
    assert units("，。") == [] and units("") == []


@pytest.mark.parametrize(
    "answers, prediction, em, score",
    [
        (["北京大学"], "北京大学", 1, 1.0),
        (["北京大学"], "“北京大学”。", 1, 1.0),  # punctuation does not count
        (["Nexon"], "NEXON", 1, 1.0),
        (["北京大学"], "北京", 0, 2 * 1.0 * 0.5 / 1.5),
        (["北京大学"], "北方大学", 0, 0.5),  # the longest common run is 大学, not 北 + 大学
        (["北京", "上海市"], "上海", 0, 0.8),  # the best answer counts
        (["北京"], "上海", 0, 0.0),
        (["北京"], "", 0, 0.0),
        (["3.5万"], "3.5", 0, 2 / 3),
    ],
)
def test_cmrc_by_hand(answers, prediction, em, score):
    assert exact_match(answers, prediction) == em
    assert f1(answers, prediction) == pytest.approx(score)


def slow_longest_run(a, b):
    return max((n for i in range(len(a)) for n in range(len(a) - i + 1) if "".join(a[i : i + n]) in b), default=0)


@given(st.text("天地人", max_size=8), st.text("天地人", max_size=8))
def test_cmrc_f1_against_a_slow_definition(answer, prediction):
    common = slow_longest_run(answer, prediction)
    precision, recall = common / max(1, len(prediction)), common / max(1, len(answer))
    expected = 2 * precision * recall / (precision + recall) if common else 0.0
    assert f1([answer], prediction) == pytest.approx(expected)
