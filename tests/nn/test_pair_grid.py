"""Pair grids: scores of spans and their loss, against the equations of GlobalPointer written out in loops."""

from __future__ import annotations

import math

import pytest
import torch

from cige.nn.pair_grid import PointerGrid, banded_products, multi_label_loss, rotated, shifted, span_mask


def slow_rotation(vector: list[float], position: int) -> list[float]:
    """R_i of RoFormer, equation 15: each pair of numbers is a point that turns around the origin."""
    width, turned = len(vector), []
    for d in range(width // 2):
        angle = position * 10_000.0 ** (-2 * d / width)
        x, y = vector[2 * d], vector[2 * d + 1]
        turned += [x * math.cos(angle) - y * math.sin(angle), x * math.sin(angle) + y * math.cos(angle)]
    return turned


def slow_scores(grid: PointerGrid, features: torch.Tensor, i: int, j: int) -> list[float]:
    """Equations 1 and 3 for the span from character i to character j of one sentence, float[T, D]."""
    width = grid.head_width
    weight, bias = grid.pairs.weight.tolist(), grid.pairs.bias.tolist()
    rows = features.tolist()

    def project(position: int, first: int) -> list[float]:
        return [
            sum(w * x for w, x in zip(weight[row], rows[position], strict=True)) + bias[row]
            for row in range(first, first + width)
        ]

    scores = []
    for k in range(grid.n_types):
        first = 0 if grid.efficient else 2 * width * k
        q_i, k_j = project(i, first), project(j, first + width)
        turned = zip(slow_rotation(q_i, i), slow_rotation(k_j, j), strict=True)
        score = sum(x * y for x, y in turned) / math.sqrt(width)
        if grid.types is not None:
            edges = [*q_i, *project(i, width), *project(j, 0), *k_j]
            row = grid.types.weight[k].tolist()
            score += sum(w * x for w, x in zip(row, edges, strict=True)) + grid.types.bias[k].item()
        scores.append(score)
    return scores


def made(*, efficient: bool, n_types: int = 3, width: int = 5, head_width: int = 6) -> PointerGrid:
    torch.manual_seed(0)
    grid = PointerGrid(in_width=width, n_types=n_types, head_width=head_width, efficient=efficient).double()
    torch.nn.init.normal_(grid.pairs.bias)
    return grid


@pytest.mark.parametrize("efficient", [False, True])
@pytest.mark.parametrize(("n_chars", "band"), [(1, 1), (7, 3), (7, 7), (7, 12), (70, 4), (40, 37)])
def test_scores_are_those_of_the_equations(efficient, n_chars, band):
    grid = made(efficient=efficient)
    features = torch.randn(2, n_chars, 5, dtype=torch.float64)
    scores = grid(features, band)
    assert scores.shape == (2, n_chars, band, 3)
    places = [(i, m) for i in range(n_chars) for m in range(min(band, n_chars - i))]
    for i, m in places[:: max(1, len(places) // 60)]:
        for row in range(2):
            expected = slow_scores(grid, features[row], i, i + m)
            assert scores[row, i, m].tolist() == pytest.approx(expected, abs=1e-6)


def test_a_score_depends_on_the_distance_and_not_on_the_place():
    vectors = torch.randn(1, 1, 2, 8, dtype=torch.float64).expand(1, 30, 2, 8)
    turned = rotated(vectors)
    products = torch.einsum("bihd,bjhd->ijh", turned, turned)
    assert torch.allclose(products[3, 7], products[20, 24])
    assert not torch.allclose(products[3, 7], products[3, 8])


@pytest.mark.parametrize(("n_chars", "band"), [(3, 5), (33, 2), (65, 32), (100, 40)])
def test_products_in_blocks_are_those_of_all_pairs(n_chars, band):
    queries, keys = torch.randn(2, 2, n_chars, 3, 4, dtype=torch.float64).unbind(0)
    dense = torch.einsum("bikd,bjkd->bijk", queries, keys)
    found = banded_products(queries, keys, band)
    for m in range(band):
        expected = torch.zeros(2, n_chars, 3, dtype=torch.float64)
        for i in range(n_chars - m):
            expected[:, i] = dense[:, i, i + m]
        assert torch.allclose(found[:, :, m], expected)


def test_shifted_values():
    values = torch.arange(1.0, 5.0)[None, :, None]
    assert shifted(values, 3)[0, :, :, 0].tolist() == [[1, 2, 3], [2, 3, 4], [3, 4, 0], [4, 0, 0]]


def test_the_mask_has_the_spans_within_each_sentence():
    mask = span_mask(torch.tensor([3, 1]), 3, 2)
    assert mask.int().tolist() == [[[1, 1], [1, 1], [1, 0]], [[1, 0], [0, 0], [0, 0]]]


def slow_loss(scores: torch.Tensor, gold: set[tuple[int, int, int]], n_chars: int) -> float:
    """Equation 2 for one sentence, summed over types."""
    _, band, n_types = scores.shape
    total = 0.0
    for k in range(n_types):
        others = entities = 1.0
        for i in range(n_chars):
            for m in range(min(band, n_chars - i)):
                score = scores[i, m, k].item()
                if (i, m, k) in gold:
                    entities += math.exp(-score)
                else:
                    others += math.exp(score)
        total += math.log(entities) + math.log(others)
    return total


def gold_of(places: list[set[tuple[int, int, int]]], shape: torch.Size) -> torch.Tensor:
    gold = torch.zeros(shape, dtype=torch.bool)
    for row, own in enumerate(places):
        for cell in own:
            gold[(row, *cell)] = True
    return gold


def test_the_loss_is_that_of_the_equation_and_ignores_padding():
    torch.manual_seed(0)
    scores = torch.randn(2, 6, 4, 2, dtype=torch.float64)
    places = [{(0, 3, 0), (1, 1, 0), (1, 1, 1), (5, 0, 1)}, {(0, 0, 1)}]
    mask = span_mask(torch.tensor([6, 2]), 6, 4)
    loss = multi_label_loss(scores, gold_of(places, scores.shape), mask)
    expected = [slow_loss(scores[0], places[0], 6), slow_loss(scores[1], places[1], 2)]
    assert loss.tolist() == pytest.approx(expected, abs=1e-6)  # the loss is computed in float32
    scores[~mask] = 1e4
    again = multi_label_loss(scores, gold_of(places, scores.shape), mask)
    assert again.tolist() == loss.tolist()


@pytest.mark.parametrize("efficient", [False, True])
def test_gradients(efficient, monkeypatch):
    monkeypatch.setattr(torch.Tensor, "float", torch.Tensor.double)  # gradcheck needs float64 throughout
    grid = made(efficient=efficient, n_types=2, width=3, head_width=4)
    mask = span_mask(torch.tensor([4, 3]), 4, 3)
    gold = gold_of([{(0, 2, 0), (1, 0, 1)}, {(2, 0, 0)}], torch.Size((2, 4, 3, 2)))
    weights = list(grid.parameters())

    def loss(features: torch.Tensor, *_: torch.Tensor) -> torch.Tensor:
        return multi_label_loss(grid(features, 3), gold, mask)

    features = torch.randn(2, 4, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(loss, (features, *weights))


def test_an_odd_width_is_refused():
    with pytest.raises(ValueError, match="even number"):
        PointerGrid(in_width=4, n_types=1, head_width=7)
