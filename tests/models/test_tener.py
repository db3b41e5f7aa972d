"""TENER against its equations, position by position; the attention alone is tried in tests/nn."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import tiny
import torch
from torch import Tensor

from cige.models.model import LatticeModel
from cige.models.tener import RELEASED, TenerConfig, TenerEncoder

CONFIG = TenerConfig(
    n_heads=3, head_width=4, n_layers=2, ff_width=10, embed_dropout_prob=0.0, ff_dropout_prob=0.0,
    attention_dropout_prob=0.0, output_dropout_prob=0.0,
)  # fmt: skip
TEXTS = ["人和药店设在南京市长江大桥", "李明", "", "中国银行的经理"]


def made(**changes: object) -> LatticeModel:
    model = tiny.model(config=replace(CONFIG, **changes), architecture="tener")
    generator = torch.Generator().manual_seed(1)
    model.tagger.double()
    with torch.no_grad():
        for parameter in model.tagger.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator) * 0.1)
    return model


def literal_encode(encoder: TenerEncoder, config: TenerConfig, chars: Tensor) -> Tensor:
    """[T, D] of one sentence's [character; bigram] vectors."""
    weights = {name: value.detach() for name, value in encoder.named_parameters()}
    x = [weights["projection.weight"] @ c + weights["projection.bias"] for c in chars]
    for k in range(config.n_layers):
        of_layer = {n.removeprefix(f"layers.{k}."): v for n, v in weights.items() if n.startswith(f"layers.{k}.")}
        x = literal_layer(of_layer, config, x)
    return torch.stack(x)


def literal_layer(weights: dict[str, Tensor], config: TenerConfig, x: list[Tensor]) -> list[Tensor]:
    d = config.head_width
    rows = []
    for t in range(len(x)):
        heads = []
        for h in range(config.n_heads):
            part = slice(h * d, (h + 1) * d)
            query = (weights["attention.query.weight"] @ x[t])[part]
            scores = []
            for j in range(len(x)):
                key = (weights["attention.key.weight"] @ x[j] if config.key_projection else x[j])[part]
                sign = -1 if config.reverse_distance else 1
                r = encoding(sign * (t - j), config)
                score = (query + weights["attention.u"][h]) @ key + (query + weights["attention.v"][h]) @ r
                if config.key_positions:
                    score = score + key @ encoding(sign * (j - t), config)
                scores.append(score / (math.sqrt(d) if config.scale_scores else 1.0))
            probability = torch.softmax(torch.stack(scores), 0)
            heads.append(
                sum(p * (weights["attention.value.weight"] @ y)[part] for p, y in zip(probability, x, strict=True))
            )
        read = torch.cat(heads)
        if config.output_projection:
            read = weights["attention.output.weight"] @ read
        y = normalised(x[t] + read, weights, "attention_norm")
        inner = torch.relu(weights["ff_in.weight"] @ y + weights["ff_in.bias"])
        rows.append(normalised(y + weights["ff_out.weight"] @ inner + weights["ff_out.bias"], weights, "ff_norm"))
    return rows


def encoding(distance: int, config: TenerConfig) -> Tensor:
    """R: sin(d f_0), cos(d f_0), sin(d f_1), ..., f_i = 10000^(-2i / width).

    Or all sines first, f_i = 10000^(-i / (half - 1)).
    """
    width, half = config.head_width, config.head_width // 2
    if config.sinusoid == "concatenated":
        angles = [distance * 10000 ** (-i / (half - 1)) for i in range(half)]
        return torch.tensor([math.sin(a) for a in angles] + [math.cos(a) for a in angles]).double()
    angles = [distance * 10000 ** (-2 * i / width) for i in range(half)]
    return torch.tensor([wave(a) for a in angles for wave in (math.sin, math.cos)]).double()


def normalised(x: Tensor, weights: dict[str, Tensor], name: str) -> Tensor:
    deviation = x - x.mean()
    return (
        deviation / torch.sqrt(deviation.square().mean() + 1e-5) * weights[f"{name}.weight"] + weights[f"{name}.bias"]
    )


@pytest.mark.parametrize("changes", [{}, RELEASED, {"scale_scores": True, "use_bigrams": False}], ids=str)
def test_equals_its_equations(changes):
    model = made(**changes)
    batch, _ = model.encode(TEXTS)
    encoder = model.tagger.encoder
    with torch.no_grad():
        found = encoder(batch)
        chars = encoder.embeddings.chars(batch)
    for b, n in enumerate(batch.n_chars.tolist()):
        if n:
            expected = literal_encode(encoder, replace(CONFIG, **changes), chars[b, :n])
            torch.testing.assert_close(found[b, :n], expected, atol=1e-6, rtol=1e-5)  # R is made in float32


def test_words_change_nothing():
    model = made()
    batch, lattices = model.encode(TEXTS)
    without = model.batch([replace(x, words=x.words[:0]) for x in lattices])
    assert batch.n_words.sum() > 0
    torch.testing.assert_close(model.tagger.encoder(batch), model.tagger.encoder(without))
    assert model.tagger.encoder.embeddings.word is None


def test_settings_that_do_not_fit_are_told():
    assert "even" in replace(CONFIG, head_width=5).problems()[0] and not CONFIG.problems()
