"""Encodings of positions and distances."""

from __future__ import annotations

import math

import pytest
import torch

from cige.nn.sinusoid import sinusoid

DISTANCES = [-300, -7, -1, 0, 1, 2, 40]


@pytest.mark.parametrize("width", [2, 8, 14])
def test_interleaved_is_the_formula_of_vaswani(width):
    table = sinusoid(torch.tensor(DISTANCES), width, "interleaved")
    for row, p in zip(table.tolist(), DISTANCES, strict=True):
        expected = []
        for k in range(width // 2):
            angle = p / 10000 ** (2 * k / width)
            expected += [math.sin(angle), math.cos(angle)]
        assert row == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("width", [4, 8, 14])
def test_concatenated_has_sines_first_and_other_frequencies(width):
    table = sinusoid(torch.tensor(DISTANCES), width, "concatenated")
    half = width // 2
    for row, p in zip(table.tolist(), DISTANCES, strict=True):
        angles = [p * 10000 ** (-k / (half - 1)) for k in range(half)]
        expected = [math.sin(a) for a in angles] + [math.cos(a) for a in angles]
        assert row == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("form", ["interleaved", "concatenated"])
def test_two_numbers_are_one_wave(form):
    assert sinusoid(torch.tensor([0, 1]), 2, form).flatten().tolist() == pytest.approx(
        [0, 1, math.sin(1), math.cos(1)], abs=1e-6
    )
