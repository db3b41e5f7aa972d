"""Scores of a model on labelled sentences, and what user words gain."""

import pytest
import tiny

from cige.data.names import labelled_words_of, user_words_of
from cige.data.sentence import Sentence, Span
from cige.entities.entity import Entity
from cige.errors import DataError
from cige.lexicon.user_word import UserWord
from cige.tagging.evaluation import evaluate, random_ngrams, share_listed, user_word_trials, with_wrong_labels


def test_evaluation_reads_as_a_users_texts_are_read(ner):
    sentences = tiny.sentences(20, seed=8)
    long = Sentence(sentences[0].text * 60, ())  # of several windows
    found = evaluate(ner, [*sentences, long], train=[*tiny.sentences(5), sentences[0]])
    assert found.report.n_sentences == 21
    assert found.report.recall == 1.0 and found.report.precision < 0.7  # what is found in `long` is not gold
    assert set(found.report.by_seen) == {"in training", "not in training"}
    repeated = found.report.by_repeated["in sentences of training"]
    assert len(sentences[0].spans) <= repeated.n_gold < found.report.overall.n_gold
    assert found.to_dict()["sentences_per_second"] == pytest.approx(21 / found.seconds)


def test_an_entity_with_other_parts_is_not_a_correct_point():
    class Gapped:
        labels = ("ORG",)

        def pipe(self, texts, *, batch_size=16):
            yield [
                Entity(0, 7, "ORG", "第一医院", 0.9, parts=((0, 2), (5, 7))),
                Entity(0, 7, "ORG", "第一和口腔医院", 0.8),
            ]

    gold = Span(0, 7, "ORG", ((0, 2), (5, 7)))
    assert evaluate(Gapped(), [Sentence("第一和口腔医院", (gold,))]).points == ((0.9, True), (0.8, False))


def test_nothing_to_read(ner):
    assert evaluate(ner, []).report.f1 == 0


def test_a_label_that_the_model_has_not_is_an_error(ner):
    with pytest.raises(DataError, match="no label of the model for TITLE"):
        evaluate(ner, [Sentence("张三", (Span(0, 2, "TITLE"),))])


def test_labels_of_the_data_alone_may_be_mapped_with_others(ner):
    sentences = [Sentence("张三在北京", (Span(3, 5, "place"),))]
    mapping = {"place": "LOC", "name": "PER"}  # of all files of the data set
    assert evaluate(ner, sentences, labels=mapping, data_labels_only=True).labels == ("LOC",)
    with pytest.raises(DataError, match=r"no label NONE, .*; it has LOC, ORG, PER"):
        evaluate(ner, sentences, labels=mapping | {"name": "NONE"}, data_labels_only=True)


def test_trials_leave_the_lexicon_alone(ner):
    before = ner.lexicon.snapshot()
    trials = user_word_trials(ner, tiny.sentences(4, new_name_prob=1.0), gazetteers={"places": ["北京"]})
    assert [t.name for t in trials] == ["none", "names of the file", "names and random n-grams", "places"]
    assert ner.lexicon.snapshot() is before
    assert trials[0].unseen_recall is None and "unseen_recall" not in trials[0].to_dict()


def test_the_share_of_names_that_a_list_has():
    sentences = [
        Sentence("ＡＢ和李明", (Span(0, 2, "ORG"), Span(3, 5, "PER"))),
        Sentence("李明在京", (Span(0, 2, "PER"), Span(3, 4, "LOC"))),
    ]
    assert share_listed(sentences, ["李明", "王五"]) == (1 / 3, 2 / 4)  # a name of one character counts as not listed
    assert share_listed(sentences, ["ab", "AB"]) == (1 / 3, 1 / 4)  # full width and half width are the same
    assert share_listed(sentences, []) == (0.0, 0.0) == share_listed([Sentence("甲")], ["甲乙"])


