"""The parts of the runtime by themselves, at every level that this processor has: products, the chain, look-ups."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cige.data.sentence import Span
from cige.data.tags import allowed_transitions, tag_set
from cige.data.vocabulary import CodeTable, Vocabulary
from cige.folders.mapped_arrays import arrays_in, map_file
from cige.lattice.lattice import Lattice, build_lattice
from cige.lexicon.lexicon import Lexicon
from cige.nn.crf_numpy import NumpyCRF
from cige.runtime import native
from cige.runtime.embedding_table import EmbeddingTable
from cige.runtime.native import address
from cige.runtime.native_crf import LabelFamilies, NativeCRF
from cige.runtime.packed_linear import PackedLinear, aligned
from cige.runtime.precision import BFLOAT16, FLOAT32, INT8, INT16, available, to_bfloat16, to_int8, to_int16
from cige.runtime.ragged import RowReader
from cige.tagging.best_spans import best_spans, close
from cige.tagging.candidates import candidate_spans, span_probability
from cige.tagging.selection import Selection

LEVELS = [level for level in native.levels() if native.load(level) is not None]
PLAIN, ADD, RELU = 0, 1, 2


def with_precision(precision: str) -> list[str]:
    return [level for level in LEVELS if precision in available(native.load(level))]


SHAPES = [(1, 1, 1), (5, 3, 7), (12, 256, 16), (13, 257, 33), (35, 160, 480), (7, 600, 40), (60, 1025, 33)]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("mode", [PLAIN, ADD, RELU])
def test_products(level, shape, mode):
    check_product(level, shape, mode, FLOAT32, lambda x: x, lambda weight: weight)


@pytest.mark.parametrize("level", with_precision(BFLOAT16))
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("mode", [PLAIN, ADD, RELU])
def test_products_in_bfloat16(level, shape, mode):
    check_product(level, shape, mode, BFLOAT16, rounded, rounded)


@pytest.mark.parametrize("level", with_precision(INT8))
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("mode", [PLAIN, ADD, RELU])
def test_products_in_int8(level, shape, mode):
    """Rows are rounded in parts of 512 numbers, each with a scale of its own."""

    def in_parts(x: np.ndarray) -> np.ndarray:
        return np.concatenate([widened(*to_int8(x[:, k : k + 512])) for k in range(0, x.shape[1], 512)], 1)

    check_product(level, shape, mode, INT8, in_parts, lambda weight: widened(*to_int8(weight)))


@pytest.mark.parametrize("level", with_precision(INT16))
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("mode", [PLAIN, ADD, RELU])
def test_products_in_int16(level, shape, mode):
    def in_parts(x: np.ndarray) -> np.ndarray:
        return np.concatenate([widened(*to_int16(x[:, k : k + 512])) for k in range(0, x.shape[1], 512)], 1)

    check_product(level, shape, mode, INT16, in_parts, lambda weight: widened(*to_int16(weight)))


@pytest.mark.parametrize(("level", "precision"), [(level, p) for p in (INT8, INT16) for level in with_precision(p)])
def test_no_sum_of_whole_numbers_overflows(level, precision):
    """All numbers are the highest of their rows, of either sign, in as many as are added without a pause."""
    library, n_in, n_out = native.load(level), 512, 48
    weight = np.ones((n_out, n_in), np.float32) * np.where(np.arange(n_out) % 2, 3, -3)[:, None].astype(np.float32)
    packed = PackedLinear(library, weight, None, precision=precision)
    x, y = aligned(5 * n_in), aligned(5 * packed.n_out)
    x.reshape(5, n_in)[:] = np.float32([2, -2, 2, -2, 2])[:, None]
    library.one_product(packed.struct, address(x), 5, address(y), PLAIN)
    expected = x.reshape(5, n_in).astype(np.float64) @ weight.T
    np.testing.assert_allclose(y.reshape(5, -1)[:, :n_out], expected, rtol=1e-6)


def check_product(level, shape, mode, precision, of_rows, of_weight):
    n_rows, n_in, n_out = shape
    rng, library = np.random.default_rng(sum(shape)), native.load(level)
    weight, bias = rng.normal(size=(n_out, n_in)).astype(np.float32), rng.normal(size=n_out).astype(np.float32)
    weight[0] = 0  # no scale is made of nothing
    packed = PackedLinear(library, weight, bias, precision=precision)
    x, y = aligned(n_rows * n_in), aligned(n_rows * packed.n_out)
    x[:], y[:] = rng.normal(size=x.shape), rng.normal(size=y.shape)
    rows = x.reshape(n_rows, n_in)
    rows[-1] = 0
    before, after = y.reshape(n_rows, -1)[:, :n_out].copy(), y.reshape(n_rows, -1)[:, :n_out]
    library.one_product(packed.struct, address(x), n_rows, address(y), mode)
    expected = of_rows(rows).astype(np.float64) @ of_weight(weight).T.astype(np.float64)
    expected = expected + before if mode == ADD else expected + bias
    np.testing.assert_allclose(after, np.maximum(expected, 0) if mode == RELU else expected, atol=2e-4)


def rounded(x: np.ndarray) -> np.ndarray:
    """Rounded to bfloat16 by PyTorch."""
    return torch.from_numpy(x).bfloat16().float().numpy()


def widened(whole: np.ndarray, scales: np.ndarray) -> np.ndarray:
    return whole * scales[:, None].astype(np.float64)


def test_rounding_to_bfloat16_is_that_of_pytorch():
    """Ties, both infinities, zeros of either sign and numbers that become infinite among them."""
    rng = np.random.default_rng(0)
    some = rng.integers(0, 2**32, 100_000, dtype=np.uint32).view(np.float32)
    ties = (rng.integers(0, 2**16, 1000, dtype=np.uint32) << 16 | 0x8000).view(np.float32)
    x = np.concatenate([some, ties, np.float32([0, -0.0, np.inf, -np.inf, np.finfo(np.float32).max])])
    x = x[~np.isnan(x)]
    np.testing.assert_array_equal(
        to_bfloat16(x), torch.from_numpy(x).bfloat16().view(torch.int16).numpy().view(np.uint16)
    )


def chains(rng: np.random.Generator, n_labels: int, scheme: str, *, constrained: bool) -> tuple[NumpyCRF, list[str]]:
    tags = tag_set([f"T{k}" for k in range(n_labels)], scheme)
    masks = allowed_transitions(tags) if constrained else [np.ones(n, bool) for n in (len(tags),) * 2]
    start, between, end = masks if constrained else (masks[0], np.ones((len(tags),) * 2, bool), masks[1])
    scores = [np.where(mask, rng.normal(size=mask.shape), -np.inf) for mask in (start, between, end)]
    return NumpyCRF(start=scores[0], transitions=scores[1], end=scores[2]), tags


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n_labels=st.sampled_from([1, 2, 3, 25]),
    scheme=st.sampled_from(["BMES", "BIOES", "BIO"]),
    constrained=st.booleans(),
    lengths=st.lists(st.integers(0, 30), min_size=1, max_size=5),
    height=st.sampled_from([0.1, 3.0, 60.0]),
    share_closed=st.sampled_from([0.0, 0.1, 0.5, 1.0]),
    limit=st.sampled_from([None, 1, 3]),
)
def test_the_chain_is_that_of_numpy(seed, n_labels, scheme, constrained, lengths, height, share_closed, limit):
    rng = np.random.default_rng(seed)
    crf, tags = chains(rng, n_labels, scheme, constrained=constrained)
    emissions = (height * rng.normal(size=(len(lengths), max(1, *lengths, 1), len(tags)))).astype(np.float32)
    rows = np.concatenate([emissions[b, :n] for b, n in enumerate(lengths)])
    n_chars = np.array(lengths, np.int32)
    limits = {} if limit is None else {f"T{k}": limit + k for k in range(0, n_labels, 2)}
    is_closed = rng.random(len(rows)) < share_closed
    lattices, first = [], 0
    for n in lengths:
        closed = tuple((k, k + 1) for k in np.flatnonzero(is_closed[first : first + n]).tolist())
        lattices.append(Lattice("一" * n, np.zeros((0, 3), np.int32), n_base=0, closed=closed))
        first += n
    shut = close(emissions, lattices, tags)
    expected = best_spans(crf, shut, lattices, tags=tags, scheme=scheme, max_lengths=limits)
    marginals = crf.marginals(shut, lengths)
    tag_ids = {tag: k for k, tag in enumerate(tags)}
    for level in LEVELS:
        scores = {"start": crf.start, "transitions": crf.transitions, "end": crf.end}
        chain = NativeCRF(**scores, tags=tags, scheme=scheme, max_lengths=limits, library=native.load(level))
        found, n_spans = chain.spans(rows, n_chars, is_closed if share_closed else None)
        assert n_spans.tolist() == [len(spans) for spans in expected]
        listed = iter(found.tolist())
        for b, spans in enumerate(expected):
            for span in spans:
                start, end, label, _, score = next(listed)
                assert (start, end, chain.labels[label]) == (span.start, span.end, span.label)
                probability = span_probability(marginals, b, span, lengths[b], tag_ids=tag_ids, scheme=scheme)
                assert score == pytest.approx(probability, abs=1e-9)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n_labels=st.integers(1, 4),
    scheme=st.sampled_from(["BMES", "BIOES", "BIO"]),
    constrained=st.booleans(),
    lengths=st.lists(st.integers(0, 12), min_size=1, max_size=4),
    height=st.sampled_from([0.1, 3.0, 60.0]),
    n_families=st.integers(1, 3),
    threshold=st.sampled_from([1e-6, 0.01, 0.4]),
    limit=st.sampled_from([None, 2]),
)
def test_labels_that_are_reported_as_one(
    seed, n_labels, scheme, constrained, lengths, height, n_families, threshold, limit
):
    """Scores of the best spans are sums over a family, and all spans above a threshold are found."""
    rng = np.random.default_rng(seed)
    crf, tags = chains(rng, n_labels, scheme, constrained=constrained)
    emissions = (height * rng.normal(size=(len(lengths), max(1, *lengths, 1), len(tags)))).astype(np.float32)
    rows = np.concatenate([emissions[b, :n] for b, n in enumerate(lengths)])
    n_chars = np.array(lengths, np.int32)
    limits = {} if limit is None else {"T0": limit}
    families: dict[str, list[str]] = {}
    for k in range(n_labels):
        if family := rng.integers(n_families + 1):  # else it is not reported
            families.setdefault(f"F{family}", []).append(f"T{k}")
    of_labels = Selection({label: name for name, own in families.items() for label in own}).max_lengths(limits)
    lattices = [Lattice("一" * n, np.zeros((0, 3), np.int32), n_base=0) for n in lengths]
    best = best_spans(crf, emissions, lattices, tags=tags, scheme=scheme, max_lengths=of_labels)
    marginals, tag_ids = crf.marginals(emissions, lengths), {tag: k for k, tag in enumerate(tags)}
    scores = {"start": crf.start, "transitions": crf.transitions, "end": crf.end}
    for level in LEVELS:
        chain = NativeCRF(**scores, tags=tags, scheme=scheme, max_lengths=limits, library=native.load(level))
        found, n_spans = chain.spans(rows, n_chars, None, LabelFamilies(families, None, chain.labels, chain.library))
        listed = [(s.start, s.end, chain.labels.index(s.label)) for spans in best for s in spans]
        assert found[["start", "end", "label"]].tolist() == listed
        of_sentence = np.repeat(np.arange(len(lengths)), n_spans)
        for b, (start, end, number, _, score) in zip(of_sentence.tolist(), found.tolist(), strict=True):
            label = chain.labels[number]
            own = next((labels for labels in families.values() if label in labels), [label])
            each = (
                span_probability(marginals, b, Span(start, end, x), lengths[b], tag_ids=tag_ids, scheme=scheme)
                for x in own
            )
            assert score == pytest.approx(min(1.0, sum(each)), abs=1e-9)
        thresholds = {name: threshold * (1 + k) for k, name in enumerate(families)}
        all_of = LabelFamilies(families, thresholds, chain.labels, chain.library)
        found, n_spans = chain.spans(rows, n_chars, None, all_of)
        listed = iter(found.tolist())
        for b, n in enumerate(n_spans.tolist()):
            got = {(s, e, all_of.names[k]): p for s, e, k, _, p in (next(listed) for _ in range(n))}
            expected = {
                (s, e, name): p
                for name, labels in families.items()
                for s, e, p in candidate_spans(
                    marginals,
                    b,
                    lengths[b],
                    labels,
                    threshold=thresholds[name] * (1 - 1e-7),
                    tags=tags,
                    scheme=scheme,
                    max_lengths=of_labels,
                )
            }
            assert len(got) == n and got.keys() <= expected.keys()
            assert all(p < thresholds[key[2]] * (1 + 1e-7) for key, p in expected.items() if key not in got)
            assert all(p == pytest.approx(expected[key], abs=1e-9) for key, p in got.items())


@pytest.mark.parametrize("level", LEVELS)
def test_a_chain_that_forbids_all_but_an_unlikely_way(level):
    """Scores e^-600 below the best are not lost."""
    tags = tag_set(["A"], "BMES")
    start, between, end = (np.where(mask, 0.0, -np.inf) for mask in allowed_transitions(tags))
    emissions = np.zeros((2, len(tags)), np.float32)
    emissions[0, tags.index("B-A")], emissions[1, tags.index("M-A")] = 600, 600  # M may not be last
    scores = {"start": start, "transitions": between, "end": end}
    chain = NativeCRF(**scores, tags=tags, scheme="BMES", max_lengths={}, library=native.load(level))
    found, _ = chain.spans(emissions, np.array([2], np.int32))
    assert found[["start", "end"]].tolist() == [(0, 2)] and found["score"][0] == pytest.approx(1)


@pytest.mark.parametrize("level", LEVELS)
def test_rows_are_those_of_the_vocabulary(level):
    lexicon = Lexicon.from_words(["南京", "南京市", "长江", "大桥"])
    lexicon.add("市长江")
    codes = np.array(sorted(map(ord, "南京市长江\x00𠮷")), np.int64)
    pairs = np.array([ord("南") << 21 | ord("京"), ord("江") << 21 | 0x1FFFFF, ord("𠮷") << 21 | ord("南")], np.int64)
    vocabulary = Vocabulary(
        chars=CodeTable.from_ordered(codes),
        bigrams=CodeTable.from_ordered(pairs),
        word_rows=np.array([5, 1, 3, 4], np.int32),
        n_tuned=(3, 3, 3),
        n_rows=(20, 20, 20),
    )
    texts = ["南京市长江大桥", "", "𠮷南京\x00", "江", "长江"]
    lattices = [build_lattice(text, lexicon.snapshot()) for text in texts]
    encoded = [vocabulary.encode(lattice) for lattice in lattices]
    for library in (native.load(level), None):
        batch = RowReader(vocabulary, library)(lattices)
        for name in ("chars", "bigrams", "words", "starts", "ends"):
            expected = np.concatenate([getattr(x, name) for x in encoded])
            np.testing.assert_array_equal(getattr(batch, name), expected, err_msg=name)
        assert batch.n_chars.tolist() == [len(text) for text in texts] and batch.labels is None


def test_no_vocabulary_at_all():
    nothing = CodeTable(np.zeros(0, np.int64), np.zeros(0, np.int32))
    vocabulary = Vocabulary(nothing, nothing, np.zeros(0, np.int32), (3, 3, 3), (3, 3, 3))
    lattices = [build_lattice("南京", Lexicon.from_words([]).snapshot())]
    for library in (None, *map(native.load, LEVELS)):
        batch = RowReader(vocabulary, library)(lattices)
        assert batch.chars.tolist() == batch.bigrams.tolist() == [1, 1]


def test_tables_that_do_not_fit_are_refused():
    parts = {"t.tuned": np.ones((3, 4), np.float32), "t.fixed": np.ones((5, 4), np.int8)}
    with pytest.raises(ValueError, match="scales"):
        EmbeddingTable.of(parts | {"t.scale": np.ones((4, 1), np.float16)}, "t")
    with pytest.raises(ValueError, match="scales"):
        EmbeddingTable.of(parts | {"t.scale": np.ones((0, 1), np.float16)}, "t")
    with pytest.raises(KeyError):
        EmbeddingTable.of(parts, "t")


def test_a_file_that_holds_no_arrays_is_refused(tmp_path):
    for content in (b"x", b"\xff" * 40, (2).to_bytes(8, "little") + b"{}"):
        (tmp_path / "file").write_bytes(content)
        if content.endswith(b"{}"):
            assert arrays_in(map_file(tmp_path / "file")) == {}
        else:
            with pytest.raises(ValueError, match=r"no \.safetensors file"):
                arrays_in(map_file(tmp_path / "file"))
    header = b'{"x":{"dtype":"BF16","shape":[1],"data_offsets":[0,2]}}'
    (tmp_path / "file").write_bytes(len(header).to_bytes(8, "little") + header + b"ab")
    with pytest.raises(ValueError, match="BF16"):
        arrays_in(map_file(tmp_path / "file"))


def test_a_library_that_was_not_built_has_no_path_and_no_sources_no_checksum(monkeypatch):
    assert native._path("of_no_level") is None and native.load("of_no_level") is None
    monkeypatch.setattr(native.Path, "glob", lambda self, pattern: iter(()))
    assert native.source_checksum() == 0


@pytest.mark.parametrize(("given", "n"), [("3", 3), ("1", 1), ("0", None), ("", None), ("two", None), ("-1", None)])
def test_the_number_of_threads(monkeypatch, given, n):
    monkeypatch.setenv("OMP_NUM_THREADS", given)
    monkeypatch.setattr(native.os, "sched_getaffinity", lambda pid: set(range(7)), raising=False)
    assert native.n_threads() == (7 if n is None else n)
