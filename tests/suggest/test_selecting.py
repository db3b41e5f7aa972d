"""Which sentences are chosen, by each strategy."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import pytest
import tiny

from cige.api import NER
from cige.entities.entity import Entity
from cige.entities.label_facts import LabelFacts
from cige.lexicon.user_word import UserWord
from cige.suggest import selecting
from cige.suggest.doubts import FLOOR, doubts_of, total
from cige.suggest.selecting import STRATEGIES, Selector, Settings
from cige.tagging.selection import Request

TEXTS = [f"{s.text}第{number}次" for number, s in enumerate(tiny.sentences(120, seed=4, new_name_prob=0.5))]


@cache
def ner() -> NER:
    return NER(tiny.trained_model())


def selected(texts, *, labelled=(), finder=None, **settings):
    selector = Selector(Settings(**settings), finder=finder or ner(), labelled=labelled)
    selector.read(texts)
    return selector.chosen()


def test_doubts_are_what_the_probabilities_of_all_candidates_say():
    (doubts,) = doubts_of(ner(), ["欧阳修在巴塞尔。"], Request())
    assert all(0 < d.amount <= 0.5 and 0 <= d.start < d.end <= 8 for d in doubts)
    best = ner()("欧阳修在巴塞尔。")
    by_place = {(d.start, d.end, round(d.amount, 6)) for d in doubts}
    for entity in best:
        amount = min(entity.score, 1 - entity.score)
        assert amount < FLOOR / 1e3 or (entity.start, entity.end, round(amount, 6)) in by_place


def test_words_that_a_user_forces_are_no_doubt():
    text = "\u9123\u9456\u9789在\u9a12\u9b45。"
    words = {"\u9123\u9456\u9789": "PER", "\u9a12\u9b45": "LOC"}
    forced = ner().with_words([UserWord(word, label=label, mode="force") for word, label in words.items()])
    (before,), (after,) = (list(doubts_of(finder, [text], Request())) for finder in (ner(), forced))
    assert total(after) < 0.1 * total(before)


def test_the_labels_asked_for_are_those_that_count():
    everything, people, places = (
        [total(doubts) for doubts in doubts_of(ner(), TEXTS[:20], Request.of(labels=labels))]
        for labels in (None, ["PER"], ["LOC"])
    )
    assert sum(people) > 0 and sum(places) > 0
    assert all(p + q <= e + 1e-6 for p, q, e in zip(people, places, everything, strict=True))


def test_uncertainty_takes_the_most_doubtful():
    chosen = selected(TEXTS, n=10, strategy="uncertainty", max_chars=200)
    shown = [suggestion.uncertainty for suggestion in chosen]
    assert all(a >= b for a, b in pairwise(shown)) and [s.rank for s in chosen] == list(range(1, 11))
    of_all = dict(zip(TEXTS, map(total, doubts_of(ner(), TEXTS, Request())), strict=True))
    assert max(of_all.values()) == pytest.approx(shown[0], rel=1e-4)
    assert all(of_all[s.text] == pytest.approx(s.uncertainty, rel=1e-4) for s in chosen)
    assert all(TEXTS[s.line - 1] == s.text for s in chosen)


class OfListedNames:
    """A finder that finds the names of a dict, each with its probability."""

    labels = ("PER",)
    label_facts = LabelFacts()

    def __init__(self, names):
        self._names = names

    def stream(self, texts, selection, *, batch_size):
        for text in texts:
            found = [(text.find(name), name, score) for name, score in self._names.items()]
            yield [Entity(k, k + len(name), "PER", name, score) for k, name, score in found if k >= 0]


def test_what_is_certain_is_no_doubt():
    finder = OfListedNames({"欧阳修": 0.75, "李明": 1.0})
    (doubts,) = doubts_of(finder, ["欧阳修和李明"], Request())
    assert [(doubt.start, doubt.end, doubt.amount) for doubt in doubts] == [(0, 3, 0.25)]


def test_both_does_not_take_the_same_doubt_twice():
    finder = OfListedNames({"欧阳修": 0.5, "王小红": 0.6, "李明": 0.999})
    texts = ["听说欧阳修在北京", "欧阳修那时还年轻呢", "我见过欧阳修的信", "今天王小红没有来啊", "大家都知道李明"]
    by_doubt = [s.text for s in selected(texts, n=5, strategy="uncertainty", finder=finder)]
    assert set(by_doubt[:3]) == set(texts[:3]) and by_doubt[3:] == texts[3:]
    both = [s.text for s in selected(texts, n=5, strategy="both", finder=finder)]
    assert both[0] in texts[:3] and both[1] == texts[3] and both[4] == texts[4]


def test_diversity_prefers_what_is_common_and_not_said_yet():
    texts = [f"公司在{city}设立了分公司" for city in ("北京", "上海", "重庆", "南京")]
    texts += [
        "今天天气很好，明天天气也很好",
        "昨天天气很好，后天天气也很好",
        "\u9123\u9124\u9125\u9126\u9127\u9128\u9129\u912a",
    ]
    chosen = selected(texts, n=2, strategy="diversity")
    assert {"天气" in s.text for s in chosen} == {True, False}
    assert all(s.uncertainty is None for s in chosen)
    after = selected(texts, n=1, strategy="diversity", labelled=[t for t in texts if "天气" in t])
    assert "公司" in after[0].text
    assert selected(texts, n=9, strategy="diversity")[-1].text == texts[-1]  # shares nothing with the others


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_same_seed_chooses_the_same_whatever_the_order(strategy):
    first = {s.text for s in selected(TEXTS, n=12, strategy=strategy, seed=3)}
    again = {s.text for s in selected(TEXTS[::-1], n=12, strategy=strategy, seed=3)}
    assert first == again and len(first) == 12


def test_seeds_draw_different_samples():
    drawn = [frozenset(s.text for s in selected(TEXTS, n=12, strategy="random", seed=seed)) for seed in range(3)]
    assert len(set(drawn)) == 3


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_labelled_texts_short_and_long_ones_and_repeats_are_passed_over(strategy):
    texts = [
        "李明在北京。",
        "李明在北京。",
        "  李明在北京。 ",
        "张三",
        "张三在上海。" * 40,
        "王小红在重庆。",
        "",
        "李明在巴塞尔呢",
    ]
    chosen = selected(texts, n=9, strategy=strategy, labelled=["王小红在重庆。"], min_chars=5, max_chars=100)
    assert sorted(s.text for s in chosen) == ["李明在北京。", "李明在巴塞尔呢"]


@pytest.mark.parametrize("strategy", ["both", "uncertainty", "diversity"])
def test_near_duplicates_are_chosen_once(strategy):
    texts = [f"今天李明和王小红在上海的清华大学说了{number}次话" for number in range(1, 30)] + ["欧阳修来自南京市"]
    assert len(selected(texts, n=9, strategy=strategy)) == 2
    labelled = ["今天李明和王小红在上海的清华大学说了100次话"]
    assert [s.text for s in selected(texts, n=9, strategy=strategy, labelled=labelled)] == ["欧阳修来自南京市"]


def test_per_character_does_not_favour_long_sentences():
    long = "，".join(text for text in TEXTS[:6])
    texts = [*TEXTS, long]
    by_sentence = selected(texts, n=1, strategy="uncertainty", max_chars=999)[0]
    by_character = selected(texts, n=1, strategy="uncertainty", max_chars=999, per="character")[0]
    assert by_sentence.text == long
    assert by_character.uncertainty / len(by_character.text) >= by_sentence.uncertainty / len(long)


def test_memory_does_not_grow_with_the_file(monkeypatch):
    monkeypatch.setattr(selecting, "SMALLEST_SAMPLE", 50)
    monkeypatch.setattr(selecting, "READ_AT_ONCE", 100)
    selector = Selector(Settings(2, "diversity"))
    selector.read(f"{chr(0x4E00 + number)}和{chr(0x6E00 + number)}在北京说话" for number in range(5000))
    assert selector.n_read == selector.n_fitting == 5000 and len(selector.pool) == 50
    assert len(selector.chosen()) == 2


def test_a_strategy_that_doubts_needs_a_model():
    with pytest.raises(ValueError, match="'both' needs a model"):
        Selector(Settings(3))


def test_an_unknown_strategy_is_an_error_at_once():
    with pytest.raises(ValueError, match="given strategy='best'; expected one of both, uncertainty, diversity, random"):
        Selector(Settings(3, strategy="best"))  # type: ignore[arg-type]


def test_both_bounds_of_the_length_belong_to_it():
    texts = ["一" * n for n in range(1, 7)]
    chosen = selected(texts, n=9, strategy="random", min_chars=2, max_chars=4)
    assert sorted(len(s.text) for s in chosen) == [2, 3, 4]
    only = selected(texts, n=9, strategy="random", min_chars=3, max_chars=3)
    assert [s.text for s in only] == ["一一一"]
