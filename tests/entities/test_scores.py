"""Scores by hand; equality with seqeval on generated cases is in tests/properties/test_score_properties.py."""

import io
import json

import pytest
from rich.console import Console

from cige.data import Sentence, Span
from cige.data.tags import tags_to_spans
from cige.entities import Entity, score, surfaces
from cige.entities.score_table import report_table
from cige.errors import DataError

TEXTS = ["张三在上海", "李四去了北京和上海" * 3]
GOLD = [
    [Span(0, 2, "PER"), Span(3, 5, "LOC")],
    [Span(0, 2, "PER"), Span(4, 6, "LOC"), Span(7, 9, "LOC")],
]
PREDICTED = [
    [Span(0, 2, "PER"), Span(3, 5, "ORG")],  # one right, one of the wrong type
    [Span(0, 2, "PER"), Span(4, 7, "LOC")],  # one right, one with a wrong span
]


def test_precision_recall_and_f1():
    report = score(GOLD, PREDICTED)
    assert (report.precision, report.recall, report.f1) == (2 / 4, 2 / 5, 4 / 9)
    assert report.n_sentences == 2


def test_span_f_ignores_types_and_type_accuracy_counts_right_spans_only():
    report = score(GOLD, PREDICTED)
    assert report.span_f1 == 2 * 3 / (5 + 4)
    assert report.type_accuracy == 2 / 3


def test_spans_of_entities_with_gaps_or_several_types():
    text = "第一和第二医院"
    gapped = [Span(0, 7, "ORG", ((0, 2), (5, 7))), Span(0, 7, "ORG"), Span(3, 7, "ORG"), Span(3, 7, "LOC")]
    right = score([gapped], [gapped], texts=[text], train_surfaces={"第一医院"})
    assert (right.f1, right.span_f1, right.type_accuracy, right.span.n_gold) == (1.0, 1.0, 1.0, 4)
    assert right.by_seen["in training"].n_gold == right.by_seen["in training"].n_correct == 1
    assert surfaces([Sentence(text, tuple(gapped))]) == {"第一医院", text, "第二医院"}
    wrong = score([gapped], [[Span(0, 7, "ORG", ((0, 3), (5, 7))), Span(3, 7, "PER"), Span(3, 7, "LOC")]])
    assert (wrong.span.n_correct, wrong.overall.n_correct, wrong.type_accuracy) == (2, 1, 0.5)


def test_each_type_has_its_own_scores_and_support():
    per_type = score(GOLD, PREDICTED).to_dict()["per_type"]
    assert list(per_type) == ["LOC", "ORG", "PER"]
    assert per_type["PER"] == {"precision": 1.0, "recall": 1.0, "f1": 1.0, "support": 2, "predicted": 2}
    assert per_type["LOC"] == {"precision": 0.0, "recall": 0.0, "f1": 0.0, "support": 3, "predicted": 1}
    assert per_type["ORG"] == {"precision": 0.0, "recall": 0.0, "f1": 0.0, "support": 0, "predicted": 1}


def test_entities_are_scored_like_spans_and_duplicates_count_once():
    entity = Entity(start=0, end=2, label="PER", text="张三", score=0.9)
    report = score([[Span(0, 2, "PER")]], [[entity, entity]])
    assert (report.precision, report.recall) == (1.0, 1.0)


@pytest.mark.parametrize(
    ("gold", "predicted", "expected"),
    [
        ([], [], (0.0, 0.0, 0.0)),
        ([[]], [[]], (0.0, 0.0, 0.0)),
        ([[Span(0, 1, "A")]], [[]], (0.0, 0.0, 0.0)),
        ([[]], [[Span(0, 1, "A")]], (0.0, 0.0, 0.0)),
    ],
)
def test_nothing_to_divide_by_gives_zero(gold, predicted, expected):
    report = score(gold, predicted, texts=["x"] * len(gold), lexicon_words=set(), train_surfaces=set())
    assert (report.precision, report.recall, report.f1) == expected
    assert (report.span_f1, report.type_accuracy) == (0.0, 0.0)
    json.dumps(report.to_dict())
    render(report)