def test_random_ngrams_are_of_the_texts_and_no_names():
    sentences = tiny.sentences(30)
    names = set(user_words_of(sentences))
    found = random_ngrams(sentences, 40, seed=1)
    assert len(found) == len(set(found)) == 40
    assert not names & set(found)
    assert all(2 <= len(w) <= 6 and any(w in s.text for s in sentences) for w in found)
    assert found == random_ngrams(sentences, 40, seed=1) != random_ngrams(sentences, 40, seed=2)


def test_a_small_file_gives_as_many_ngrams_as_it_holds():
    assert set(random_ngrams([Sentence("甲乙丙")], 50, seed=0)) == {"甲乙", "乙丙", "甲乙丙"}
    assert random_ngrams([Sentence("")], 5, seed=0) == []


def test_lists_with_labels_are_tried_with_and_without_them(ner):
    sentences = tiny.sentences(4)
    gazetteer = [UserWord("北京", "LOC"), UserWord("京", "LOC", "force"), UserWord("上海", None, "block"), "重庆"]
    trials = user_word_trials(ner, sentences, gazetteers={"places": gazetteer}, with_labels=True)
    assert {t.name: t.n_words for t in trials[3:]} == {
        "names with labels": len(user_words_of(sentences)),
        "names, 20% no labels": len(user_words_of(sentences)),
        "names, 20% wrong labels": len(user_words_of(sentences)),
        "places": 4,
        "places without labels": 3,
    }
    assert "places without labels" not in {t.name for t in user_word_trials(ner, [], gazetteers={"places": gazetteer})}


def test_names_with_their_labels():
    sentences = [
        Sentence("苹果在京", (Span(0, 2, "ORG"), Span(3, 4, "LOC"))),
        Sentence("苹果苹果张三", (Span(0, 2, "FOOD"), Span(2, 4, "FOOD"), Span(4, 6, "NR"))),
    ]
    assert labelled_words_of(sentences, labels={"NR": "PER"}) == [UserWord("张三", "PER"), UserWord("苹果", "FOOD")]
    texts = {"天坛（南）": "LOC", "天坛(南)": "ORG", "天坛（南)": "ORG"}
    sentences = [Sentence(text, (Span(0, 5, label),)) for text, label in texts.items()]
    assert labelled_words_of(sentences) == [UserWord("天坛(南)", "ORG")], "one word to a lexicon"


def test_a_fifth_of_the_labels_is_wrong():
    words = [UserWord(f"甲{k}", "X" if k % 2 else None) for k in range(200)]
    wrong = with_wrong_labels(words, ["X", "Y", "Z"], seed=0)
    assert [w.text for w in wrong] == [w.text for w in words]
    assert sum(a != b for a, b in zip(words, wrong, strict=True)) == 20
    assert {w.label for w in wrong} == {None, "X", "Y", "Z"} and with_wrong_labels(words, ["X"], seed=0) == words


def test_labels_that_only_user_words_have_are_scored(ner):
    sentences = [Sentence("张三在贺兰草", (Span(3, 6, "PLANT"),)), Sentence("沙葱", (Span(0, 2, "PLANT"),))]
    words = [UserWord("贺兰草", "PLANT", "force")]
    own = ner.with_words(words)
    assert "PLANT" in evaluate(own, sentences).labels
    scores = evaluate(own, sentences, data_labels_only=True).report.per_type["PLANT"]
    assert (scores.n_correct, scores.n_gold, scores.n_predicted) == (1, 2, 1)
    none = evaluate(ner, sentences, data_labels_only=True, word_labels=["PLANT"]).report.per_type["PLANT"]
    assert (none.n_correct, none.n_gold) == (0, 2)
    trials = {trial.name: trial.report for trial in user_word_trials(ner, sentences, gazetteers={"plants": words})}
    assert trials["none"].recall == 0 and trials["plants"].recall == 0.5
    with pytest.raises(DataError, match="no label of the model for PLANT"):
        user_word_trials(ner, sentences, gazetteers={"plants": ["贺兰草"]})
