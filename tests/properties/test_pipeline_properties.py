"""What holds for any string a user may pass."""

from functools import cache
from itertools import pairwise

import pytest
import tiny
from hypothesis import given, settings
from hypothesis import strategies as st

from cige.api import NER

# Any code point, lone surrogates too, and text that the model knows, so that entities are found in odd surroundings.
ODD = st.text(st.characters(exclude_categories=()), max_size=40)
KNOWN = st.sampled_from([s.text for s in tiny.sentences(20)])
ODDITIES = [
    "\x00",
    "\ud800",
    "\udfff\ud800",
    "\u202e",
    "\u200d",
    "😀",
    "👨\u200d👩\u200d👧",
    "e\u0301",
    "\r\n",
    "\ufeff",
]
TEXTS = st.lists(KNOWN | ODD | st.sampled_from([*ODDITIES, "李", "ＡＢＣ", "　", "\n"]), max_size=8).map("".join)


@cache
def ner() -> NER:
    made = NER(tiny.trained_model())
    made.lexicon.add("罗氏婴儿配方粉", "ABC", "😀😀")
    return made


@settings(deadline=None, max_examples=60)
@given(TEXTS)
def test_never_raises_and_offsets_are_the_users(text):
    entities = ner()(text)
    for e in entities:
        assert 0 <= e.start < e.end <= len(text)
        assert text[e.start : e.end] == e.text
        assert e.label in ner().labels
        assert 0 <= e.score <= 1
    assert all(a.end <= b.start for a, b in pairwise(entities))


@settings(deadline=None, max_examples=25)
@given(st.lists(TEXTS, max_size=6), st.integers(1, 5))
def test_pipe_equals_single_calls(texts, batch_size):
    answers = list(ner().pipe(texts, batch_size=batch_size))
    assert len(answers) == len(texts)
    for text, entities in zip(texts, answers, strict=True):
        alone = ner()(text)
        if [(e.start, e.end, e.label) for e in entities] != [(e.start, e.end, e.label) for e in alone]:
            assert min(e.score for e in [*entities, *alone]) < 0.7  # rounding may tip a reading that is nearly a tie
        else:
            assert [e.score for e in entities] == pytest.approx([e.score for e in alone], abs=1e-3)


@settings(deadline=None, max_examples=12)
@given(TEXTS)
def test_explanations_of_any_text_can_be_shown(text):
    explanation = ner().explain(text)
    found = ner()(text)
    assert [(x.entity.start, x.entity.end, x.entity.label) for x in explanation.entities] == [
        (e.start, e.end, e.label) for e in found
    ]
    # read in batches of other shapes, so the last digits differ
    assert [x.entity.score for x in explanation.entities] == pytest.approx([e.score for e in found], abs=1e-5)
    assert "<html" in explanation.to_html() and explanation.to_dict()["text"] == text
    explanation.to_html().encode("utf-8")
    explanation.to_terminal()
