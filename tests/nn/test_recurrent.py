"""The bidirectional LSTM and GRU against their equations, one direction and one step at a time."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from cige.nn.recurrent import BiRecurrent, mirrored_positions, stretches, take

N_CHARS = [5, 1, 0, 3]


def lstm_step(cell: torch.nn.LSTM, x: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    h, c = state
    sums = cell.weight_ih_l0 @ x + cell.bias_ih_l0 + cell.weight_hh_l0 @ h + cell.bias_hh_l0
    let_in, forget, candidate, let_out = sums.chunk(4)
    c = torch.sigmoid(forget) * c + torch.sigmoid(let_in) * torch.tanh(candidate)
    return torch.sigmoid(let_out) * torch.tanh(c), c


def gru_step(cell: torch.nn.GRU, x: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    h, unused = state
    reset_x, update_x, new_x = (cell.weight_ih_l0 @ x + cell.bias_ih_l0).chunk(3)
    reset_h, update_h, new_h = (cell.weight_hh_l0 @ h + cell.bias_hh_l0).chunk(3)
    update = torch.sigmoid(update_x + update_h)
    new = torch.tanh(new_x + torch.sigmoid(reset_x + reset_h) * new_h)
    return (1 - update) * new + update * h, unused


def literal(model: BiRecurrent, x: list[Tensor], step) -> list[Tensor]:
    for from_left, from_right in zip(model.forward_layers, model.backward_layers, strict=True):
        read = []
        for cell, order in ((from_left, range(len(x))), (from_right, range(len(x) - 1, -1, -1))):
            state = (torch.zeros(cell.hidden_size), torch.zeros(cell.hidden_size))
            rows: dict[int, Tensor] = {}
            for t in order:
                state = step(cell, x[t], state)
                rows[t] = state[0]
            read.append(rows)
        x = [torch.cat([read[0][t], read[1][t]]) for t in range(len(x))]
    return x


@pytest.mark.parametrize("n_layers", [1, 2])
@pytest.mark.parametrize(("cell", "step"), [("lstm", lstm_step), ("gru", gru_step)])
@torch.no_grad()
def test_equals_its_equations_and_padding_is_zero(cell, step, n_layers):
    torch.manual_seed(0)
    model = BiRecurrent(in_width=4, out_width=6, n_layers=n_layers, cell=cell)
    x = torch.randn(len(N_CHARS), max(N_CHARS), 4)
    out = model(x, torch.tensor(N_CHARS))
    for row, inputs, n in zip(out, x, N_CHARS, strict=True):
        assert not row[n:].any()
        if n:
            torch.testing.assert_close(row[:n], torch.stack(literal(model, list(inputs[:n]), step)))


def test_mirroring_is_its_own_inverse_and_leaves_padding():
    positions = mirrored_positions(torch.tensor([3, 0, 4]), 4)
    assert positions.tolist() == [[2, 1, 0, 3], [0, 1, 2, 3], [3, 2, 1, 0]]
    x = torch.randn(3, 4, 2)
    torch.testing.assert_close(take(take(x, positions), positions), x)
    torch.testing.assert_close(take(x, positions)[0, 0], x[0, 2])


def test_odd_widths_are_refused():
    with pytest.raises(ValueError, match="even"):
        BiRecurrent(in_width=4, out_width=5)


def test_stretches_end_where_an_eighth_of_the_batch_has_ended():
    assert stretches([9, 9, 5, 4, 2, 0], 9) == [(0, 4, 6), (4, 9, 3)]  # 2 comes too early, 5 too soon after 4
    assert stretches([20, 12, 12, 6], 20) == [(0, 6, 4), (6, 12, 3), (12, 20, 1)]
    assert stretches([7, 7], 7) == [(0, 7, 2)] and stretches([0, 0], 0) == [(0, 0, 2)]
    assert stretches([30] * 15 + [10], 30) == [(0, 30, 16)]


@pytest.mark.parametrize("n_layers", [1, 2])
@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_a_batch_in_stretches_is_read_as_its_sentences_are(cell, n_layers):
    torch.manual_seed(0)
    model = BiRecurrent(in_width=4, out_width=6, n_layers=n_layers, cell=cell)
    lengths = torch.tensor([6, 20, 0, 13, 6, 1])
    x = torch.randn(len(lengths), 20, 4)
    assert len(stretches(sorted(lengths.tolist(), reverse=True), 20)) > 2
    model(x, lengths).square().sum().backward()
    together = [w.grad.clone() for w in model.parameters()]
    model.zero_grad()
    out = model(x, lengths)
    for row, inputs, n in zip(out, x, lengths.tolist(), strict=True):
        assert not row[n:].any()
        if n:
            alone = model(inputs[None, :n], torch.tensor([n]))[0]
            torch.testing.assert_close(row[:n], alone)
            alone.square().sum().backward()
    for w, expected in zip(model.parameters(), together, strict=True):
        torch.testing.assert_close(w.grad, expected, atol=1e-5, rtol=1e-4)
