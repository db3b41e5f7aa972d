"""Gated sums against a softmax over sigmoids, with gradients."""

from __future__ import annotations

import pytest
import torch

from cige.nn.gated_sum import gated_shares, gated_sum, quick_tanh


def drawn(n_values: int) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(n_values)
    shapes = [(4, 3 * n_values), *[(4, 3)] * n_values]
    return [torch.randn(*shape, generator=generator, dtype=torch.float64) * 3 for shape in shapes]


@pytest.mark.parametrize("n_values", [2, 3])
def test_equals_a_softmax_over_sigmoids(n_values):
    gates, *values = drawn(n_values)
    before = gates.clone()
    shares = torch.stack([torch.sigmoid(part) for part in gates.split(3, 1)]).softmax(0)
    expected = sum(share * value for share, value in zip(shares, values, strict=True))
    torch.testing.assert_close(gated_sum(gates, *values), expected)
    torch.testing.assert_close(gated_shares(gates, n_values), shares.transpose(0, 1))
    assert torch.equal(gates, before)


@pytest.mark.parametrize("n_values", [2, 3])
def test_gradients_equal_finite_differences(n_values):
    assert torch.autograd.gradcheck(gated_sum, [x.requires_grad_() for x in drawn(n_values)])


def test_gates_may_be_in_bfloat16():
    gates, *values = (x.float() for x in drawn(3))
    rough = gated_sum(gates.bfloat16(), values[0].bfloat16(), *values[1:])
    assert rough.dtype == torch.float32
    torch.testing.assert_close(rough, gated_sum(gates, *values), atol=0.1, rtol=0.02)


def test_a_quick_tanh_is_a_tanh():
    x = torch.cat([torch.linspace(-12, 12, 999), torch.tensor([0.0, 1e-6, -1e30, 1e30])])
    torch.testing.assert_close(quick_tanh(x), torch.tanh(x), atol=2e-7, rtol=0)
    assert torch.autograd.gradcheck(quick_tanh, torch.linspace(-3, 3, 7, dtype=torch.float64, requires_grad=True))
