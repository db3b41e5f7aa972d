"""What the recurrence does to its inputs; its values and gradients are held in tests/models/test_lattice_lstm.py."""

from __future__ import annotations

from dataclasses import fields

import pytest
import torch

from cige.data.batch import LatticeBatch
from cige.nn import lattice_recurrence as module
from cige.nn.lattice_recurrence import LatticeInputs, WordSteps, lattice_recurrence, trace, word_steps

H, T, B = 3, 4, 2


def example(*, n_gates: int = 4, with_words: bool = True) -> tuple[LatticeInputs, WordSteps]:
    """Sentences of four and three characters; the first has the words [0, 2) and [1, 4), the second [0, 3)."""
    chars = torch.ones(B, T, dtype=torch.int64)
    starts, ends = torch.tensor([[0, 1], [0, 0]]), torch.tensor([[2, 4], [3, 0]])
    n_words = torch.tensor([2, 1]) if with_words else torch.tensor([0, 0])
    batch = LatticeBatch(
        chars=chars, bigrams=chars, n_chars=torch.tensor([4, 3]), words=torch.ones_like(starts), word_starts=starts,
        word_ends=ends, word_counts=starts, word_groups=starts, n_words=n_words, texts=("字" * 4, "字" * 3),
    )  # fmt: skip
    steps = word_steps(batch)
    generator = torch.Generator().manual_seed(0)
    n = len(steps.word)
    shapes = [(2, T, B, n_gates * H), (n, 3 * H), (n, H), (2, H, n_gates * H), (2, H, 3 * H), (2, H, H)]
    return LatticeInputs(*(torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes)), steps


def copied(inputs: LatticeInputs) -> LatticeInputs:
    return LatticeInputs(*(getattr(inputs, field.name).clone() for field in fields(inputs)))


def unchanged(inputs: LatticeInputs, before: LatticeInputs) -> dict[str, bool]:
    return {
        field.name: torch.equal(getattr(inputs, field.name), getattr(before, field.name)) for field in fields(inputs)
    }


@pytest.mark.parametrize("n_gates", [3, 4])
@pytest.mark.parametrize("with_words", [False, True])
def test_gates_are_overwritten_only_where_no_gradient_is_wanted(n_gates, with_words):
    inputs, steps = example(n_gates=n_gates, with_words=with_words)
    before = copied(inputs)
    leaf = inputs.chars.requires_grad_()
    with_gradient = lattice_recurrence(inputs, steps)
    with_gradient.sum().backward()
    assert leaf.grad.abs().sum() > 0 and all(unchanged(inputs, before).values())
    inputs.chars.requires_grad_(False)
    with torch.no_grad():
        without = lattice_recurrence(inputs, steps)
    torch.testing.assert_close(without, with_gradient.detach())
    changed = {"chars", "words", "links"} if with_words else {"chars"}
    assert {name for name, same in unchanged(inputs, before).items() if not same} == changed


def test_a_run_without_a_gradient_keeps_nothing_for_one(monkeypatch):
    inputs, steps = example()
    calls = []
    usual = module._Recurrence.apply
    monkeypatch.setattr(module._Recurrence, "apply", lambda *given: calls.append(given) or usual(*given))
    with torch.no_grad():
        lattice_recurrence(inputs, steps)
    assert not calls
    lattice_recurrence(inputs, steps)
    assert len(calls) == 1


@pytest.mark.parametrize("in_place", [False, True])
def test_a_trace_holds_the_inputs_memory_only_in_place(in_place):
    inputs, steps = example()
    before = copied(inputs)
    run = trace(inputs, steps, in_place=in_place)
    for name in ("chars", "words", "links"):
        assert (getattr(run, name).data_ptr() == getattr(inputs, name).data_ptr()) == in_place
    assert all(unchanged(inputs, before).values()) != in_place
    expected = trace(copied(before), steps, in_place=not in_place)
    for name, value in vars(expected).items():
        assert torch.equal(getattr(run, name), value), name


def test_steps_where_no_word_ends_cost_no_product(monkeypatch):
    """Products with the words' states are made at the steps where a word ends, and at no other, in both passes."""
    inputs, steps = example()
    calls = []
    usual = module._add_product
    monkeypatch.setattr(module, "_add_product", lambda out, x, weights, n: calls.append(n) or usual(out, x, weights, n))
    ending = [n for n in steps.n_words if sum(n) for _ in range(2)]  # words, then links
    assert len(ending) < 2 * T
    inputs.chars.requires_grad_()
    hidden = lattice_recurrence(inputs, steps)
    assert calls == ending
    calls.clear()
    hidden.sum().backward()
    assert calls == ending[::-1]


@pytest.mark.parametrize("n", [(2, 0), (0, 2)])
def test_a_direction_in_which_no_word_ends_is_left_out(n):
    x, weights = torch.randn(2, H), torch.randn(H, H)
    out = torch.zeros(2, H)
    module._add_product(out, x, [weights if count else None for count in n], n)
    torch.testing.assert_close(out, x @ weights)
