"""Position scores of Lattice-BERT against Eq. 2, pair by pair; the seven relations on lattices drawn by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cige.lattice_bert.encoder.lattice_positions import (
    RELATIONS,
    LatticePositionScores,
    distinct_spans,
    paper_relation,
    released_relation,
)
from cige.lattice_bert.encoder.token_batch import TokenBatch

H, D_HEAD, WIDTH, CLIP, N_POSITIONS = 2, 5, 6, 4, 24


def token_batch(*lattices: list[tuple[int, int]]) -> TokenBatch:
    """Lattices of inclusive spans; padding has start and end 0."""
    n = max(map(len, lattices))
    starts, ends = ([[span[k] for span in spans] + [0] * (n - len(spans)) for spans in lattices] for k in (0, 1))
    zeros = torch.zeros(len(lattices), n, dtype=torch.int64)
    lengths = torch.tensor([len(spans) for spans in lattices])
    return TokenBatch(zeros, torch.tensor(starts), torch.tensor(ends), zeros, lengths)


def scores(*, random: bool = True, **changes) -> LatticePositionScores:
    usual = {"n_heads": H, "head_width": D_HEAD, "position_width": WIDTH, "max_positions": N_POSITIONS}
    torch.manual_seed(0)
    module = LatticePositionScores(**(usual | {"scale": 0.3, "clip_distance": CLIP} | changes))
    if random:
        for parameter in module.parameters():
            torch.nn.init.normal_(parameter)
    return module.double()


def slow_relation(i: tuple[int, int], j: tuple[int, int]) -> int:
    """The relation of token j to token i (Figure 3), by the sets of places that they cover."""
    inside_i, inside_j = set(range(i[0], i[1] + 1)), set(range(j[0], j[1] + 1))
    if inside_i == inside_j:
        return RELATIONS.index("self")
    if not inside_i & inside_j:
        return RELATIONS.index("left, detached" if j < i else "right, detached")
    if inside_i < inside_j:
        return RELATIONS.index("containing")
    if inside_j < inside_i:
        return RELATIONS.index("contained")
    return RELATIONS.index("left, overlapping" if j < i else "right, overlapping")


def slow_released_code(i: tuple[int, int], j: tuple[int, int]) -> int:
    """The table that the released code reaches, by cases of where j stands."""
    (start_i, end_i), (start_j, end_j) = i, j
    if i == j:
        return 29
    if end_j < start_i:
        return 0
    if start_j > end_i:
        return 15
    if start_j < start_i:
        return 12 if end_j >= end_i else 4
    return 5 if end_j < end_i else 13


def slow_score(module: LatticePositionScores, i: tuple[int, int], j: tuple[int, int], head: int) -> float:
    """P_ij of one head: Eq. 2 of the paper, and the reset of [CLS] (Ke et al. 2020)."""
    rows = slice(head * D_HEAD, (head + 1) * D_HEAD)

    def product(left: torch.Tensor, right: torch.Tensor) -> float:
        query = module.query.weight[rows] @ left + module.query.bias[rows]
        key = module.key.weight[rows] @ right + module.key.bias[rows]
        return float(query @ key) * module.scale

    def place(span: tuple[int, int]) -> torch.Tensor:
        return torch.cat([module.starts.weight[span[0]], module.ends.weight[span[1]]])

    if module.resets is not None:
        if j == (0, 0):
            return product(module.resets[1], module.resets[1])
        if i == (0, 0):
            return product(module.resets[0], module.resets[0])
    total = product(place(i), place(j))
    if module.distances is not None:
        distances = (j[0] - i[0], j[0] - i[1], j[1] - i[0], j[1] - i[1])  # ss, se, es, ee
        for table, distance in zip(module.distances, distances, strict=True):
            total += float(table[max(-CLIP, min(CLIP, distance)) + CLIP, head])
    if module.relations is not None:
        code = slow_relation(i, j) if module.relation_rule == "paper" else slow_released_code(i, j)
        total += float(module.relations[code, head])
    return total


def slow_scores(module: LatticePositionScores, batch: TokenBatch) -> torch.Tensor:
    n_batch, n = batch.ids.shape
    out = torch.full((n_batch, H, n, n), -math.inf, dtype=torch.float64)
    for b in range(n_batch):
        spans = [(int(batch.starts[b, k]), int(batch.ends[b, k])) for k in range(int(batch.n_tokens[b]))]
        for head in range(H):
            for row, i in enumerate(spans):
                for column, j in enumerate(spans):
                    out[b, head, row, column] = slow_score(module, i, j, head)
    return out


# [CLS] 研 究 研究 生 研究生 生活 活 很 [SEP], and a shorter one with a word beyond the clip distance
LATTICES = (
    [(0, 0), (1, 1), (2, 2), (1, 2), (3, 3), (1, 3), (4, 4), (3, 4), (5, 5), (6, 6)],
    [(0, 0), (1, 1), (2, 2), (3, 3), (1, 12), (20, 20)],
    [(0, 0), (1, 1)],
)


@torch.no_grad()
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"relations": "released"},
        {"relations": None},
        {"distances": False},
        {"relations": None, "distances": False},
        {"cls_reset": False},
    ],
    ids=["paper", "released", "-Rel", "-Dis", "-Dis -Rel", "no reset"],
)
def test_equal_to_equation_2(changes):
    module, batch = scores(**changes), token_batch(*LATTICES)
    found, expected = module(batch), slow_scores(module, batch)
    assert found.shape == expected.shape == (3, H, 10, 10)
    for b, spans in enumerate(LATTICES):
        n = len(spans)
        torch.testing.assert_close(found[b, :, :n, :n], expected[b, :, :n, :n], rtol=1e-5, atol=1e-5)
        assert (found[b, :, :, n:] == -math.inf).all()


@torch.no_grad()
@settings(max_examples=10, deadline=None)
@given(
    st.lists(st.lists(st.tuples(st.integers(1, 12), st.integers(0, 5)), min_size=1, max_size=6), min_size=1, max_size=2)
)
def test_equal_to_equation_2_on_any_lattices(drawn):
    lattices = [[(0, 0), *((start, start + length) for start, length in spans)] for spans in drawn]
    module, batch = scores(), token_batch(*lattices)
    found, expected = module(batch), slow_scores(module, batch)
    for b, spans in enumerate(lattices):
        n = len(spans)
        torch.testing.assert_close(found[b, :, :n, :n], expected[b, :, :n, :n], rtol=1e-5, atol=1e-5)


def test_gradients_reach_every_parameter():
    module = scores()
    finite = module(token_batch(*LATTICES)).masked_fill(~token_batch(*LATTICES).mask[:, None, None, :], 0.0)
    (finite * torch.randn(finite.shape, dtype=finite.dtype)).sum().backward()
    for name, parameter in module.named_parameters():
        assert parameter.grad is not None and parameter.grad.abs().sum() > 0, name
        assert torch.isfinite(parameter.grad).all(), name


def test_gradients_equal_those_of_equation_2():
    module, batch = scores(), token_batch(LATTICES[0])
    probe = torch.randn(1, H, 10, 10, dtype=torch.float64)
    (module(batch) * probe).sum().backward()
    found = module.distances.grad.clone()
    expected = torch.zeros_like(found)
    for row, i in enumerate(LATTICES[0]):
        for column, j in enumerate(LATTICES[0]):
            if (0, 0) in (i, j):
                continue  # [CLS] is reset
            for table, distance in enumerate((j[0] - i[0], j[0] - i[1], j[1] - i[0], j[1] - i[1])):
                expected[table, max(-CLIP, min(CLIP, distance)) + CLIP] += probe[0, :, row, column]
    torch.testing.assert_close(found, expected)


# Figure 3: the source covers places 5 to 8; where T.1 to T.7 are, and cases with a shared edge.
@pytest.mark.parametrize(
    ("j", "relation"),
    [
        ((5, 8), "self"),
        ((1, 4), "left, detached"),
        ((3, 6), "left, overlapping"),
        ((3, 5), "left, overlapping"),  # one place in common
        ((4, 9), "containing"),
        ((5, 9), "containing"),  # the same start
        ((2, 8), "containing"),  # the same end
        ((6, 7), "contained"),
        ((5, 5), "contained"),  # the first character
        ((8, 8), "contained"),  # the last character
        ((7, 10), "right, overlapping"),
        ((8, 11), "right, overlapping"),
        ((9, 9), "right, detached"),
    ],
)
def test_the_seven_relations(j, relation):
    code = paper_relation(*map(torch.tensor, (5, 8, *j)))
    assert RELATIONS[int(code)] == relation
    opposite = {"containing": "contained", "contained": "containing"}
    side = "right" if relation.startswith("left") else "left"
    mirrored = relation.replace("left", side).replace("right", side)
    assert RELATIONS[int(paper_relation(*map(torch.tensor, (*j, 5, 8))))] == opposite.get(relation, mirrored)


def test_each_pair_has_one_of_seven_relations():
    spans = [(start, end) for start in range(7) for end in range(start, 7)]
    pairs = [(*i, *j) for i in spans for j in spans]
    columns = torch.tensor(pairs).t()
    found = paper_relation(*columns).tolist()
    assert found == [slow_relation(pair[:2], pair[2:]) for pair in pairs] and set(found) == set(range(7))
    released = released_relation(*columns).tolist()
    assert released == [slow_released_code(pair[:2], pair[2:]) for pair in pairs]
    assert set(released) == {0, 4, 5, 12, 13, 15, 29}


def test_released_codes_of_a_word_over_its_characters():
    word, first, second = (3, 4), (3, 3), (4, 4)
    code = {
        (i, j): int(released_relation(*map(torch.tensor, (*i, *j))))
        for i in (word, first, second)
        for j in (word, first, second)
    }
    assert code[word, first] == 5 and code[word, second] == 13
    assert code[first, word] == 13 and code[second, word] == 12


@torch.no_grad()
def test_cls_has_two_scores_of_its_own():
    module, batch = scores(), token_batch(LATTICES[0])
    found = module(batch)[0]
    as_query, as_key = found[:, 0, 1:], found[:, :, 0]
    assert (as_query == as_query[:, :1]).all() and (as_key == as_key[:, :1]).all()
    assert not torch.allclose(as_query[:, 0], as_key[:, 0])
    before = found.clone()
    module.starts.weight[0], module.ends.weight[0] = 9.0, -9.0  # the place of [CLS] says nothing
    torch.testing.assert_close(module(batch)[0], before)


@torch.no_grad()
def test_neighbours_in_the_batch_and_padding_change_nothing():
    module = scores()
    together = module(token_batch(*LATTICES))
    for b, spans in enumerate(LATTICES):
        n = len(spans)
        torch.testing.assert_close(together[b, :, :n, :n], module(token_batch(spans))[0], rtol=1e-9, atol=1e-9)


class OnCuda(torch.Tensor):
    """A tensor that says it is on CUDA, where there is none."""

    is_cuda = True


@torch.no_grad()
@pytest.mark.parametrize("on_cuda", [False, True])
def test_rows_begin_at_multiples_of_eight_on_cuda_alone(on_cuda, monkeypatch):
    module, batch = scores(), token_batch(*LATTICES)
    expected = module(batch)
    if on_cuda:

        def with_index_on_cuda(batch: TokenBatch):
            spans = distinct_spans(batch)
            return replace(spans, index=spans.index.as_subclass(OnCuda))

        monkeypatch.setattr("cige.lattice_bert.encoder.lattice_positions.distinct_spans", with_index_on_cuda)
    found = module(batch).as_subclass(torch.Tensor)
    assert torch.equal(found, expected) and found.shape == (3, H, 10, 10)
    assert found.stride(2) == (16 if on_cuda else 10)


@torch.no_grad()
def test_distances_beyond_the_clip_are_one():
    module = scores(relations=None)
    module.query.weight.zero_()
    module.query.bias.zero_()  # no att
    found = module(token_batch([(0, 0), (1, 1), (1 + CLIP, 1 + CLIP), (2 + CLIP, 2 + CLIP), (15, 15)]))[0]
    torch.testing.assert_close(found[:, 1, 2], found[:, 1, 3])
    torch.testing.assert_close(found[:, 1, 2], found[:, 1, 4])
    assert not torch.allclose(found[:, 3, 2], found[:, 1, 2])


def test_a_position_that_the_model_lacks_is_told():
    with pytest.raises(ValueError, match=r"position 24; this model has 24 positions.*cut to fewer"):
        scores()(token_batch([(0, 0), (1, 24)]))


def test_parameters_of_distances_and_relations():
    """12K in the base size (§2.6)."""
    base = LatticePositionScores(n_heads=12, head_width=64, position_width=128, max_positions=515, scale=1.0)
    assert base.distances.numel() + base.relations.numel() == 4 * 257 * 12 + 7 * 12


def test_distinct_spans_name_each_token_and_padding():
    batch = token_batch(*LATTICES)
    spans = distinct_spans(batch)
    assert len(
        {(s, e, p) for s, e, p in zip(*(x.tolist() for x in (spans.starts, spans.ends, spans.is_padding)), strict=True)}
    ) == len(spans.starts)
    mask = batch.mask
    assert torch.equal(spans.starts[spans.index][mask], batch.starts[mask])
    assert torch.equal(spans.ends[spans.index][mask], batch.ends[mask])
    assert np.array_equal(spans.is_padding[spans.index].numpy(), ~mask.numpy())
