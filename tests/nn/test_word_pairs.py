"""Relations of pairs: the head of W2NER in a band, against the paper's equations on the whole grid."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from cige.nn.word_pairs import WordPairGrid, band_convolution, distance_bins, pair_mask, user_word_cells
from cige.nn.word_paths import MAX_PATHS, find_paths


def made(*, width: int = 5, n_types: int = 2) -> WordPairGrid:
    torch.manual_seed(0)
    head = WordPairGrid(in_width=width, n_types=n_types, pair_width=4, biaffine_width=3, embed_width=2).double().eval()
    for layer in (head.scale, head.shift):  # zero at the start
        torch.nn.init.normal_(layer.weight)
    return head


def slow_bin(distance: int) -> int:
    size = 0 if not distance else min(9, 1 + int(math.log2(abs(distance))))
    return size + 9 if distance < 0 else size


def whole_grid(head: WordPairGrid, features: torch.Tensor, band: int, users: set[tuple[int, int]]) -> torch.Tensor:
    """float[T, T, L]: the scores of one sentence, float[T, D], with the equations of the paper for each pair."""
    n, _ = features.shape
    inside = torch.tensor([[abs(i - j) < band for j in range(n)] for i in range(n)])
    rows = []
    for i in range(n):
        mean, variance = features[i].mean(), features[i].var(unbiased=False)
        normalised = (features[i] - mean) / torch.sqrt(variance + 1e-12)
        for j in range(n):
            gamma, beta = 1 + head.scale.weight @ features[j], head.shift.weight @ features[j]
            region = 2 if (i, j) in users else int(j > i)
            parts = [head.distances.weight[slow_bin(i - j)], head.regions.weight[region], gamma * normalised + beta]
            rows.append(torch.cat(parts) * inside[i, j])
    grid = F.gelu(head.pairs(torch.stack(rows))).reshape(n, n, -1).permute(2, 0, 1)
    outputs = []
    for layer in head.convolutions:
        d = layer.dilation[0]
        grid = F.gelu(F.conv2d(grid * inside, layer.weight, layer.bias, padding=d, dilation=d, groups=len(grid)))
        outputs.append(grid)
    mlp = head.output(F.gelu(head.hidden(torch.cat(outputs).permute(1, 2, 0))))
    one = torch.ones(1, dtype=features.dtype)
    scores = torch.zeros_like(mlp)
    for i in range(n):
        for j in range(n):
            x = torch.cat([F.gelu(head.first(features[i])), one])
            y = torch.cat([F.gelu(head.second(features[j])), one])
            scores[i, j] = torch.stack([x @ weight @ y for weight in head.biaffine])
    return scores + mlp


@pytest.mark.parametrize(("n_chars", "band"), [(1, 1), (6, 6), (6, 9), (9, 4), (14, 3)])
def test_scores_are_those_of_the_whole_grid(n_chars, band):
    head = made()
    features = torch.randn(2, n_chars, 5, dtype=torch.float64)
    mask = pair_mask(torch.tensor([n_chars, max(1, n_chars - 2)]), n_chars, band)
    users = torch.zeros_like(mask)
    pairs = {(0, min(2, n_chars - 1, band - 1))}
    pairs |= {(j, i) for i, j in pairs}
    for i, j in pairs:
        users[:, i, j - i + band - 1] = True
    with torch.no_grad():
        found = head(features, mask, users)
        for row, n in enumerate((n_chars, max(1, n_chars - 2))):
            own = {(i, j) for i, j in pairs if i < n and j < n}
            expected = whole_grid(head, features[row, :n], band, own)
            for i in range(n):
                for j in range(max(0, i - band + 1), min(n, i + band)):
                    assert found[row, i, j - i + band - 1].tolist() == pytest.approx(expected[i, j].tolist(), abs=1e-6)


def test_a_convolution_of_the_band_is_that_of_the_grid():
    torch.manual_seed(0)
    layer = torch.nn.Conv2d(3, 3, 3, groups=3, dilation=2).double()
    grid = torch.randn(1, 3, 7, 7, dtype=torch.float64)
    cells = torch.zeros(1, 3, 7, 13, dtype=torch.float64)
    for i in range(7):
        cells[:, :, i, 6 - i : 13 - i] = grid[:, :, i]
    expected = F.conv2d(grid, layer.weight, layer.bias, padding=2, dilation=2, groups=3)
    found = band_convolution(cells, layer)
    assert all(torch.allclose(found[:, :, i, 6 - i : 13 - i], expected[:, :, i]) for i in range(7))


def test_gradients():
    head = made(width=3, n_types=1)
    mask = pair_mask(torch.tensor([4, 3]), 4, 3)
    users = user_word_cells(torch.tensor([[0], [1]]), torch.tensor([[2], [3]]), torch.tensor([[True], [False]]), 4, 3)

    def scores(features: torch.Tensor, *_: torch.Tensor) -> torch.Tensor:
        return head(features, mask, users)[mask]

    features = torch.randn(2, 4, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(scores, (features, *head.parameters()))


def test_bins_of_distances():
    distances = [0, 1, 2, 3, 4, 7, 8, 255, 256, 900, -1, -3, -300]
    assert distance_bins(torch.tensor(distances)).tolist() == [0, 1, 2, 2, 3, 3, 4, 8, 9, 9, 10, 11, 18]


def test_the_mask_and_the_cells_of_user_words():
    assert pair_mask(torch.tensor([2]), 3, 2).int().tolist() == [[[0, 1, 1], [1, 1, 0], [0, 0, 0]]]
    cells = user_word_cells(torch.tensor([[0, 0]]), torch.tensor([[2, 3]]), torch.tensor([[True, True]]), 3, 2)
    assert cells.nonzero().tolist() == [[0, 0, 2], [0, 1, 0]]  # the second word is longer than the band


def classes_of(n: int, *cells: tuple[int, int, int], band: int = 0) -> np.ndarray:
    band = band or n
    found = np.zeros((n, 2 * band - 1), np.int64)
    for first, second, number in cells:
        found[first, second - first + band - 1] = number
    return found


def test_paths():
    both = classes_of(6, (0, 1, 1), (1, 2, 1), (1, 3, 1), (2, 4, 1), (3, 4, 1), (4, 0, 3), (5, 5, 2), (3, 1, 2))
    assert [(path.characters, path.type) for path in find_paths(both)] == [
        ((0, 1, 2, 4), 1), ((0, 1, 3, 4), 1), ((1, 3), 0), ((5,), 0),
    ]  # fmt: skip
    assert [path.parts for path in find_paths(both)] == [
        ((0, 3), (4, 5)),
        ((0, 2), (3, 5)),
        ((1, 2), (3, 4)),
        ((5, 6),),
    ]
    assert find_paths(classes_of(4, (0, 1, 1), (3, 0, 2))) == []  # no path
    assert find_paths(classes_of(4, (0, 1, 1), (1, 2, 1))) == []  # no last character
    assert find_paths(classes_of(4, (0, 3, 2))) == []  # a type above the diagonal is no entity


def test_the_number_of_paths_is_limited():
    n = 31  # diamonds: 2 ** 10 paths
    cells = [(k, k + step, 1) for k in range(0, 30, 3) for step in (1, 2)]
    cells += [(k + step, k + 3, 1) for k in range(0, 30, 3) for step in (1, 2)]
    assert len(find_paths(classes_of(n, *cells, (30, 0, 2)))) == MAX_PATHS