def test_by_sentence_length():
    report = score(GOLD, PREDICTED, texts=TEXTS)
    assert list(report.by_length) == ["0-20", "21-50"]
    assert (report.by_length["0-20"].n_gold, report.by_length["0-20"].n_correct) == (2, 1)
    assert report.by_length["21-50"].recall == 1 / 3
    assert score([[]] * 3, [[]] * 3, texts=["", "x" * 200, "x" * 201]).by_length.keys() == {"0-20", "101-200", "201+"}


@pytest.mark.parametrize("words", [{"上海", "张三"}, ["上海", "张三"], lambda word: word in ("上海", "张三")])
def test_by_lexicon(words):
    report = score(GOLD, PREDICTED, texts=TEXTS, lexicon_words=words)
    inside, outside = report.by_lexicon["in lexicon"], report.by_lexicon["not in lexicon"]
    assert (inside.n_gold, inside.n_predicted, inside.n_correct) == (3, 2, 1)
    assert (outside.n_gold, outside.n_predicted, outside.n_correct) == (2, 2, 1)


def test_the_lexicon_is_asked_for_the_normalised_surface():
    report = score([[Span(0, 2, "A")]], [[]], texts=["ＡＢ"], lexicon_words={"AB"})
    assert report.by_lexicon["in lexicon"].n_gold == 1


def test_by_seen_in_training():
    seen = surfaces([Sentence("张三和李四", (Span(0, 2, "PER"), Span(3, 5, "PER")))])
    assert seen == {"张三", "李四"}
    report = score(GOLD, PREDICTED, texts=TEXTS, train_surfaces=seen)
    assert report.by_seen["in training"].f1 == 1.0
    assert report.by_seen["not in training"].recall == 0.0
    assert report.by_seen["not in training"].n_gold == 3


def test_sentences_of_the_training_data_are_scored_apart():
    report = score(GOLD, PREDICTED, texts=TEXTS, train_texts={TEXTS[0]})
    apart = [score(GOLD[k : k + 1], PREDICTED[k : k + 1]).overall for k in range(2)]
    assert report.by_repeated == {"in sentences of training": apart[0], "not in sentences of training": apart[1]}
    assert report.to_dict()["by_repeated"]["in sentences of training"]["support"] == apart[0].n_gold > 0
    assert "not in sentences of training" in render(report)


def test_groups_that_were_not_asked_for_are_absent():
    assert set(score(GOLD, PREDICTED).to_dict()) == {
        *("f1", "precision", "recall", "span_f1", "type_accuracy", "n_sentences", "n_gold", "n_predicted", "per_type")
    }


def test_the_lenient_score_is_read_from_tags():
    gold = [[Span(0, 4, "LOC"), Span(5, 6, "PER")]]
    tags = [["B-LOC", "O", "O", "E-ORG", "O", "S-PER"]]
    report = score(gold, [tags_to_spans(tags[0])], predicted_tags=tags)
    assert report.recall == 0.5
    assert report.lenient.recall == report.to_dict()["lenient_f1"] == 1.0


def test_lists_out_of_step_and_missing_texts_are_refused():
    with pytest.raises(DataError, match="gold has 2 sentences, predicted has 1"):
        score(GOLD, PREDICTED[:1])
    with pytest.raises(DataError, match="gold has 2 sentences, texts has 1"):
        score(GOLD, PREDICTED, texts=TEXTS[:1])
    with pytest.raises(DataError, match="need the texts="):
        score(GOLD, PREDICTED, train_surfaces=set())
    with pytest.raises(DataError, match="need the texts="):
        score(GOLD, PREDICTED, train_texts=set())


def test_the_dict_is_ready_for_json_and_the_table_shows_per_cent():
    report = score(GOLD, PREDICTED, texts=TEXTS, lexicon_words={"上海"}, train_surfaces={"张三"})
    found = json.loads(json.dumps(report.to_dict()))
    assert found["f1"] == report.f1
    assert found["by_seen"]["in training"]["recall"] == 1.0
    text = render(report, "Weibo")
    for expected in ("Weibo", "44.44", "66.67", "all (2 sentences)", "characters 21-50", "in lexicon", "type PER"):
        assert expected in text


def render(report, title=None):
    console = Console(file=io.StringIO(), width=120)
    console.print(report_table(report, title))
    return console.file.getvalue()
