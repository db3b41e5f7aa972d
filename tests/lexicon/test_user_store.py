"""UserStore: the words of a user in packed layers, compared with an ordinary dict of words."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cige.errors import LexiconError
from cige.lexicon import user_store
from cige.lexicon.lexicon import Lexicon
from cige.lexicon.user_batch import triples, user_batch
from cige.lexicon.user_store import UserStore
from cige.lexicon.user_word import BLOCKING, EVIDENCE, UserWord

WORDS = ["甲乙", "乙丙", "甲乙丙", "丙丁", "丁甲", "乙丙丁", "丁丁"]
ENTRIES = [UserWord(word, label) for word in WORDS for label in (None, "X", "Y")]
ENTRIES += [UserWord(word, "X", mode) for word in [*WORDS[:3], "甲"] for mode in ("force", "type") if len(word) > 1]
ENTRIES += [UserWord(word, None, mode) for word in [*WORDS[:3], "乙"] for mode in BLOCKING]
ENTRIES += [UserWord("丙", "Y", "force")]
entries = st.lists(st.sampled_from(ENTRIES), max_size=4)
steps = st.lists(
    st.tuples(st.just("add"), entries)
    | st.tuples(st.just("overlay"), entries)
    | st.tuples(st.just("remove"), st.lists(st.sampled_from(WORDS), max_size=3)),
    max_size=12,
)


def batch(words):
    packed, problems = user_batch(triples(words))
    assert not problems
    return packed


def check(store, words, text):
    """Everything that a store says, against the dict of its words."""
    listed = list(words.values())
    assert list(store) == listed and len(store) == len(listed)
    assert list(store.texts()) == list(words)
    assert [store.word(k) for k in range(len(listed))] == listed
    assert [store.label(k) for k in range(len(listed))] == [word.label for word in listed]
    assert all((word in store) == (word in words) for word in [*WORDS, "甲", "乙", "丙", "没有"])
    assert dict(store.n_of_label) == {x: n for x in (None, "X", "Y") if (n := sum(w.label == x for w in listed))}
    assert dict(store.n_of_mode) == {m: sum(w.mode == m for w in listed) for m in {w.mode for w in listed}}
    assert store.has_rules == any(word.mode != EVIDENCE for word in listed)
    spans = [(a, b) for a in range(len(text)) for b in range(a + 1, len(text) + 1)]
    nodes = [(a, b, k) for a, b in spans for k, word in enumerate(listed) if word.text == text[a:b] and word.is_node]
    assert sorted(map(tuple, store.nodes(text).tolist())) == nodes
    rows, modes, labels = store.rule_words(text)
    found = sorted(zip(rows[:, :2].tolist(), modes, map(str, labels), strict=True))
    assert found == sorted(
        ([a, b], word.mode, str(word.label))
        for a, b in spans
        if (word := words.get(text[a:b])) is not None and word.mode != EVIDENCE
    )


@pytest.mark.parametrize("ratio", [1, 2, 16])
@settings(max_examples=150, deadline=None)
@given(steps=steps, text=st.text("甲乙丙丁", max_size=12))
def test_it_is_a_dict_of_words(ratio, steps, text):
    usual, most = user_store._RATIO, user_store._MOST_CHANGED
    user_store._RATIO, user_store._MOST_CHANGED = ratio, 2
    try:
        store, words, before = UserStore(), {}, []
        for step, given_words in steps:
            before.append((store, dict(words)))
            if step == "remove":
                store = store.without(set(given_words))
                words = {text: word for text, word in words.items() if text not in given_words}
            else:
                store = store.with_batch(batch(given_words), merges=step == "add")
                words |= {word.text: word for word in given_words}
        check(store, words, text)
        check(pickle.loads(pickle.dumps(store)), words, text)
        for earlier, as_it_was in before:  # a store never changes
            check(earlier, as_it_was, text)
    finally:
        user_store._RATIO, user_store._MOST_CHANGED = usual, most


def test_layers_stay_few_and_a_word_is_packed_again_only_a_few_times(monkeypatch):
    packed = []
    usual = user_store.UserLayer.build
    monkeypatch.setattr(user_store.UserLayer, "build", lambda *a: packed.append(len(a[0])) or usual(*a))
    store = UserStore().with_batch(batch([UserWord(f"词{k}号") for k in range(5000)]), merges=True)
    del packed[:]
    most = 0
    for k in range(600):
        store = store.with_batch(batch([UserWord(f"新{k}号")]), merges=True)
        most = max(most, len(store.layers))
    assert len(store.layers[0]) >= 5000 and most <= 4
    assert sum(packed) / 600 < 60, "words packed again for each word that is added"
    assert len(store) == 5600 and store.word(5599) == UserWord("新599号")


def test_words_of_a_call_pack_nothing_else(monkeypatch):
    lexicon = Lexicon.from_words(["甲乙"])
    lexicon.add(*(f"词{k}号" for k in range(300)), label="X")
    packed = []
    usual = user_store.UserLayer.build
    monkeypatch.setattr(user_store.UserLayer, "build", lambda *a: packed.append(len(a[0])) or usual(*a))
    own = lexicon.with_words({"词7号": "Y", "新的": None})
    assert max(packed) <= 2
    assert own.user_entries[7] == UserWord("词7号", "Y") and own.user_entries[300] == UserWord("新的")
    assert lexicon.user_entries[7] == UserWord("词7号", "X") and len(lexicon.user_entries) == 300
    assert own.user_label_names == {"X", "Y"} and lexicon.user_label_names == {"X"}


def test_when_many_words_are_removed_their_place_is_given_back():
    store = UserStore().with_batch(batch([UserWord(f"词{k}号", "X") for k in range(100)]), merges=True)
    some = store.without({f"词{k}号" for k in range(10)})
    assert len(some.removed) == 10 and some.word(0) == UserWord("词10号", "X")
    more = store.without({f"词{k}号" for k in range(0, 100, 2)})
    assert not len(more.removed) and len(more.layers[0]) == 50 and more.word(1) == UserWord("词3号", "X")
    none = store.without({f"词{k}号" for k in range(100)})
    assert none.layers == () and len(none) == 0 and none.nodes("词1号").shape == (0, 3)
    assert not none.n_of_label and not none.n_of_mode


def test_many_labels():
    words = [UserWord(f"词{k}号", f"L{k}") for k in range(300)]
    store = UserStore().with_batch(batch(words), merges=True)
    assert store.layers[0].labels.dtype == np.uint16 and list(store) == words


def test_sequences_of_a_lexicon_read_words_when_they_are_asked_for():
    lexicon = Lexicon.from_words(["甲乙"])
    words = [UserWord(f"词{k}号", "X" if k % 2 else None) for k in range(40)]
    lexicon.add_entries(*words)
    entries, texts, labels = lexicon.user_entries, lexicon.user_words, lexicon.snapshot().user_labels
    assert entries == tuple(words) and entries == words and entries != words[1:] and entries != "text"
    assert entries[-1] == words[-1] and entries[1:3] == tuple(words[1:3]) and list(reversed(entries)) == words[::-1]
    assert texts[0] == "词0号" and "词7号" in texts and "词77号" not in texts and 7 not in texts
    assert labels[1] == "X" and labels[2] is None and len(labels) == 40 and list(labels)[:2] == [None, "X"]
    one = (words[0],)
    assert entries + one == (*words, *one) and one + entries == (*one, *words)
    assert repr(texts).endswith("'词19号', ...40 in all)")
    lexicon.remove(*(word.text for word in words[3:]))
    assert repr(lexicon.user_words) == "('词0号', '词1号', '词2号')"
    for sequence in (entries, texts, labels):
        assert pickle.loads(pickle.dumps(sequence)) == sequence
    for wrong in (40, -41):
        with pytest.raises(IndexError, match=f"word {wrong} of 40"):
            entries[wrong]
    lexicon.remove("词1号")
    assert not lexicon.snapshot().user_labels and list(lexicon.snapshot().user_labels) == []
    assert lexicon.user_label_names == frozenset()


def test_batches_say_which_words_cannot_be_used():
    words = [("甲乙", "X", "force"), ("a\nb", None, EVIDENCE), ("ＡＢ", None, EVIDENCE), ("甲", None, "block")]
    packed, problems = user_batch([*words, ("丙丁", "*", EVIDENCE), ("丙丁", None, "force"), ("", None, EVIDENCE)])
    assert list(packed.words) == ["甲乙", "AB", "甲"] and packed.labels.tolist() == [1, 0, 0]
    assert packed.names == (None, "X") and packed.modes.tolist() == [1, 0, 2]
    assert [problem.partition(" (")[0] for problem in problems] == ["'a\\nb'", "'丙丁'", "'丙丁'", "''"]


@pytest.mark.parametrize(
    ("word", "message"),
    [
        (UserWord(5), "a word is int"),  # type: ignore[arg-type]
        (UserWord("甲乙", 5), "label is int"),  # type: ignore[arg-type]
        (UserWord("甲乙", ["PER"]), "label is list"),  # type: ignore[arg-type]
        (UserWord("甲乙", None, ["force"]), "mode is list"),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_string_is_named(word, message):
    with pytest.raises(LexiconError, match=message):
        user_batch(triples([UserWord("甲丙"), word]))
