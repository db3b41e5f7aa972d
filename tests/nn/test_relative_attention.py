"""TENER's attention against its equations, position by position."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from cige.nn.relative_attention import RelativeSelfAttention, slide
from cige.nn.transformer_layer import TransformerLayer

SWITCHES: list[dict[str, Any]] = [
    {},
    {"scaled": True},
    {"key_projection": True},
    {"output_projection": True},
    {"key_positions": True},
    {"reverse_distance": True},
    {"reverse_distance": True, "key_positions": True},
    {"form": "concatenated"},
    {"scaled": True, "key_projection": True, "output_projection": True, "key_positions": True},
]


def attention(*, width: int = 12, n_heads: int = 3, **switches: Any) -> RelativeSelfAttention:
    torch.manual_seed(0)
    return RelativeSelfAttention(width=width, n_heads=n_heads, **switches).eval()


def sentences(n_chars: list[int], *, width: int = 12) -> tuple[Tensor, Tensor]:
    """float[B, T, D] with noise on padding, and the mask."""
    x = torch.randn(len(n_chars), max(n_chars), width, generator=torch.Generator().manual_seed(1))
    return x, torch.arange(max(n_chars)) < torch.tensor(n_chars)[:, None]


def encoding(distance: int, width: int, form: str) -> list[float]:
    half = width // 2
    if form == "concatenated":
        angles = [distance * 10000 ** (-i / (half - 1)) for i in range(half)]
        return [math.sin(a) for a in angles] + [math.cos(a) for a in angles]
    waves = []
    for i in range(half):
        angle = distance / 10000 ** (2 * i / width)
        waves += [math.sin(angle), math.cos(angle)]
    return waves


def by_the_equations(module: RelativeSelfAttention, x: Tensor, switches: dict[str, Any]) -> tuple[Tensor, Tensor]:
    """What one sentence float[T, D] gives: float[T, D] and float[H, T, T]."""
    n, width = x.shape
    d = width // module.n_heads
    weights = {k: v.detach() for k, v in module.named_parameters()}
    outputs = torch.zeros(n, width)
    probabilities = torch.zeros(module.n_heads, n, n)
    for h in range(module.n_heads):
        part = slice(h * d, (h + 1) * d)
        w_q, w_v, u, v = (weights[k] for k in ("query.weight", "value.weight", "u", "v"))
        keys = [
            (weights["key.weight"] @ x[j])[part] if switches.get("key_projection") else x[j][part] for j in range(n)
        ]
        for t in range(n):
            query = (w_q @ x[t])[part]
            scores = []
            for j in range(n):
                distance = j - t if switches.get("reverse_distance") else t - j
                r = torch.tensor(encoding(distance, d, switches.get("form", "interleaved")))
                score = query @ keys[j] + query @ r + u[h] @ keys[j] + v[h] @ r
                if switches.get("key_positions"):
                    score = score + keys[j] @ torch.tensor(encoding(-distance, d, switches.get("form", "interleaved")))
                scores.append(float(score) / (math.sqrt(d) if switches.get("scaled") else 1.0))
            top = max(scores)
            total = sum(math.exp(s - top) for s in scores)
            for j in range(n):
                probabilities[h, t, j] = math.exp(scores[j] - top) / total
                outputs[t, part] += probabilities[h, t, j] * (w_v @ x[j])[part]
    if switches.get("output_projection"):
        outputs = outputs @ weights["output.weight"].t()
    return outputs, probabilities


@pytest.mark.parametrize("switches", SWITCHES, ids=lambda s: "+".join(s) or "default")
def test_equals_its_equations(switches):
    module = attention(**switches)
    n_chars = [5, 1, 3]
    x, mask = sentences(n_chars)
    with torch.no_grad():
        out, probabilities = module(x, mask)
    for row, n in enumerate(n_chars):
        expected, expected_probabilities = by_the_equations(module, x[row, :n], switches)
        torch.testing.assert_close(out[row, :n], expected, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(probabilities[:, row, :n, :n], expected_probabilities, atol=1e-5, rtol=1e-5)
        assert (probabilities[:, row, :n, n:] == 0).all()


@pytest.mark.parametrize("n", [1, 2, 3, 8])
def test_slide_puts_each_distance_in_its_place(n):
    by_distance = torch.arange(2.0 * n * 2 * n).view(2, n, 2 * n)
    out = slide(by_distance)
    assert out.shape == (2, n, n)
    for t in range(n):
        for j in range(n):
            assert out[1, t, j] == by_distance[1, t, j - t + n - 1]


def test_left_and_right_are_not_alike_and_places_are_only_relative():
    module = attention()
    x, mask = sentences([6])
    x[0, :] = x[0, 0]  # all characters alike: only distances are left
    _, probabilities = module(x, mask)
    row = probabilities[0, 0, 3]
    assert not torch.allclose(row[2], row[4], atol=1e-4)
    near = probabilities[0, 0]
    assert near[2, 1] / near[2, 2] == pytest.approx(float(near[4, 3] / near[4, 4]), rel=1e-4)


def test_neither_padding_nor_neighbours_in_the_batch_matter():
    module = attention(output_projection=True)
    x, mask = sentences([2, 7, 4])
    with torch.no_grad():
        together, _ = module(x, mask)
        for row, n in enumerate([2, 7, 4]):
            alone, _ = module(x[row : row + 1, :n], mask[row : row + 1, :n])
            torch.testing.assert_close(together[row, :n], alone[0], atol=1e-5, rtol=1e-5)


def test_an_empty_sentence_gives_no_nan():
    x, mask = sentences([0, 2])
    x.requires_grad_()
    out, probabilities = attention()(x, mask)
    out.sum().backward()
    assert torch.isfinite(out).all() and torch.isfinite(probabilities).all() and torch.isfinite(x.grad).all()


def test_the_mask_is_left_as_it_was():
    x, mask = sentences([0, 2])
    attention()(x, mask)
    assert mask.tolist() == [[False, False], [True, True]]


def test_gradients():
    module = attention(width=4, n_heads=2, output_projection=True, key_positions=True).double()
    x, mask = sentences([3, 2], width=4)
    assert torch.autograd.gradcheck(lambda y: module(y, mask)[0] * mask[:, :, None], (x.double().requires_grad_(),))


def test_dropout_is_for_training_and_not_in_the_map():
    module = attention(dropout_prob=0.5)
    x, mask = sentences([40])
    calm, map_before = module(x, mask)
    module.train()
    noisy, map_after = module(x, mask)
    assert not torch.allclose(calm, noisy, atol=1e-3)
    torch.testing.assert_close(map_before, map_after)
    assert not map_after.requires_grad


@pytest.mark.parametrize(("width", "n_heads"), [(10, 3), (9, 3), (4, 8)])
def test_heads_that_do_not_fit_are_refused(width, n_heads):
    with pytest.raises(ValueError, match=f"{n_heads} heads in width {width}.*even multiple"):
        RelativeSelfAttention(width=width, n_heads=n_heads)


def test_a_layer_normalises_after_each_residual():
    torch.manual_seed(0)
    layer = TransformerLayer(attention(), width=12, ff_width=20, dropout_prob=0.3).eval()
    with torch.no_grad():
        for weight in layer.parameters():
            weight.add_(torch.randn_like(weight) * 0.1)  # norms and biases that are not those of the start
    x, mask = sentences([4])
    with torch.no_grad():
        out, probabilities = layer(x, mask)
        attended, expected_probabilities = layer.attention(x, mask)
    w = {k: v.detach() for k, v in layer.named_parameters()}

    def normalised(row: Tensor, name: str) -> Tensor:
        centred = row - row.mean()
        return centred / torch.sqrt((centred**2).mean() + 1e-5) * w[f"{name}.weight"] + w[f"{name}.bias"]

    for t in range(4):
        rc = normalised(attended[0, t] + x[0, t], "attention_norm")  # Eq. 20
        inner = torch.clamp(w["ff_in.weight"] @ rc + w["ff_in.bias"], min=0)
        ffn = w["ff_out.weight"] @ inner + w["ff_out.bias"]  # Eq. 21
        torch.testing.assert_close(out[0, t], normalised(ffn + rc, "ff_norm"), atol=1e-5, rtol=1e-5)  # Eq. 22
    torch.testing.assert_close(probabilities, expected_probabilities)
