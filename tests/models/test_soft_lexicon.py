"""SoftLexicon: its input set by set and its LSTM step by step."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import tiny
import torch
from torch import Tensor

from cige.data.vocabulary import USER
from cige.lattice.lattice import Lattice
from cige.models.model import LatticeModel
from cige.models.soft_lexicon import SoftLexiconConfig

CONFIG = SoftLexiconConfig(lstm_width=12, embed_dropout_prob=0.0, word_dropout_prob=0.0, output_dropout_prob=0.0)
TEXTS = ["人和药店设在南京市长江大桥", "李明", "请中国银行的罕见经理来自清华大学，今天天气很好"]
VARIANTS: list[dict[str, Any]] = [
    {},
    {"n_layers": 2},
    {"weighting": "smoothed", "smoothing": 2.0},
    {"tune_words": False},
    {"use_bigrams": True},
    {"use_words": False},
]


def made(**settings: Any) -> LatticeModel:
    model = tiny.model(config=replace(CONFIG, **settings), architecture="soft_lexicon")
    model.lexicon.add("罕见经理")
    model.lexicon.add("银行")  # a base word too
    return model


def slow_input(model: LatticeModel, lattice: Lattice, t: int) -> Tensor:
    """§3.2: the character's vectors, then those of B, M, E and S."""
    weights = {k: v.detach() for k, v in model.tagger.encoder.state_dict().items()}
    config, vocabulary = model.config, model.vocabulary
    rows = vocabulary.encode(lattice)

    def row(table: str, k: int) -> Tensor:
        both = torch.cat([weights[f"embeddings.{table}.tuned"], weights[f"embeddings.{table}.fixed"].float()])
        return both[k]

    parts = [row("char", rows.chars[t])] + ([row("bigram", rows.bigrams[t])] if config.use_bigrams else [])
    if not config.use_words:
        return torch.cat(parts)
    sets: dict[str, list[tuple[Tensor, float]]] = {"B": [], "M": [], "E": [], "S": []}
    for start, end, word in lattice.words.tolist():
        if start <= t < end:
            name = "B" if t == start else "E" if t == end - 1 else "M"
            if word >= lattice.n_base:
                sets[name].append((row("word", USER), vocabulary.user_count))
            else:
                sets[name].append((row("word", vocabulary.word_rows[word]), int(vocabulary.word_counts[word])))
    sets["S"].append((row("char_word", rows.chars[t]), 1))
    for name, members in sets.items():
        if not members:
            sets[name] = [(weights["soft_lexicon.none"], 1)]
        elif config.weighting == "counts" and all(z == 0 for _, z in members):
            sets[name] = [(e, 1) for e, _ in members]
    b, factor = (config.smoothing, 1) if config.weighting == "smoothed" else (0, 4)
    total = sum(z + b for members in sets.values() for _, z in members)
    return torch.cat([*parts, *(sum(factor * (z + b) / total * e for e, z in m) for m in sets.values())])


def slow_lstm(weights: dict[str, Tensor], name: str, inputs: list[Tensor]) -> list[Tensor]:
    """§3.3: gates in the order input, forget, cell, output."""
    w = {k.removeprefix(f"{name}."): v for k, v in weights.items() if k.startswith(f"{name}.")}
    h = c = torch.zeros(w["weight_hh_l0"].shape[1])
    states = []
    for x in inputs:
        gates = w["weight_ih_l0"] @ x + w["bias_ih_l0"] + w["weight_hh_l0"] @ h + w["bias_hh_l0"]
        i, f, g, o = gates.chunk(4)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        states.append(h)
    return states


@pytest.mark.parametrize("settings", VARIANTS, ids=lambda s: "+".join(s) or "default")
def test_equals_its_equations(settings):
    model = made(**settings)
    batch, lattices = model.encode(TEXTS)
    weights = {k: v.detach() for k, v in model.tagger.encoder.state_dict().items()}
    with torch.no_grad():
        features = model.tagger.encoder(batch)
    for row, lattice in enumerate(lattices):
        x = [slow_input(model, lattice, t) for t in range(lattice.n_chars)]
        for k in range(model.config.n_layers):
            from_left = slow_lstm(weights, f"lstm.forward_layers.{k}", x)
            from_right = slow_lstm(weights, f"lstm.backward_layers.{k}", x[::-1])[::-1]
            x = [torch.cat(both) for both in zip(from_left, from_right, strict=True)]
        torch.testing.assert_close(features[row, : lattice.n_chars], torch.stack(x), atol=1e-5, rtol=1e-5)


def test_read_words_is_the_share_of_a_word_in_the_sets():
    model = made()
    batch, lattices = model.encode(TEXTS)
    with torch.no_grad():
        _, weights = model.tagger.encoder.read_words(batch)
    sets = model.tagger.encoder.word_sets(batch)
    for row, lattice in enumerate(lattices):
        for t, of_char in enumerate(sets.listed(row, lattice.n_chars)):
            expected = [0.0] * batch.words.shape[1]
            for member in (m for members in of_char.values() for m in members if m.word is not None):
                expected[member.word] += member.weight
            assert weights[row, t].tolist() == pytest.approx(expected, abs=1e-6)
            assert sum(expected) < 1  # the character itself has a part, and NONE


def test_a_users_word_counts_like_a_frequent_one():
    """As much as a word of the mean count, more than a rare one (ranks, not figures)."""
    model = made()
    assert model.vocabulary.user_count > 1
    batch, (lattice,) = model.encode(["罕见经理"])
    sets = model.tagger.encoder.word_sets(batch)
    (user,) = lattice.is_user.nonzero()[0]
    assert float(sets.shares[0, 0, user]) == pytest.approx(
        model.vocabulary.user_count / (model.vocabulary.user_count + 3)
    )


def test_without_words_there_are_none():
    model = made(use_words=False)
    batch, _ = model.encode(TEXTS)
    assert model.tagger.encoder.word_sets(batch) is None
    assert model.tagger.encoder.lstm.forward_layers[0].input_size == 12
    assert not model.tagger.encoder.read_words(batch)[1].any()


def test_settings_that_cannot_be():
    assert "lstm_width is 7" in replace(CONFIG, lstm_width=7).problems()[0]
    assert "smoothing is -0.5" in replace(CONFIG, smoothing=-0.5).problems()[0]
    assert SoftLexiconConfig().problems() == []
