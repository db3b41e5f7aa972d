"""The lexicon adapter: its gradients, what padding and the order of words do, and vectors without words."""

from __future__ import annotations

import pytest
import torch

from cige.nn.lexicon_adapter import LexiconAdapter

R, L, W, D, E = 2, 3, 4, 6, 5


def made(**settings: object) -> LexiconAdapter:
    torch.manual_seed(0)
    options = {"width": D, "word_width": E, "dropout_prob": 0.0, "residual": "normalised", "no_word": False}
    adapter = LexiconAdapter(**(options | settings)).double()
    with torch.no_grad():
        for weight in adapter.parameters():
            weight.normal_(std=0.7)
    return adapter


def inputs() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    hidden = torch.randn(R, L, D, generator=generator, dtype=torch.float64)
    words = torch.randn(R, W, E, generator=generator, dtype=torch.float64)
    chosen = torch.rand(R, L, W, generator=generator) < 0.6
    chosen[0, 0], chosen[0, 1] = False, True
    return hidden, words, chosen


VARIANTS = [{}, {"no_word": True}, {"residual": "plain"}]


@pytest.mark.parametrize("settings", VARIANTS, ids=str)
def test_gradients_equal_finite_differences(settings):
    adapter, (hidden, words, chosen) = made(**settings), inputs()
    names = [name for name, _ in adapter.named_parameters()]

    def of(hidden, words, *weights):
        state = dict(zip(names, weights, strict=True))
        return torch.func.functional_call(
            _Whole(adapter), {f"adapter.{k}": v for k, v in state.items()}, (hidden, words, chosen)
        )

    given = [x.clone().requires_grad_() for x in (hidden, words, *adapter.parameters())]
    assert torch.autograd.gradcheck(of, given)


class _Whole(torch.nn.Module):
    def __init__(self, adapter: LexiconAdapter):
        super().__init__()
        self.adapter = adapter

    def forward(self, hidden: torch.Tensor, words: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
        return self.adapter(hidden, self.adapter.values(words), chosen)[0]


@pytest.mark.parametrize("settings", VARIANTS, ids=str)
@torch.no_grad()
def test_padding_and_the_order_of_words_change_nothing(settings):
    adapter, (hidden, words, chosen) = made(**settings), inputs()
    out, probabilities = adapter(hidden, adapter.values(words), chosen)
    order = torch.tensor([2, 0, 3, 1])
    again, shuffled = adapter(hidden, adapter.values(words[:, order]), chosen[:, :, order])
    torch.testing.assert_close(again, out)
    torch.testing.assert_close(shuffled, probabilities[:, :, order])
    more = torch.cat([words, torch.full((R, 2, E), 9.0)], 1)
    padded, _ = adapter(hidden, adapter.values(more), torch.nn.functional.pad(chosen, (0, 2)))
    torch.testing.assert_close(padded, out)


@torch.no_grad()
def test_a_vector_without_words():
    hidden, words, chosen = inputs()
    plain, normalised, with_vector = made(residual="plain"), made(), made(no_word=True)
    for adapter in (plain, normalised, with_vector):
        out, probabilities = adapter(hidden, adapter.values(words), chosen)
        assert not probabilities[0, 0].any() and (probabilities[chosen] > 0).all() and not probabilities[~chosen].any()
        torch.testing.assert_close(probabilities.sum(2), chosen.any(2).double())
        if adapter is plain:
            assert torch.equal(out[0, 0], hidden[0, 0])
        if adapter is normalised:
            torch.testing.assert_close(out[0, 0], adapter.norm(hidden[0, 0]))
        if adapter is with_vector:
            torch.testing.assert_close(
                out[0, 0], adapter.norm(hidden[0, 0] + adapter.word_out(torch.tanh(adapter.word_in(adapter.no_word))))
            )
    empty, nothing = normalised(hidden, normalised.values(words[:, :0]), chosen[:, :, :0])
    torch.testing.assert_close(empty, normalised.norm(hidden))
    assert nothing.shape == (R, L, 0)


@torch.no_grad()
def test_a_new_plain_adapter_adds_nothing():
    hidden, words, chosen = inputs()
    torch.manual_seed(0)
    adapter = LexiconAdapter(width=D, word_width=E, dropout_prob=0.0, residual="plain", no_word=False).double()
    assert torch.equal(adapter(hidden, adapter.values(words), chosen)[0], hidden)
