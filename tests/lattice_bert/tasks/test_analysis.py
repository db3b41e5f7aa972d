"""Analyses of tuned models: counts by hand, and against slow definitions."""

import pytest
import tiny_tasks as tiny
from hypothesis import given
from hypothesis import strategies as st

from cige.data.sentence import Sentence, Span
from cige.errors import DataError
from cige.lattice_bert.encoder.joint_vocabulary import JointVocabulary
from cige.lattice_bert.encoder.tokenizer import LatticeTokenizer
from cige.lattice_bert.tasks.analysis import (
    KEYWORDS,
    LENGTH,
    NESTED,
    EntityErrors,
    Group,
    analysis_of,
    by_keyword_words,
    by_length,
    equal_edges,
    errors_over_runs,
    groups_over_runs,
    length_of,
    nested_errors,
    reduction,
    words_per_keyword,
)
from cige.lattice_bert.tasks.examples import TextExample
from cige.lattice_bert.tasks.registry import TASKS


def texts(*pairs):
    """Examples of (first text, label)."""
    return [TextExample(str(k), first, None, label) for k, (first, label) in enumerate(pairs)]


def first_length(example):
    return len(example.first)


# --- which analysis ---


def test_the_task_decides():
    expected = {"tnews": LENGTH, "afqmc": LENGTH, "tnews_toutiao": LENGTH, "csl": KEYWORDS, "csl_cut": KEYWORDS}
    assert {name: analysis_of(TASKS[name]) for name in expected} == expected
    assert analysis_of(TASKS["msra"]) == NESTED


@pytest.mark.parametrize("name", ["cmrc", "chid", "msr"])
def test_another_task_is_told_which_have_one(name):
    with pytest.raises(DataError, match=rf"no analysis of {name}; .*tnews.*csl, csl_cut \(.*; msra \(.*nested"):
        analysis_of(TASKS[name])


# --- by length ---


def test_by_length_by_hand():
    examples = texts(("一", "a"), ("二二", "b"), ("三三三", "a"), ("四四四四", "b"), ("五五五五五", "a"))
    first, second = ["a", "a", "b", "b", "b"], ["a", "b", "a", "a", "b"]
    groups = by_length(examples, [first, second], length=first_length, edges=[2, 3, 5])
    assert [(g.name, g.n_examples, g.n_correct) for g in groups] == [
        ("up to 1", 1, (1, 1)),
        ("2", 1, (0, 1)),
        ("3-4", 2, (1, 1)),
        ("5 or more", 1, (0, 0)),
        ("all", 5, (2, 3)),
    ]
    assert groups[-1].accuracies == (0.4, 0.6) and groups[-1].gains == (pytest.approx(0.2),)


def test_an_empty_bin_is_kept_without_an_accuracy():
    groups = by_length(texts(("一", "a")), [["a"], ["b"], ["a"]], length=first_length, edges=[4, 8])
    assert [g.n_examples for g in groups] == [1, 0, 0, 1]
    assert groups[1].accuracies == (None, None, None) and groups[1].gains == (None, None)
    assert groups[0].gains == (-1.0, 0.0)
    assert groups[1].to_dict() == {
        "name": "4-7",
        "n_examples": 0,
        "n_correct": [0, 0, 0],
        "accuracies": [None, None, None],
        "gains": [None, None],
    }


def test_bad_edges_and_answers_out_of_step():
    with pytest.raises(DataError, match="edges 4, 4"):
        by_length([], [[], []], length=first_length, edges=[4, 4])
    with pytest.raises(DataError, match="1 examples and 2 answers"):
        by_length(texts(("一", "a")), [["a"], ["a", "b"]], length=first_length, edges=[])


def test_one_bin_has_every_length():
    groups = by_length(texts(("一", "a"), ("", "b")), [["a", "a"]], length=first_length, edges=[])
    assert [(g.name, g.n_examples, g.n_correct, g.gains) for g in groups] == [
        ("any length", 2, (1,), ()),
        ("all", 2, (1,), ()),
    ]


