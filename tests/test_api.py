"""NER: text in, entities out, offsets into the user's own string."""

import inspect
import sys
import threading
import typing
import warnings
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import tiny
from tiny import FOUND, SENTENCE, triples

import cige
from cige.api import WordBudgetWarning, load
from cige.entities.label_facts import LabelFacts
from cige.errors import ModelError
from cige.lexicon.report import WordListWarning
from cige.lexicon.user_word import UserWord
from cige.tagging import selection
from cige.tagging.finder import EntityFinder
from cige.text.windows import CORE


def same(a, b):
    return triples(a) == triples(b) and all(
        x.score == pytest.approx(y.score, abs=1e-4) for x, y in zip(a, b, strict=True)
    )


def test_entities_of_a_text(ner):
    entities = ner(SENTENCE)
    assert triples(entities) == FOUND
    assert [e.text for e in entities] == ["李明", "北京", "王小红", "罗氏公司", "南京市"]
    assert all(0.5 < e.score <= 1 for e in entities)


@pytest.mark.parametrize("text", ["", " ", "\n\r\n\t　\u2028", "\x1c"])
def test_nothing_to_read(ner, text):
    assert ner(text) == []
    assert ner.analyze(text).words == []


def test_offsets_are_those_of_the_users_own_string(ner):
    text = "😀\r\n" + "ＡＢ　" + "e\u0301" + "李明在北京\u202e。"
    entities = ner(text)
    assert entities
    assert all(text[e.start : e.end] == e.text for e in entities)
    assert ("李明", 8) in [(e.text, e.start) for e in entities]


def test_entity_text_is_the_users_not_the_normalised_one(own_ner):
    own_ner.lexicon.add("IBM公司")
    text = "李明是ＩＢＭ公司的经理"
    assert own_ner.analyze(text).words[0].text == "IBM公司"
    assert all(e.text == text[e.start : e.end] for e in own_ner(text))


@pytest.mark.parametrize("bad", [None, 3, b"\xe6", object(), {"text"}])
def test_what_is_not_text_is_refused(ner, bad):
    with pytest.raises(TypeError, match="expected a str or a list of str"):
        ner(bad)


@pytest.mark.parametrize("bad", [None, 3, 3.5, b"\xe6", object(), {"text"}, [None], ["李明", None], ("李明",)])
def test_every_method_says_what_it_was_given_instead_of_a_text(ner, bad):
    for method in (ner.analyze, ner.explain, lambda text: cige.build_lattice(text, ner.lexicon)):
        with pytest.raises(TypeError, match=f"^given {type(bad).__name__}; expected a str"):
            method(bad)
    for text, hint in ((b"", "so decode it first"), (["李明"], "give one text per call")):
        with pytest.raises(TypeError, match=hint):
            ner.analyze(text)
    with pytest.raises(TypeError, match=r"given bytes; .* so decode it first"):
        ner(b"")
    with pytest.raises(TypeError, match="given NoneType; expected an iterable of str"):
        ner.pipe(None)


@pytest.mark.parametrize("bad", ["5", -1, 2.5, None, True])
def test_a_number_of_words_that_is_none_is_refused(ner, bad):
    with pytest.raises(ValueError, match=r"n_words=.*expected a whole number, 0 or more"):
        ner.explain(SENTENCE, n_words=bad)
    assert ner.explain(SENTENCE, n_words=0, removals=False).entities
    assert ner.explain(SENTENCE, n_words=np.int64(1), removals=False).entities


def test_options_of_the_wrong_type_are_named(ner):
    with pytest.raises(TypeError, match=r"given request=\{'min_score': 0.5\}; expected a Request, such as Request.of"):
        ner.explain(SENTENCE, request={"min_score": 0.5})
    for find in (ner, lambda text, **options: list(ner.pipe([text], **options))):
        with pytest.raises(ValueError, match="given consistent='no'; expected True or False"):
            find(SENTENCE, consistent="no")


