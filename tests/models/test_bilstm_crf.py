"""BiLSTM-CRF against its definition, a character at a time, scores of whole tag sequences included."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
import tiny
import torch
from torch import Tensor, nn

from cige.models.bilstm_crf import BiLstmCrfConfig
from cige.models.model import LatticeModel

CONFIG = BiLstmCrfConfig(lstm_width=8, embed_dropout_prob=0.0, output_dropout_prob=0.0)
TEXTS = ["人和药店设在南京市长江大桥", "李明", "", "中国银行的经理"]


def made(**settings: object) -> LatticeModel:
    return tiny.model(config=replace(CONFIG, **settings), architecture="bilstm_crf")


def run_lstm(cell: nn.LSTM, inputs: list[Tensor]) -> list[Tensor]:
    h = c = torch.zeros(cell.hidden_size)
    states = []
    for x in inputs:
        sums = cell.weight_ih_l0 @ x + cell.bias_ih_l0 + cell.weight_hh_l0 @ h + cell.bias_hh_l0
        let_in, forget, candidate, let_out = sums.chunk(4)
        c = torch.sigmoid(forget) * c + torch.sigmoid(let_in) * torch.tanh(candidate)
        h = torch.sigmoid(let_out) * torch.tanh(c)
        states.append(h)
    return states


def literal_emissions(model: LatticeModel, text: str) -> Tensor:
    encoder, tagger = model.tagger.encoder, model.tagger
    batch, _ = model.encode([text])
    x = list(encoder.embeddings.char(batch.chars)[0])
    if model.config.use_bigrams:
        x = [torch.cat(pair) for pair in zip(x, encoder.embeddings.bigram(batch.bigrams)[0], strict=True)]
    for left, right in zip(encoder.lstm.forward_layers, encoder.lstm.backward_layers, strict=True):
        states = zip(run_lstm(left, x), run_lstm(right, x[::-1])[::-1], strict=True)
        x = [torch.cat(pair) for pair in states]
    return torch.stack([tagger.output.weight @ row + tagger.output.bias for row in x])


@pytest.mark.parametrize("settings", [{}, {"n_layers": 2}, {"use_bigrams": True}], ids=str)
@torch.no_grad()
def test_equals_its_definition(settings):
    model = made(**settings)
    emissions = model.tagger(model.encode(TEXTS)[0]).emissions
    for row, text in zip(emissions, TEXTS, strict=True):
        if text:
            torch.testing.assert_close(row[: len(text)], literal_emissions(model, text), atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_the_best_tags_are_the_best_of_all_sequences():
    model = tiny.model(config=replace(CONFIG, constrained=False), architecture="bilstm_crf")
    crf, text = model.tagger.crf, "李明"
    for weight in (crf.transitions, crf.start, crf.end):
        weight.normal_()
    emissions = literal_emissions(model, text)
    first, second = max(
        itertools.product(range(emissions.shape[1]), repeat=2),
        key=lambda tags: float(
            crf.start[tags[0]]
            + emissions[0, tags[0]]
            + crf.transitions[tags]
            + emissions[1, tags[1]]
            + crf.end[tags[1]]
        ),
    )
    assert model.tagger.decode(model.encode([text])[0]) == [[first, second]]


@torch.no_grad()
def test_words_change_nothing():
    model = made()
    before = model.tagger(model.encode(TEXTS)[0]).emissions
    model.lexicon.add("药店设在", "国银")
    batch, lattices = model.encode(TEXTS)
    assert sum(int(lattice.is_user.sum()) for lattice in lattices) == 2
    torch.testing.assert_close(model.tagger(batch).emissions, before)
    assert model.tagger.encoder.embeddings.word is None and not model.tagger.encoder.read_words(batch)[1].any()


def test_a_width_that_two_directions_cannot_share_is_refused():
    assert "even" in replace(CONFIG, lstm_width=5).problems()[0] and not CONFIG.problems()