def test_equal_edges():
    assert equal_edges(range(1, 11), 5) == [3, 5, 7, 9]
    assert equal_edges([1, 2, 2, 2, 2, 2, 2, 3, 4, 5], 2) == [3]  # 7 and 3 rather than 1 and 9
    assert equal_edges([7, 7, 7], 5) == [] and equal_edges([], 5) == []
    assert equal_edges([1, 9], 5) == [9]


@given(st.lists(st.integers(0, 12), max_size=60), st.integers(1, 6))
def test_equal_bins_hold_all_and_none_is_empty(lengths, n_bins):
    examples = texts(*(("字" * n, "a") for n in lengths))
    edges = equal_edges(lengths, n_bins)
    *bins, total = by_length(examples, [["a"] * len(lengths)], length=first_length, edges=edges)
    assert len(bins) <= n_bins and sum(g.n_examples for g in bins) == total.n_examples == len(lengths)
    assert not lengths or all(g.n_examples for g in bins)
    most_alike = max((lengths.count(n) for n in lengths), default=0)
    # An edge is off its place by half of the examples of one length at most.
    assert all(g.n_examples <= len(lengths) / n_bins + most_alike for g in bins)


def test_keywords_of_tnews_are_no_text():
    example = TextExample("0", "今天天气", "天气,今天", "100")
    assert length_of(TASKS["tnews"])(example) == 4
    assert length_of(TASKS["afqmc"])(example) == 9
    assert length_of(TASKS["iflytek"])(TextExample("0", "今天", None, "1")) == 2


# --- words in keywords ---

SOLAR = ["太阳", "太阳能", "电池", "太阳能电池"]


def solar_tokenizer():
    return LatticeTokenizer(JointVocabulary.build([*tiny.SPECIAL, *"太阳能电池光子", "ab"], SOLAR))


@pytest.mark.parametrize(
    "keywords, n",
    [
        ("太阳能电池", 4),  # the paper's example
        ("太阳能电池 电池", 2.5),
        ("电池 光子", 0.5),
        ("太阳能 电池", 1.5),  # no word crosses the space
        ("ab", 0),  # a piece of two letters is no word
        ("", 0),
    ],
)
def test_words_per_keyword(keywords, n):
    assert words_per_keyword(TextExample("0", keywords, "光子", "1"), solar_tokenizer()) == n


def test_by_keyword_words_by_hand():
    examples = texts(
        ("太阳能电池", "1"),  # 4
        ("太阳能电池 光子", "0"),  # 2: not more than two
        ("太阳能电池 电池", "1"),  # 2.5
        ("光子", "0"),
        ("", "1"),  # without keywords
    )
    first, second = ["0", "0", "1", "1", "0"], ["1", "1", "1", "0", "1"]
    many, rest, total = by_keyword_words(examples, [first, second], solar_tokenizer())
    assert (many.n_examples, many.n_correct, many.gains) == (2, (1, 2), (0.5,))
    assert (rest.n_examples, rest.n_correct) == (3, (1, 2))
    assert (total.n_examples, total.n_correct) == (5, (2, 4))
    nothing, _, _ = by_keyword_words(examples, [first, second], LatticeTokenizer(tiny.vocabulary(), use_words=False))
    assert nothing.n_examples == 0 and nothing.accuracies == (None, None)


# --- nested errors ---

MOVEMENT = Sentence("解放巴勒斯坦运动", (Span(0, 8, "ORG"),))


