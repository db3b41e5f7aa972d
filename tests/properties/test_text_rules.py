"""What holds for the entities of any text, whatever the model makes of it."""

from __future__ import annotations

import unicodedata
import zlib
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cige.api import NER
from cige.data.sentence import Span
from cige.data.tags import allowed_transitions, spans_to_tags, tag_set
from cige.entities.label_facts import LabelFacts
from cige.lattice.lattice import Lattice
from cige.lexicon.lexicon import Lexicon
from cige.nn.crf_numpy import NumpyCRF
from cige.tagging.edges import splits_word, trimmed
from cige.tagging.prediction import decode_spans
from cige.text.closed import closed_stretches, within

TAGS = tag_set(["LOC", "PER"])
START, BETWEEN, END = (np.where(allowed, 0.0, -np.inf) for allowed in allowed_transitions(TAGS))


class RandomModel:
    """Finds entities nearly everywhere, by chance; the same ones each time in the same lattice."""

    lexicon = Lexicon.from_words(["北京", "张三"])
    labels = ("LOC", "PER")
    tags = TAGS
    scheme = "BMES"
    crf = NumpyCRF(start=START, transitions=BETWEEN, end=END)
    label_facts = LabelFacts(max_lengths={"PER": 4})
    is_compiled = False

    def find_spans(self, *_):
        return None

    def emissions(self, lattices):
        made = np.zeros((len(lattices), max(1, *(x.n_chars for x in lattices)), len(TAGS)), np.float32)
        for row, lattice in enumerate(lattices):
            rng = np.random.default_rng(zlib.crc32(lattice.text.encode()))
            made[row, : lattice.n_chars] = 3 * rng.normal(size=(lattice.n_chars, len(TAGS)))
        made[:, :, 0] -= 2
        return made


NER_OF_CHANCE = NER(RandomModel())
PIECES = st.sampled_from(
    ["张三", "北京", "《", "》", "“", "”", "，", "。", " ", "  ", "\t", "\n", "\u3000", "@", "😀", "http://t.cn/a1",
     "a@b.cn", "`x y`", "Bank of China", "的", "1", "\ufffd", "\u200b", "*", "."]
)  # fmt: skip
TEXTS = st.lists(PIECES, max_size=25).map("".join)


@given(TEXTS)
def test_no_entity_breaks_a_rule(text):
    entities = NER_OF_CHANCE(text)
    closed = closed_stretches(text)
    for e in entities:
        assert text[e.start : e.end] == e.text and e.text
        assert not within(closed, e.start, e.end)
        assert unicodedata.category(e.text[0])[0] not in "Z" and unicodedata.category(e.text[-1])[0] not in "Z"
        assert trimmed(text, e.start, e.end) == (e.start, e.end)
        assert e.label != "PER" or len(e.text) <= 4
        assert not any(c in e.text for c in ["\t", "\n", "  ", "😀", "@张", "@北", "http", "`"])
        assert 0 <= e.score <= 1
    assert all(a.end <= b.start for a, b in pairwise(entities))
    assert NER_OF_CHANCE.analyze(text).entities == entities


@given(TEXTS, st.data())
def test_no_legal_entity_is_lost(text, data):
    """Entities that break no rule are found as they are when the model is sure of them."""
    closed, spans, start = closed_stretches(text), [], 0
    while start < len(text):
        end = data.draw(st.integers(start + 1, min(len(text), start + 12)))
        is_cut = splits_word(text, start) or splits_word(text, end)  # such an entity is completed
        if trimmed(text, start, end) == (start, end) and not within(closed, start, end) and not is_cut:
            spans.append(Span(start, end, data.draw(st.sampled_from(["LOC"] if end - start > 4 else ["LOC", "PER"]))))
        start = end
    emissions = np.zeros((1, max(1, len(text)), len(TAGS)))
    for place, tag in enumerate(spans_to_tags(len(text), spans)):
        emissions[0, place, TAGS.index(tag)] = 30
    lattice = Lattice(text, np.zeros((0, 3), np.int32), 0, closed=tuple(closed))
    (found,) = decode_spans(RandomModel(), emissions, [lattice])
    assert [Span(s.start, s.end, s.label) for s in found] == spans
