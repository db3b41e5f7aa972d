"""The vector of a character's components: the equations, gradients, and what must not change it."""

from __future__ import annotations

import numpy as np
import pytest
import tiny
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cige.data.components import ComponentTable
from cige.data.vocabulary import char_codes
from cige.nn.components import CharComponents

TEXTS = ["李明在北京市长江大桥。", "重庆人和药店", "", "轩A龘", "好"]
MODEL = tiny.model()
OF_CHARS = tiny.components("".join(TEXTS) + tiny.UNSEEN)
TABLE = ComponentTable.of(OF_CHARS, char_codes("".join(TEXTS[:2])))
SIZES = {"embedding_width": 5, "width": 7, "dropout_prob": 0.0, "unknown_prob": 0.0}


def made(**changes: float) -> CharComponents:
    torch.manual_seed(0)
    return CharComponents(TABLE, **(SIZES | changes)).eval()  # type: ignore[arg-type]


def read(layer: CharComponents, texts: list[str]) -> torch.Tensor:
    """float[B, T, D] of some texts."""
    with torch.no_grad():
        return layer(MODEL.batch(MODEL.lattices(texts)))


def literally(layer: CharComponents, char: str) -> np.ndarray:
    """float64[D]: embeddings, convolution of width 3 with zeros around, ReLU, maximum over positions, linear layer."""
    weights = {name: w.detach().double().numpy() for name, w in layer.named_parameters()}
    seen = sorted({part for other in "".join(TEXTS[:2]) for part in OF_CHARS.get(other, ())})
    parts = [2 + seen.index(part) if part in seen else 1 for part in OF_CHARS.get(char, ("?",))]
    x = [weights["embedding.weight"][part] for part in parts]
    x = [np.zeros(5), *x, np.zeros(5)]
    after = np.zeros((len(parts), 5))
    for i in range(len(parts)):
        for out in range(5):
            total = weights["convolution.bias"][out]
            for k in range(3):
                for width in range(5):
                    total += weights["convolution.weight"][out, width, k] * x[i + k][width]
            after[i, out] = max(total, 0)
    largest = [max(after[i, out] for i in range(len(parts))) for out in range(5)]
    return weights["output.weight"] @ np.array(largest) + weights["output.bias"]


def test_every_vector_is_that_of_the_equations():
    layer = made()
    vectors = read(layer, TEXTS)
    for text, row in zip(TEXTS, vectors, strict=True):
        for char, vector in zip(text, row.numpy(), strict=False):
            np.testing.assert_allclose(vector, literally(layer, char), atol=1e-6, err_msg=char)
        assert not row[len(text) :].any()


def test_initial_vectors_of_components():
    weight = CharComponents(TABLE, **(SIZES | {"embedding_width": 30})).embedding.weight.detach()  # type: ignore[arg-type]
    bound = (3 / 30) ** 0.5
    assert not weight[0].any() and weight.abs().max() <= bound and weight.abs().max() > 0.9 * bound


def test_gradients_equal_finite_differences():
    """The vector of padding is a constant, 0, and has no gradient."""
    layer = made().double()
    components = torch.from_numpy(TABLE.padded(np.arange(len(TABLE))))
    names = [f"layer.{name}" for name, _ in layer.named_parameters()]

    def vectors(embedding: torch.Tensor, *weights: torch.Tensor) -> torch.Tensor:
        whole = torch.cat([embedding.new_zeros(1, embedding.shape[1]), embedding])
        state = dict(zip(names, (whole, *weights), strict=True))
        return torch.func.functional_call(_Vectors(layer), state, (components,))

    embedding, *weights = (weight.detach().clone() for weight in layer.parameters())
    assert torch.autograd.gradcheck(vectors, [x.requires_grad_() for x in (embedding[1:].clone(), *weights)])


class _Vectors(torch.nn.Module):
    def __init__(self, layer: CharComponents):
        super().__init__()
        self.layer = layer

    def forward(self, components: torch.Tensor) -> torch.Tensor:
        return self.layer.vectors(components)


@torch.no_grad()
def test_padding_of_components_changes_nothing():
    layer = made()
    for sequence in range(len(TABLE)):
        alone = torch.from_numpy(TABLE.padded(np.array([sequence])))
        padded = torch.nn.functional.pad(alone, (0, 4))
        torch.testing.assert_close(layer.vectors(padded), layer.vectors(alone), atol=1e-6, rtol=0)


CHARS = "李明在北京市长江大桥重庆人和药店轩辕渊瀚龘罕A。 "


@settings(max_examples=30, deadline=None)
@given(st.lists(st.text(CHARS, max_size=20), min_size=1, max_size=5))
def test_a_vector_depends_on_the_character_alone(texts):
    layer = made()
    vectors = read(layer, texts)
    for text, row in zip(texts, vectors, strict=True):
        for char, vector in zip(text, row, strict=False):
            torch.testing.assert_close(vector, read(layer, [char])[0, 0], atol=1e-6, rtol=0)


def test_an_unseen_character_has_a_vector_of_its_own_and_one_without_components_the_unknown_one():
    unseen, other, unknown, letter = read(made(), ["轩辕龘A"])[0]
    assert "龘" not in "".join(TEXTS[:2]) and "轩" not in "".join(TEXTS[:2])
    assert not torch.allclose(unseen, unknown, atol=1e-3) and not torch.allclose(unseen, other, atol=1e-3)
    torch.testing.assert_close(letter, read(made(), ["。"])[0, 0])


@pytest.mark.parametrize("field", ["dropout_prob", "unknown_prob"])
def test_what_training_drops(field):
    layer, plain = made(**{field: 0.5}), read(made(), TEXTS)
    torch.testing.assert_close(read(layer, TEXTS), plain)
    layer.train()
    first, second = read(layer, TEXTS), read(layer, TEXTS)
    assert not torch.allclose(first, second, atol=1e-4) and not torch.allclose(first, plain, atol=1e-4)


def test_dropped_characters_have_the_unknown_component():
    layer = made(unknown_prob=1.0).train()
    vectors = read(layer, ["李明"])[0]
    torch.testing.assert_close(vectors, read(made(), ["AA"])[0])