@pytest.mark.parametrize(
    "gold, predicted, expected",
    [
        ([(0, 8, "ORG")], [(2, 6, "LOC"), (7, 8, "ORG")], (2, 2, 2)),  # the paper's example
        ([(0, 8, "ORG")], [(0, 8, "ORG")], (1, 0, 0)),
        ([(0, 8, "ORG")], [(0, 8, "LOC")], (1, 1, 0)),  # a wrong type is no nesting
        ([(2, 6, "LOC")], [(0, 8, "ORG")], (1, 1, 1)),  # it may contain
        ([(2, 6, "LOC")], [(2, 6, "LOC"), (6, 8, "ORG")], (2, 1, 0)),  # touching
        ([(2, 6, "LOC")], [(0, 2, "ORG")], (1, 1, 0)),
        ([(2, 6, "LOC")], [(4, 8, "ORG")], (1, 1, 0)),  # crossing
        ([(2, 6, "LOC")], [(2, 5, "LOC")], (1, 1, 1)),  # one edge in common
        ([(0, 2, "LOC"), (2, 6, "LOC")], [(0, 8, "ORG")], (1, 1, 1)),  # once, however many it contains
        ([], [(0, 2, "LOC")], (1, 1, 0)),
        ([(0, 2, "LOC")], [], (0, 0, 0)),
    ],
)
def test_nested_errors_by_hand(gold, predicted, expected):
    sentence = Sentence(MOVEMENT.text, tuple(Span(*span) for span in gold))
    found = nested_errors([sentence], [[[Span(*span) for span in predicted]]])
    assert found == [EntityErrors(*expected)]


def test_nested_errors_stay_within_their_sentence():
    sentences = [MOVEMENT, Sentence("巴勒斯坦", ())]
    baseline, better = [[Span(2, 6, "LOC")], [Span(0, 4, "LOC")]], [[Span(0, 8, "ORG")], [Span(0, 4, "LOC")]]
    errors = nested_errors(sentences, [baseline, better])
    assert errors == [EntityErrors(2, 2, 1), EntityErrors(2, 1, 0)]
    assert reduction(errors[0].n_nested, errors[1].n_nested) == 1.0
    assert reduction(4, 3) == 0.25 and reduction(2, 3) == -0.5 and reduction(0, 3) is None
    with pytest.raises(DataError, match="2 examples and 1 answers"):
        nested_errors(sentences, [baseline[:1]])


spans = st.builds(
    lambda s, n, label: Span(s, s + n, label), st.integers(0, 6), st.integers(1, 5), st.sampled_from("AB")
)


@given(st.lists(st.tuples(st.sets(spans, max_size=4), st.sets(spans, max_size=4)), max_size=3))
def test_nested_errors_against_a_slow_definition(pairs):
    n_wrong = n_nested = 0
    for gold, predicted in pairs:
        for p in predicted - gold:
            places = set(range(p.start, p.end))
            n_wrong += 1
            n_nested += any(places < set(range(g.start, g.end)) or places > set(range(g.start, g.end)) for g in gold)
    sentences = [Sentence("字" * 12, tuple(sorted(gold))) for gold, _ in pairs]
    (found,) = nested_errors(sentences, [[sorted(predicted) for _, predicted in pairs]])
    assert found == EntityErrors(sum(len(predicted) for _, predicted in pairs), n_wrong, n_nested)


def test_runs_of_a_model_become_means_and_deviations():
    (group,) = groups_over_runs([Group("all", 10, (4, 5, 9, 6, 7))], [1, 2, 2])
    assert group.n_correct == (4, 7, 6.5) and group.gains == pytest.approx((0.3, 0.25))
    assert group.sds == pytest.approx((0, 8**0.5 / 10, 0.5**0.5 / 10))
    assert group.to_dict()["sds"] == list(group.sds)
    empty = Group("none", 0, (0, 0))
    assert groups_over_runs([empty], [1, 1]) == [empty]
    assert groups_over_runs([empty], [2])[0].accuracies == (None,)


def test_errors_of_runs_become_means_and_deviations():
    runs = [EntityErrors(10, 4, 2), EntityErrors(14, 6, 2), EntityErrors(9, 3, 1)]
    first, second = errors_over_runs(runs, [2, 1])
    assert first.counts == (12, 5, 2) and first.sds == pytest.approx((8**0.5, 2**0.5, 0))
    assert second.counts == (9, 3, 1) and second.sds == (0, 0, 0)
    assert errors_over_runs(runs, [1, 1, 1]) == runs
