"""What holds of a lexicon for any words and any text."""

import tempfile
from pathlib import Path

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cige.lexicon.lexicon import Lexicon
from cige.lexicon.word_rules import reason_to_refuse
from cige.text.normalize import INVISIBLE, normalize, without_invisible

# Few characters, so that words do occur: Chinese, Latin, full width, astral, an emoji sequence, a combining mark,
# line ends, a lone surrogate and the replacement character.
ALPHABET = "南京市A\uff21b12 é́\U00020bb7\U0001f469\u200d\U0001f680\r\n\ud83d\ufffd\x00"
texts = st.text(st.sampled_from(ALPHABET), max_size=40) | st.text(max_size=40)
words = st.lists(st.text(st.sampled_from(ALPHABET), min_size=1, max_size=4), max_size=25)


def cuts_a_run(text, edge):
    """Whether there are two Latin letters or two digits at an edge, one before it and one behind it."""
    around = text[max(0, edge - 1) : edge + 1]
    return len(around) == 2 and around.isascii() and (around.isalpha() or around.isdigit())


def as_matched(word):
    return without_invisible(normalize(word))


def usable(words):
    return (word for word in words if reason_to_refuse(as_matched(word), spaces=True) is None)


def naive_matches(text, ids):
    """The definition: every substring that is a word and cuts no run of letters or digits, by (start, end, id), where
    invisible characters do not count."""
    places = [place for place, char in enumerate(text) if char not in INVISIBLE]
    text = as_matched(text)
    found = [
        (places[start], places[end - 1] + 1, word_id)
        for start in range(len(text))
        for end in range(start + 2, len(text) + 1)
        for word_id in ids.get(text[start:end], ())
        if not cuts_a_run(text, start) and not cuts_a_run(text, end)
    ]
    return sorted(found)


def as_tuples(rows):
    assert rows.dtype == np.int32 and rows.ndim == 2 and rows.shape[1] == 3
    return list(map(tuple, rows.tolist()))


def ids_of(lexicon):
    hidden = set(lexicon.removed_words)
    ids = {word: [i] for i, word in enumerate(lexicon) if word not in hidden}
    for k, word in enumerate(lexicon.user_words):
        ids.setdefault(word, []).append(len(lexicon) + k)
    return ids


@given(words, texts)
@example(["AA", "A1", "12"], "AAA1 AA12 12 A1 AA")
def test_match_is_the_naive_definition(words, text):
    lexicon = Lexicon.from_words(words)
    assert as_tuples(lexicon.match(text)) == naive_matches(text, ids_of(lexicon))
    assert lexicon.report.n_taken + lexicon.report.n_refused == len(words)


@given(words, words, st.data(), texts)
def test_match_is_the_naive_definition_after_adding_and_removing(base, user, data, text):
    lexicon = Lexicon.from_words(base)
    lexicon.add(*usable(user))
    present = sorted({*lexicon, *lexicon.user_words})
    if present:
        gone = set(data.draw(st.lists(st.sampled_from(present), max_size=4)))
        added = set(lexicon.user_words)
        lexicon.remove(*gone)
        assert set(lexicon.user_words) == added - gone and set(lexicon.removed_words) == gone - added
    assert as_tuples(lexicon.match(text)) == naive_matches(text, ids_of(lexicon))
    for word in present:
        assert (word in lexicon) == (word in ids_of(lexicon))


@settings(max_examples=20)  # each one writes a folder to disk
@given(words, words, texts)
def test_a_saved_lexicon_matches_the_same(base, user, text):
    lexicon = Lexicon.from_words(base, counts=range(len(base)))
    lexicon.add(*usable(user))
    with tempfile.TemporaryDirectory() as folder:
        lexicon.save(Path(folder) / "lex")
        loaded = Lexicon.load(Path(folder) / "lex")
        assert as_tuples(loaded.match(text)) == as_tuples(lexicon.match(text))
        assert list(loaded) == list(lexicon) and loaded.user_words == lexicon.user_words
        assert [loaded.count(i) for i in range(len(loaded))] == [lexicon.count(i) for i in range(len(lexicon))]


LEXICON = Lexicon.from_words(["南京", "市长", "ab"])
LEXICON.add("iPhone 15 Pro", "\U0001f469\u200d\U0001f680")


@given(st.text())
def test_no_str_raises(text):
    rows = LEXICON.match(text)
    assert (rows[:, 1] - rows[:, 0] >= 2).all()
    if not INVISIBLE & {*text}:
        assert (text in LEXICON) == ([0, len(text)] in rows[:, :2].tolist())