def test_the_text_that_is_none_is_named(ner):
    with pytest.raises(TypeError, match=r"text 2 is bytes; expected str, so decode it first"):
        ner(["李明", b"\xe6"])
    with pytest.raises(TypeError, match=r"text 2 is .*; expected str, so fill or drop missing values"):
        list(ner.pipe(pd.Series(["李明", None])))
    for texts in ("李明", pd.DataFrame({"text": ["李明"]}), {"text": "李明"}):  # a table and a dict have other items
        with pytest.raises(TypeError, match=r"given .*; expected an iterable of str"):
            ner.pipe(texts)
    for size in (0, -1, 2.0, True, "2", None):
        with pytest.raises(ValueError, match=f"batch_size={size!r}; expected a whole number, 1 or more"):
            ner.pipe([], batch_size=size)
    assert list(ner.pipe(["李明"], batch_size=np.int64(2))) == [ner("李明")]


def test_a_list_gives_a_list(ner):
    assert ner([]) == []
    assert [triples(e) for e in ner([SENTENCE, "", "张三"])] == [FOUND, [], [(0, 2, "PER")]]


@pytest.mark.parametrize("batch_size", [1, 2, 16])
def test_pipe_gives_what_single_calls_give_in_order(ner, batch_size):
    texts = [s.text * (1 + k % 3) + "\n" * (k % 4) for k, s in enumerate(tiny.sentences(40, seed=7))] + ["", "  "] * 3
    texts += [SENTENCE * 30]  # several windows
    for text, entities in zip(texts, ner.pipe(iter(texts), batch_size=batch_size), strict=True):
        assert same(entities, ner(text)), text


def test_pipe_with_batch_size_1_answers_before_it_reads_on(ner):
    asked = []

    def texts():
        for k in range(3):
            asked.append(k)
            yield SENTENCE

    answers = ner.pipe(texts(), batch_size=1)
    assert asked == []
    for k in range(3):
        next(answers)
        assert asked[-1] == k


def test_pipe_holds_a_bounded_number_of_texts(ner):
    n_read = 0

    def texts():
        nonlocal n_read
        while True:
            n_read += 1
            yield "" if n_read % 2 else "张三"

    answers = ner.pipe(texts(), batch_size=2)
    for n_answered in range(1, 400):
        next(answers)
        assert n_read - n_answered < 150


def test_long_texts_lose_nothing_at_the_seams(ner):
    text = SENTENCE * 40  # 1,000 characters without a line break
    assert len(text) > 3 * CORE
    expected = [(k * len(SENTENCE) + s, k * len(SENTENCE) + e, label) for k in range(40) for s, e, label in FOUND]
    assert triples(ner(text)) == expected


def test_lines_are_read_by_themselves(ner):
    lines = [s.text for s in tiny.sentences(12, seed=3)]
    text, offset, expected = "\n".join(lines), 0, []
    for line in lines:
        expected += [(offset + e.start, offset + e.end, e.label) for e in ner(line)]
        offset += len(line) + 1
    assert triples(ner(text)) == expected


def test_very_long_texts(ner):
    for text in ("哈" * 20_000, SENTENCE * 800):
        entities = ner(text)
        assert all(text[e.start : e.end] == e.text for e in entities[::97])
        assert all(a.end <= b.start for a, b in pairwise(entities))
    assert ner("\n" * 1_000_000) == []


def test_user_words_count_at_once_and_removed_ones_no_more(own_ner):
    text = "请轩辕澜沧江渊瀚海说话"
    assert not any(word.is_user for word in own_ner.analyze(text).words)
    before = own_ner(text)
    own_ner.lexicon.add("轩辕", "澜沧江", "渊瀚海")
    analysis = own_ner.analyze(text)
    assert [(w.start, w.end, w.text) for w in analysis.words if w.is_user] == [
        (1, 3, "轩辕"), (3, 6, "澜沧江"), (6, 9, "渊瀚海"),
    ]  # fmt: skip
    assert {(1, 3), (3, 6), (6, 9)} == {(e.start, e.end) for e in analysis.entities}
    own_ner.lexicon.remove("轩辕", "澜沧江", "渊瀚海")
    assert same(own_ner(text), before)


