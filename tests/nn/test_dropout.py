"""Dropout drops the stated share, keeps the mean, and is the identity in evaluation."""

import pytest
import torch

from cige.nn.dropout import Dropout


@pytest.mark.parametrize("prob", [0.01, 0.15, 0.5, 0.9])
def test_share_and_mean(prob):
    torch.manual_seed(0)
    y = Dropout(prob)(torch.ones(1000, 400))
    assert (y == 0).float().mean().item() == pytest.approx(prob, abs=0.003)
    assert y.mean().item() == pytest.approx(1, abs=0.02)
    assert y.unique().numel() == 2


def test_identity_in_evaluation_and_at_zero():
    x = torch.randn(7, 5)
    assert Dropout(0.5).eval()(x) is x
    assert Dropout(0.0)(x) is x


def test_gradient_is_the_mask():
    x = torch.ones(33, 7, requires_grad=True)
    y = Dropout(0.3)(x)
    y.sum().backward()
    assert torch.equal(x.grad, y.detach())


def test_seed_decides_the_mask():
    module = Dropout(0.5)
    torch.manual_seed(3)
    first = module(torch.ones(50))
    torch.manual_seed(3)
    assert torch.equal(first, module(torch.ones(50)))


@pytest.mark.parametrize(("device", "n_calls"), [("cpu", 0), ("meta", 1)])
def test_the_cheap_mask_is_for_the_cpu(device, n_calls, monkeypatch):
    calls = []
    usual = torch.nn.functional.dropout
    monkeypatch.setattr(torch.nn.functional, "dropout", lambda x, prob: calls.append(prob) or usual(x, prob))
    x = torch.ones(8, 3, device=device)
    assert Dropout(0.25)(x).shape == x.shape
    assert calls == [0.25] * n_calls


def test_refuses_an_impossible_probability():
    with pytest.raises(ValueError, match=r"1.0; expected 0 <= p < 1"):
        Dropout(1.0)
