"""Forced, blocked and typed stretches, and types of user words, in C: the same spans and scores as decode_spans has."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cige.data.tags import allowed_transitions, tag_set
from cige.entities.label_facts import LabelFacts
from cige.lattice.lattice import Lattice
from cige.lexicon.rules import ForcedSpan, Rules
from cige.nn.crf_numpy import NumpyCRF
from cige.runtime import native
from cige.runtime.native_crf import NativeCRF
from cige.runtime.native_model import NativeModel
from cige.runtime.native_rules import MOST_SLOTS
from cige.tagging.prediction import decode_spans, predict_spans
from cige.tagging.selection import Selection

LEVELS = native.levels()
pytestmark = pytest.mark.skipif(not LEVELS, reason="nothing was compiled")
KNOWN = ["A", "B", "C"]
ALL = [*KNOWN, "OTHER"]  # OTHER is a type that only user words have


class Drawn:
    """A model of random scores, whose emissions depend on the place in the batch alone; `level` None has no C."""

    find_spans = NativeModel.find_spans
    _with_blocked_edges = NativeModel._with_blocked_edges
    labels = KNOWN

    def __init__(self, seed: int, scheme: str, *, height: float, level: str | None, limits: Mapping[str, int]):
        rng = np.random.default_rng(seed)
        self.scheme, self.tags = scheme, tag_set([*KNOWN, "*"], scheme)
        start, between, end = (
            np.where(allowed, rng.normal(size=allowed.shape), -np.inf) for allowed in allowed_transitions(self.tags)
        )
        self.crf = NumpyCRF(start=start, transitions=between, end=end)
        self.label_facts = LabelFacts(max_lengths=dict(limits))
        self.network = None
        self.chain = None
        self._seed, self._height = seed, height
        if level is not None:
            scores = {"start": start, "transitions": between, "end": end}
            self.chain = NativeCRF(
                **scores, tags=self.tags, scheme=scheme, max_lengths=limits, library=native.load(level)
            )

    def rows(self, lattices: Sequence[Lattice]) -> SimpleNamespace:
        return SimpleNamespace(lattices=lattices, n_chars=np.array([x.n_chars for x in lattices], np.int32))

    def _ragged_emissions(self, batch: SimpleNamespace) -> np.ndarray:
        return np.concatenate([self._of_text(lattice.text) for lattice in batch.lattices])

    def emissions(self, lattices: Sequence[Lattice]) -> np.ndarray:
        longest = max(lattice.n_chars for lattice in lattices)
        return np.stack([np.pad(self._of_text(x.text), ((0, longest - x.n_chars), (0, 0))) for x in lattices])

    def _of_text(self, text: str) -> np.ndarray:
        rng = np.random.default_rng([self._seed, len(text), *map(ord, text)])
        return (self._height * rng.normal(size=(len(text), len(self.tags)))).astype(np.float32)


def lattice(rng: random.Random) -> Lattice:
    """Text with words of user labels, closed stretches, and rules of every kind that can hold together.

    Hypothesis chooses the seed of `rng` alone: to draw each number itself took it longer than what is tested.
    """
    n = rng.randint(1, 14)

    def stretch() -> tuple[int, int]:
        start = rng.randrange(n)
        return start, min(n, start + rng.randint(1, 6))

    def some(most: int, make: Callable[[], tuple[int, int]]) -> list[tuple[int, int]]:
        return [make() for _ in range(rng.randint(0, most))]

    words = sorted((stretch(), rng.randint(0, 9)) for _ in range(rng.randint(0, 3)))
    labels = tuple(rng.choice([None, "A", "OTHER"]) for _ in range(10)) if rng.random() < 0.5 else ()
    forced: list[ForcedSpan] = []
    for start, length in sorted(some(2, lambda: (rng.randint(-2, n), rng.randint(1, 4)))):
        if start + length > 0 and start < n and (not forced or start >= forced[-1].end):
            forced.append(ForcedSpan(start, start + length, rng.choice(ALL)))
    free = [
        (a, b)
        for a in range(n)
        for b in range(a + 1, min(n, a + 6) + 1)
        if all(b <= f.start or a >= f.end for f in forced)
    ]

    def some_free(most: int) -> list[tuple[int, int]]:
        return some(most, lambda: rng.choice(free)) if free else []

    blocked = set(some_free(6))
    for start, end in some_free(1):  # nothing inside it is an entity
        blocked |= {(a, b) for a in range(start, end) for b in range(a + 1, end + 1)}
    typed = sorted(set(some_free(2)))
    cuts = sorted({rng.randint(0, n) for _ in range(2)})
    return Lattice(
        text="".join(rng.choices("天地玄黄，。《》", k=n)),
        words=np.array([(a, b, 5 + k) for (a, b), k in words], np.int32).reshape(-1, 3),
        n_base=5,
        closed=(tuple(cuts),) if len(cuts) == 2 and rng.random() < 0.5 else (),  # type: ignore[arg-type]
        user_labels=labels,
        rules=Rules(
            tuple(forced),
            tuple(sorted(blocked)),
            tuple(ForcedSpan(a, b, rng.choice(ALL)) for a, b in typed),
        ),
    )


SELECTIONS = [
    None,
    Selection({"A": "AB", "B": "AB", "C": "C"}, min_score=0.2),
    Selection({"A": "A"}, named=frozenset({"A"})),
    Selection({"A": "A", "B": "B"}, named=frozenset({"A", "B", "OTHER"})),
    Selection({"A": "AB", "B": "AB", "C": "C"}, thresholds={"AB": 0.05, "C": 0.3}),
]


@settings(max_examples=300, deadline=None)
@given(
    n_lattices=st.integers(1, 4),
    seed=st.integers(0, 10**6),
    scheme=st.sampled_from(["BMES", "BIOES", "BIO"]),
    height=st.sampled_from([0.5, 3.0, 20.0, 2000.0]),
    limits=st.sampled_from([{}, {"A": 1, "B": 2}, {"A": 3, "*": 2}]),
    chosen=st.sampled_from(SELECTIONS),
)
def test_spans_and_scores_are_those_of_decode_spans(n_lattices, seed, scheme, height, limits, chosen):
    rng = random.Random(seed)
    batch = [lattice(rng) for _ in range(n_lattices)]
    python = Drawn(seed, scheme, height=height, level=None, limits=limits)
    expected = predict_spans(python, batch, chosen, batch_size=len(batch))
    for level in LEVELS:
        compiled = Drawn(seed, scheme, height=height, level=level, limits=limits)
        found = predict_spans(compiled, batch, chosen, batch_size=len(batch))
        for own, theirs, of_text in zip(found, expected, batch, strict=True):
            # Probabilities that are rounded to either side of a threshold may be on either side of it.
            edge = [0.05, 0.3, 0.2, 0.5]
            unsure = {(s.start, s.end) for s in [*own, *theirs] if any(abs(s.score - x) < 1e-6 for x in edge)}
            shown = [[s._replace(score=0) for s in spans if (s.start, s.end) not in unsure] for spans in (own, theirs)]
            assert shown[0] == shown[1], of_text
            if not unsure:
                np.testing.assert_allclose([s.score for s in own], [s.score for s in theirs], rtol=0, atol=1e-6)


def drawn(level: str | None = None) -> Drawn:
    return Drawn(1, "BMES", height=2.0, level=level or LEVELS[-1], limits={})


def plain(n_chars: int = 20, **changes: object) -> Lattice:
    text = "天地玄黄宇宙洪荒日月盈昃辰宿列张寒来暑往秋收冬藏"[:n_chars]
    return replace(Lattice(text=text, words=np.zeros((0, 3), np.int32), n_base=0), **changes)  # type: ignore[arg-type]


def test_rules_of_every_kind_are_read_in_c():
    unknown = {"words": np.array([(0, 2, 0)], np.int32), "user_labels": ("OTHER",)}
    kinds = [
        plain(rules=Rules(forced=(ForcedSpan(1, 3, "A"), ForcedSpan(4, 6, "OTHER")))),
        plain(rules=Rules(blocked=((1, 2), (1, 4), (2, 5)))),
        plain(rules=Rules(typed=(ForcedSpan(1, 3, "A"), ForcedSpan(7, 9, "OTHER")))),
        plain(**unknown),
        plain(rules=Rules((ForcedSpan(5, 7, "OTHER"),), ((1, 3),), (ForcedSpan(8, 9, "B"),)), **unknown),
    ]
    found = drawn().find_spans(kinds)
    assert found is not None and None not in found
    assert [len(spans.typed) for spans in found] == [0, 0, 2, 0, 1]
    for kind in kinds:
        assert drawn().find_spans([kind]) != [None]


@pytest.mark.parametrize(
    ("left", "is_left"),
    [
        (plain(rules=Rules(blocked=tuple((k, 19) for k in range(MOST_SLOTS)))), False),
        # as many sets of copies as there are different open ends
        (plain(rules=Rules(blocked=tuple(sorted((k, 19 - k) for k in range(MOST_SLOTS))))), False),
        (plain(rules=Rules(blocked=tuple(sorted((k, 19 - k) for k in range(MOST_SLOTS + 1))))), True),
        (plain(rules=Rules((ForcedSpan(1, 2, "OTHER"),)), closed=((1, 4),)), True),
        (plain(rules=Rules((ForcedSpan(1, 2, "A"),)), closed=((1, 4),)), False),
    ],
)
def test_what_is_left_to_python_is_found_all_the_same(left, is_left):
    others = [plain(4), left, plain(rules=Rules((ForcedSpan(0, 2, "A"),)))]
    found = drawn().find_spans(others)
    assert [spans is None for spans in found] == [False, is_left, False]
    expected = decode_spans(drawn(), drawn().emissions(others), others)
    for own, theirs in zip(predict_spans(drawn(), others), expected, strict=True):
        assert [s._replace(score=0) for s in own] == [s._replace(score=0) for s in theirs]
        np.testing.assert_allclose([s.score for s in own], [s.score for s in theirs], rtol=0, atol=1e-6)


def test_all_above_thresholds_of_typed_words_and_unknown_types_are_left_to_python():
    typed, unknown = (
        plain(rules=Rules(typed=(ForcedSpan(1, 3, "A"),))),
        plain(words=np.array([(0, 2, 0)], np.int32), user_labels=("OTHER",)),
    )
    families, thresholds = {"A": ["A"]}, {"A": 0.1}
    found = drawn().find_spans([typed, unknown, plain()], families, thresholds)
    assert [spans is None for spans in found] == [True, True, False]
    assert drawn().find_spans([typed, unknown], families) != [None, None]


@pytest.mark.parametrize("scheme", ["BMES", "BIO"])
def test_a_sure_entity_that_is_blocked_gives_way(scheme):
    """Blocked with a probability of 1 - 1e-30: nothing subtracts probabilities."""
    model = Drawn(0, scheme, height=0.0, level=LEVELS[-1], limits={})
    tags = ["O", "B-A", "I-A", "O"] if scheme == "BIO" else ["O", "B-A", "E-A", "O"]
    rows = np.zeros((4, len(model.tags)), np.float32)
    for t, tag in enumerate(tags):
        rows[t, model.tags.index(tag)] = 70
    model._of_text = lambda text: rows  # type: ignore[method-assign]
    free, blocked = predict_spans(model, [plain(4), plain(4, rules=Rules(blocked=((1, 3),)))])
    assert [(s.start, s.end) for s in free] == [(1, 3)]
    assert (1, 3) not in [(s.start, s.end) for s in blocked]
    assert all(np.isfinite(s.score) and s.score > 0.1 for s in blocked)


def test_chains_are_made_once_for_each_number_of_copies():
    model = drawn()
    one = plain(rules=Rules(blocked=((1, 4),)))
    other = plain(rules=Rules(blocked=((5, 9), (6, 8))))
    assert model.chain is not None
    chain = model.chain.chain(n_slots=1)
    model.find_spans([one, other])
    assert model.chain.chain(n_slots=1) is chain and model.chain.chain(n_slots=2) is not chain
    assert chain.labels == model.chain.labels == KNOWN
    assert model.chain.chain(has_unknown=True).labels == [*KNOWN, "*"]


@pytest.mark.parametrize("level", LEVELS)
def test_many_sentences_with_and_without_rules_in_several_threads(level, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    rng = np.random.default_rng(0)
    batch = []
    for k, n in enumerate(rng.integers(1, 25, 300).tolist()):
        start = int(rng.integers(0, n))
        rules = (Rules(), Rules((ForcedSpan(start, start + 2, "A"),)), Rules(blocked=((start, min(n, start + 3)),)))
        batch.append(plain(n, rules=rules[k % 3]))
    assert list(accumulate(lattice.n_chars for lattice in batch))[-1] > 2048  # else one thread reads them
    model = drawn(level)
    found = predict_spans(model, batch, batch_size=len(batch))
    expected = decode_spans(model, model.emissions(batch), batch)
    for own, theirs in zip(found, expected, strict=True):
        assert [s._replace(score=0) for s in own] == [s._replace(score=0) for s in theirs]
        np.testing.assert_allclose([s.score for s in own], [s.score for s in theirs], rtol=0, atol=1e-6)
