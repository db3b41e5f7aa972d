"""Rows without padding: there and back, with gradients, and nothing real."""

from __future__ import annotations

import torch

from cige.nn.ragged import RealRows, spaced_rows

MASK = torch.tensor([[True, True, False], [False, False, False], [True, False, True]])


def test_there_and_back():
    rows, x = RealRows.of(MASK), torch.randn(3, 3, 2)
    assert torch.equal(rows.pack(x), x[MASK])
    assert torch.equal(rows.pad(rows.pack(x)), x * MASK[:, :, None])
    assert torch.equal(rows.numbers[MASK], torch.arange(4)) and rows.sentence.tolist() == [0, 0, 2, 2]
    assert torch.equal(rows.pad(torch.arange(1, 5)), torch.tensor([[1, 2, 0], [0, 0, 0], [3, 0, 4]]))


def test_gradients_equal_finite_differences():
    rows = RealRows.of(MASK)
    assert torch.autograd.gradcheck(rows.pack, torch.randn(3, 3, 2, dtype=torch.float64, requires_grad=True))
    assert torch.autograd.gradcheck(rows.pad, torch.randn(4, 2, dtype=torch.float64, requires_grad=True))


def test_nothing_but_padding():
    for mask in (torch.zeros(2, 3, dtype=torch.bool), torch.zeros(2, 0, dtype=torch.bool)):
        rows, x = RealRows.of(mask), torch.randn(*mask.shape, 4)
        assert rows.pack(x).shape == (0, 4) and rows.sentence.shape == (0,)
        assert rows.pad(rows.pack(x)).shape == x.shape and not rows.pad(rows.pack(x)).any()


def test_shifts_of_spaced_rows_stay_in_their_sentence():
    mask = torch.tensor([[True, True, True], [False, False, False], [True, False, False]])
    x = torch.arange(1.0, 10.0).view(3, 3, 1)  # 1 2 3, nothing, 7
    spaced = spaced_rows(mask, gap=2)
    packed = spaced.pack(x)[:, 0] * spaced.is_real
    assert packed.tolist() == [1, 2, 3, 0, 0, 0, 0, 7, 0, 0] and packed[spaced.is_real].tolist() == [1, 2, 3, 7]
    assert spaced.rows.sentence.tolist() == [0] * 5 + [1] * 2 + [2] * 3
    for shift in (1, 2, -1, -2):
        moved = spaced.rows.pad(packed.roll(shift))[:, :3] * mask
        for row, n in enumerate((3, 0, 1)):
            expected = [float(x[row, t - shift, 0]) if 0 <= t - shift < n else 0.0 for t in range(n)]
            assert moved[row, :n].tolist() == expected
