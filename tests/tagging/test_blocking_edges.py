"""What reaches beyond a blocked word is found only where the model finds such an entity without the rule."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import cige
from cige.data.sentence import Span
from cige.data.tags import allowed_transitions, tag_set
from cige.entities.label_facts import LabelFacts
from cige.lattice.lattice import Lattice
from cige.lexicon.rules import Rules
from cige.nn.crf_numpy import NumpyCRF
from cige.tagging.blocking import edges_to_cut
from cige.tagging.prediction import decode_spans


def lattice(text: str, *blocked: tuple[int, int]) -> Lattice:
    return Lattice(text=text, words=np.zeros((0, 3), np.int32), n_base=0, rules=Rules(blocked=tuple(sorted(blocked))))


def within(start: int, end: int) -> list[tuple[int, int]]:
    """The blocked spans of a word in mode "block"."""
    return [(a, b) for a in range(start, end) for b in range(a + 1, end + 1)]


@pytest.mark.parametrize(
    ("found", "cut"),
    [
        ([], [1, 4]),
        ([(1, 4)], [1, 4]),  # the blocked word itself
        ([(2, 4), (4, 6), (0, 1)], [1, 4]),  # within it and beside it
        ([(0, 4)], []),
        ([(1, 5)], []),
        ([(0, 2)], []),
        ([(3, 6)], []),
    ],
)
def test_edges_stay_open_where_the_model_finds_something_that_reaches_beyond(found, cut):
    assert edges_to_cut(lattice("甲乙丙丁戊己", (1, 4)), [Span(a, b, "X") for a, b in found]) == cut


def test_a_blocked_entity_does_not_keep_edges_open():
    found = [Span(0, 5, "X")]
    assert edges_to_cut(lattice("甲乙丙丁戊己", (1, 4), (0, 5)), found) == [1, 4, 5]
    assert edges_to_cut(lattice("甲乙丙丁戊己", *within(0, 5)), found) == [1, 2, 3, 4, 5]
    assert edges_to_cut(lattice("甲乙丙丁戊己", (1, 4), (5, 6)), found) == [5]


def test_marks_at_the_edges_of_an_entity_do_not_count():
    assert edges_to_cut(lattice("《乙丙，丁", (1, 3)), [Span(0, 4, "X")]) == [1, 3]
    assert edges_to_cut(lattice("《乙丙》丁", (1, 3)), [Span(0, 4, "X")]) == []
    assert edges_to_cut(lattice("，乙丙", (1, 3)), [Span(0, 1, "X")]) == [1]


def test_only_places_between_characters_are_cut():
    assert edges_to_cut(lattice("甲乙", (0, 2)), []) == []
    assert edges_to_cut(lattice("甲"), []) == []


@pytest.mark.parametrize("scheme", ["BMES", "BIOES", "BIO"])
@pytest.mark.parametrize("inside", [False, True])
def test_neighbouring_characters_do_not_take_the_place_of_a_blocked_word(scheme, inside):
    tags = tag_set(["X"], scheme)
    start, between, end = (np.where(allowed, 0.0, -np.inf) for allowed in allowed_transitions(tags))
    crf = NumpyCRF(start=start, transitions=between, end=end)
    model = SimpleNamespace(tags=tags, labels=["X"], scheme=scheme, crf=crf, label_facts=LabelFacts())
    emissions = np.zeros((1, 6, len(tags)))
    middle = "M" if scheme == "BMES" else "I"
    for t, tag in enumerate(["O", "B-X", f"{middle}-X", "I-X" if scheme == "BIO" else "E-X", "O", "O"]):
        emissions[0, t, tags.index(tag)] = 9
    text, blocked = "在南京桥上走", [(1, 4)] if inside else within(1, 4)

    def found(own):
        return [(s.start, s.end) for s in decode_spans(model, emissions, [lattice(text, *own)])[0]]

    assert found([]) == [(1, 4)]
    assert all(start >= 1 and end <= 4 for start, end in found(blocked))
    if not inside:
        assert found(blocked) == []
    # A longer entity that the model finds stays, and so does what the rule leaves of the sentence.
    assert found(within(1, 3)) == found([(2, 4)]) == [(1, 4)]
    assert np.isfinite(emissions).all()


def test_a_blocked_bridge_and_a_blocked_city():
    ner = cige.load()
    for text in ("我们在南京市长江大桥上散步。", "南京市长江大桥建成于1968年。", "昨天我走过南京市长江大桥。"):
        start = text.index("南京市长江大桥")
        assert (start, start + 7) in {(e.start, e.end) for e in ner(text)}
        block = [cige.UserWord("南京市长江大桥", mode="block")]
        for entities in (ner(text, words=block), ner(text, words=block, recall=0.9)):
            assert not [e for e in entities if e.start < start + 7 and e.end > start]
        (others,) = ner([text], words=[cige.UserWord("南京市长江大桥", mode="block_exact")])
        assert [e.text for e in others if e.start < start + 7 and e.end > start] == ["南京市", "长江大桥"]
    blocked = ner("他在天津大学读书，住在天津。", words=[cige.UserWord("天津", mode="block")])
    assert [e.text for e in blocked] == ["天津大学"]
