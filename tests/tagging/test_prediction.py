"""From emissions to scored spans: which sentences are asked how probable their entities are, and what scores are."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise, product
from types import SimpleNamespace

import numpy as np
import pytest
import tiny
import torch

from cige.data.sentence import Span
from cige.data.tags import allowed_transitions, tag_set, tags_to_spans
from cige.entities.label_facts import LabelFacts
from cige.lattice.lattice import Lattice
from cige.lexicon.rules import ForcedSpan, Rules
from cige.nn.crf_numpy import NumpyCRF
from cige.tagging.prediction import decode_spans, predict_spans


class NotingCRF(NumpyCRF):
    """Notes of how many sentences the marginals are asked."""

    def __init__(self, **scores: np.ndarray):
        super().__init__(**scores)
        self.asked: list[list[int]] = []

    def marginals(self, emissions, n_chars):
        self.asked.append(list(n_chars))
        return super().marginals(emissions, n_chars)


def model(scheme: str) -> SimpleNamespace:
    """Tags of one label; every legal sequence is as likely as the emissions say."""
    tags = tag_set(["X"], scheme)
    start, between, end = (np.where(allowed, 0.0, -np.inf) for allowed in allowed_transitions(tags))
    crf = NotingCRF(start=start, transitions=between, end=end)
    facts = LabelFacts()
    return SimpleNamespace(
        tags=tags, labels=["X"], scheme=scheme, crf=crf, label_facts=facts, find_spans=lambda *_: None
    )


def lattices(*lengths: int) -> list[Lattice]:
    return [Lattice(text="字" * n, words=np.zeros((0, 3), np.int32), n_base=0) for n in lengths]


def emissions_of(made: SimpleNamespace, *paths: list[str]) -> np.ndarray:
    """float32[B, T, L] in which each path is by far the best."""
    out = np.zeros((len(paths), max(1, *map(len, paths)), len(made.tags)), np.float32)
    for row, path in enumerate(paths):
        for t, tag in enumerate(path):
            out[row, t, made.tags.index(tag)] = 9
    return out


@pytest.mark.parametrize(
    ("paths", "asked"),
    [
        ([["O", "O"], ["O"]], []),
        ([["O", "O"], ["B-X", "E-X", "O"], []], [[3]]),
        ([["B-X", "E-X"], ["O"], ["S-X"]], [[2, 1]]),
    ],
)
def test_only_sentences_with_an_entity_are_asked_for_its_probability(paths, asked):
    made = model("BMES")
    found = decode_spans(made, emissions_of(made, *paths), lattices(*map(len, paths)))
    assert [[(s.start, s.end) for s in spans] for spans in found] == [
        [(s.start, s.end) for s in tags_to_spans(path, "BMES")] for path in paths
    ]
    assert made.crf.asked == asked
    assert all(0.9 < span.score <= 1 for spans in found for span in spans)


@pytest.mark.parametrize("scheme", ["BIO", "BMES"])
def test_a_score_is_the_share_of_the_readings_with_just_this_entity(scheme):
    """In BIO the tags of an entity may be the beginning of a longer one's; at the end of a text they cannot."""
    made = model(scheme)
    rng = np.random.default_rng(0)
    for n in (1, 2, 3, 4) * 3:
        emissions = rng.normal(size=(1, n, len(made.tags))).astype(np.float32)
        weights, holding = 0.0, {}
        for path in product(range(len(made.tags)), repeat=n):
            score = (
                made.crf.start[path[0]] + made.crf.end[path[-1]] + sum(emissions[0, t, k] for t, k in enumerate(path))
            )
            score += sum(made.crf.transitions[a, b] for a, b in pairwise(path))
            weights += np.exp(score)
            for span in tags_to_spans([made.tags[k] for k in path], scheme):
                holding[span.start, span.end] = holding.get((span.start, span.end), 0.0) + np.exp(score)
        (spans,) = decode_spans(made, emissions, lattices(n))
        for span in spans:
            assert span.score == pytest.approx(holding[span.start, span.end] / weights, abs=1e-6)


def test_lattices_of_like_size_are_read_together_and_answers_keep_their_order():
    made = model("BMES")
    batches = []

    def emissions(batch: list[Lattice]) -> np.ndarray:
        batches.append([lattice.n_chars for lattice in batch])
        return emissions_of(made, *(["S-X"] + ["O"] * (lattice.n_chars - 1) for lattice in batch))

    made.emissions = emissions
    found = predict_spans(made, lattices(9, 1, 8, 2, 30), batch_size=2)
    assert batches == [[1, 2], [8, 9], [30]]
    assert [[(s.start, s.end) for s in spans] for spans in found] == [[(0, 1)]] * 5
    batches.clear()
    predict_spans(made, lattices(9, 1, 8, 2, 30), batch_size=5, max_pairs=200)
    assert batches == [[1, 2, 8], [9], [30]]  # 3 * 8 * 8 pairs are within it, 4 * 9 * 9 are not; 30 * 30 are one text
    assert predict_spans(made, []) == []


@pytest.mark.parametrize("scheme", ["BMES", "BIO", "BIOES"])
def test_a_score_is_the_share_of_all_readings_that_hold_the_entity(scheme):
    model = tiny.model(scheme=scheme)  # untrained, so that no reading is certain
    lattices = model.lattices(["北京李明"])
    emissions = model.emissions(lattices) * 3
    found = decode_spans(model, emissions, lattices)[0]
    assert found

    tags, crf = model.tagger.tags, model.tagger.crf
    paths = torch.tensor(list(product(range(len(tags)), repeat=4)))
    scores = crf.score(torch.tensor(emissions).expand(len(paths), -1, -1), paths, torch.full((len(paths),), 4))
    probabilities = torch.softmax(scores.double(), 0)
    expected = Counter()
    for path, probability in zip(paths.tolist(), probabilities.tolist(), strict=True):
        if probability > 1e-9:
            for span in tags_to_spans([tags[k] for k in path], scheme):
                expected[span] += probability
    for s in found:
        assert s.score == pytest.approx(expected[Span(s.start, s.end, s.label)], abs=1e-4)


def test_prediction_batches_change_nothing(ner):
    lattices = ner.model.lattices([s.text for s in tiny.sentences(20, seed=2)])
    together = predict_spans(ner.model, lattices, batch_size=20)
    apart = predict_spans(ner.model, lattices, batch_size=20, max_pairs=1)
    assert [[(s.start, s.end) for s in x] for x in together] == [[(s.start, s.end) for s in x] for x in apart]


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        (Rules(), [(3, 11)]),
        (Rules(forced=(ForcedSpan(0, 2, "X"),)), [(0, 2), (3, 11)]),
        (Rules(forced=(ForcedSpan(10, 13, "X"),)), [(3, 10), (10, 13)]),
        (Rules(blocked=((0, 2),)), [(3, 11)]),
        (Rules(typed=(ForcedSpan(3, 11, "Y"),)), [(3, 11)]),
    ],
)
def test_an_entity_gets_the_bracket_that_it_lacks_beside_a_users_rules_too(rules, expected):
    text, of_model = "甲方在红杉（有限伙伴）签名", model("BMES")
    emissions = emissions_of(of_model, [*"OOO", "B-X", *["M-X"] * 5, "E-X", *"OOO"])
    lattice = Lattice(text, np.empty((0, 3), np.int32), 0, rules=rules)
    (found,) = decode_spans(of_model, emissions, [lattice])
    assert [(span.start, span.end) for span in found] == expected