def test_a_thread_that_predicts_never_sees_half_an_update(own_ner):
    """Each call must find the words of one state: both added, or none."""
    text, stop, seen = "请轩辕澜沧江说话", threading.Event(), set()

    def change():
        while not stop.is_set():
            own_ner.lexicon.add("轩辕", "澜沧江")
            own_ner.lexicon.remove("轩辕", "澜沧江")

    thread = threading.Thread(target=change)
    thread.start()
    try:
        for _ in range(200):
            seen.add(tuple(w.text for w in own_ner.analyze(text).words if w.is_user))
    finally:
        stop.set()
        thread.join()
    assert seen <= {(), ("轩辕", "澜沧江")}


def test_pipe_reads_all_texts_with_the_lexicon_of_its_call(own_ner):
    text = "请轩辕澜沧江渊瀚海说话"
    before = own_ner(text)
    answers = own_ner.pipe([text] * 3, batch_size=1)
    own_ner.lexicon.add("轩辕", "澜沧江", "渊瀚海")
    assert all(same(answer, before) for answer in answers)


def test_threads_may_share_one_ner(ner):
    texts = [s.text for s in tiny.sentences(30, seed=11)]
    expected, found = [ner(t) for t in texts], {}

    def read(name):
        found[name] = list(ner.pipe(texts, batch_size=4))

    threads = [threading.Thread(target=read, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(same(a, b) for k in range(4) for a, b in zip(found[k], expected, strict=True))


def test_words_over_the_budget_are_told(own_ner):
    own_ner.lexicon.add(*("哈" * n for n in range(2, 40)))
    text = "哈" * 200
    analysis = own_ner.analyze(text)
    assert analysis.n_dropped > 1000
    with pytest.warns(WordBudgetWarning, match=f"{analysis.n_dropped:,} of the words"):
        own_ner(text)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        own_ner(SENTENCE)
        load()("-" * 3000)  # the bundled lexicon has runs of hyphens of many lengths


def test_a_label_that_differs_from_one_of_the_model_by_case_alone_is_told(own_ner, tmp_path):
    def is_told(label, known):
        return pytest.warns(WordListWarning, match=f"label {label}, which is .*; if {known} is meant, give")

    ways = (own_ner, own_ner.analyze, own_ner.explain, lambda text, words: list(own_ner.pipe([text], words=words)))
    for read in ways:
        with is_told("Per", "PER"):
            read(SENTENCE, words={"王小红": "Per"})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        own_ner(SENTENCE, words={"王小红": "PER", "罗氏公司": "Company", "北京": None})
    path = tmp_path / "words.txt"
    path.write_text("罗氏公司\torg\n", encoding="utf-8")
    own_ner.lexicon.add_file(path)
    with is_told("org", "ORG"):
        own_ner(SENTENCE)
    with is_told("ＯＲＧ", "ORG"):
        own_ner(SENTENCE, words={"王小红": "ＯＲＧ"})
    own_ner.lexicon.add("罗氏公司", label="org", mode="force")
    with is_told("org", "ORG"):  # and it stays what the user said
        assert (10, 14, "org") in triples(own_ner(SENTENCE, labels=["org"]))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("default")
        for _ in range(3):
            own_ner(SENTENCE)
    assert len(told) == 1


def test_labels_of_words_are_compared_with_the_models_once_per_change(own_ner):
    own_ner.lexicon.add({f"名字{k:05}号": f"TYPE{k}" for k in range(300)})
    own_ner(SENTENCE)
    before = selection._meant.cache_info().misses
    own_ner(SENTENCE), own_ner.analyze(SENTENCE), list(own_ner.pipe([SENTENCE, SENTENCE]))
    assert selection._meant.cache_info().misses == before
    own_ner.lexicon.add("王小红", label="ANOTHER")
    own_ner(SENTENCE)
    assert selection._meant.cache_info().misses == before + 1


def test_saved_and_loaded(own_ner, tmp_path):
    own_ner.lexicon.add("轩辕")
    own_ner.save_pretrained(tmp_path / "model")
    again = load(tmp_path / "model", precision="float32")
    assert same(again(SENTENCE), own_ner(SENTENCE))
    assert again.labels == ["LOC", "ORG", "PER"]
    assert again.lexicon.user_words == ("轩辕",)
    assert same(cige.load(str(tmp_path / "model"), precision="float32")(SENTENCE), own_ner(SENTENCE))
    # The folder of a run, whose model is in model/.
    assert same(load(tmp_path, precision="float32")(SENTENCE), own_ner(SENTENCE))


@pytest.mark.parametrize("gap", ["\t", "  ", " \t ", "\u3000\u3000", "        ", "\n"])
def test_columns_of_a_table_are_read_apart(ner, gap):
    cells = ["李明", "北京", "罗氏公司", "王小红", "南京市"]
    text = gap.join(cells)
    assert [e.text for e in ner(text)] == cells
    assert all(text[e.start : e.end] == e.text for e in ner(text))


def test_words_of_one_call_count_for_it_alone(ner):
    text = "请赵小明到上海南京说话"
    before = ner.analyze(text)
    assert not any(word.is_user for word in before.words)
    with_words = ner.analyze(text, words={"海南京": "LOC"})
    assert [(w.start, w.text, w.label) for w in with_words.words if w.is_user] == [(6, "海南京", "LOC")]
    forced = UserWord("说话", "VERB", "force")
    found = ner(text, words=[forced])
    assert (found[-1].text, found[-1].label, found[-1].forced) == ("说话", "VERB", True)
    assert ner([text, text], words=[forced], labels=["VERB"]) == [[found[-1]]] * 2, "its label may be named"
    assert list(ner.pipe([text], words=[forced])) == [found]
    explained = ner.explain(text, words=[forced], removals=False)
    assert triples([x.entity for x in explained.entities]) == triples(found)
    assert ner.analyze(text) == before and ner.lexicon.user_words == ()


def test_words_of_a_call_need_a_lexicon():
    class Finder(EntityFinder):
        labels = ()
        label_facts = LabelFacts()

        def _stream(self, texts, batch_size, selection):
            return ([] for _ in texts)

    assert Finder()("南京") == [] and Finder()("南京", words=[]) == []
    with pytest.raises(ModelError, match="reads the words of its own vocabulary"):
        Finder()("南京", words=["南京"])


def test_a_copy_with_no_words_is_independent_too(own_ner):
    for words in ([], (), {}):
        copy = own_ner.with_words(words)
        copy.lexicon.add("海南京", label="COMPANY", mode="force")
        assert "海南京" in [e.text for e in copy("我在海南京市")] and copy is not own_ner
        own_ner.lexicon.add("南京市", mode="block")
        assert copy("他来自南京市。") != own_ner("他来自南京市。")
        own_ner.lexicon.remove("南京市")
        assert "海南京" not in [e.text for e in own_ner("我在海南京市")]


@pytest.mark.skipif(sys.version_info < (3, 11), reason="typing.get_overloads is new in Python 3.11")
def test_to_a_type_checker_the_models_of_the_package_are_ner() -> None:
    """`load().lexicon`, as in the documentation, was an error to mypy: some finders have no lexicon."""
    of_package, of_folder = typing.get_overloads(cige.load)
    parameters = list(inspect.signature(cige.load).parameters)
    assert list(inspect.signature(of_package).parameters) == list(inspect.signature(of_folder).parameters) == parameters
    assert (of_package.__annotations__["return"], of_folder.__annotations__["return"]) == ("NER", "EntityFinder")
