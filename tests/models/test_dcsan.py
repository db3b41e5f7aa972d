"""DCSAN against its equations, sentence by sentence and character by character; its switches and its maps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import tiny
import torch
from slow_dcsan import Slow
from torch import Tensor, nn

from cige.data.batch import LatticeBatch
from cige.data.vocabulary import UNK
from cige.models.dcsan import RELEASED, DcsanConfig, DcsanEncoder
from cige.models.model import LatticeModel
from cige.nn.embeddings import InputSizes

NO_DROPOUT = {f"{name}_dropout_prob": 0.0 for name in ("embed", "word", "cross", "fusion", "attention", "ff", "output")}
CONFIG = DcsanConfig(width=24, n_cross_heads=3, n_self_heads=2, n_layers=2, ff_width=20, **NO_DROPOUT)
TEXTS = ["人和药店设在南京市长江大桥", "李明", "请中国银行的罕见经理来自清华大学，今天天气很好"]
TABLE_3 = [
    {"cross_attention": False},
    {"fusion": "sum"},
    {"self_attention": False},
    {"use_words": False, "self_attention": False},
]
VARIANTS: list[dict[str, Any]] = [
    {},
    *TABLE_3,
    {"use_words": False},
    {"fusion": "vector_gate"},
    {"cross_query": "chars"},
    {"cross_query": "chars", "cross_activation": True, "cross_output_projection": False},
    {"weighting": "counts"},
    {"smoothing": 3.0},
    RELEASED | {"n_self_heads": 3},
]


def made(**settings: Any) -> LatticeModel:
    """A model with a user's word, whose biases are not all zero, so that a missing one is seen."""
    model = tiny.model(config=replace(CONFIG, **settings), architecture="dcsan")
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.tagger.parameters():
            if parameter.ndim == 1:
                parameter.add_(torch.randn(parameter.shape, generator=generator) * 0.3)
    model.lexicon.add("罕见经理")
    model.lexicon.add("银行")  # a base word too
    return model


def named(settings: dict[str, Any]) -> str:
    return "+".join(settings) or "default"


@pytest.mark.parametrize("settings", VARIANTS, ids=named)
def test_equals_its_equations(settings):
    model = made(**settings)
    batch, lattices = model.encode(TEXTS)
    assert lattices[2].is_user.sum() == 2
    with torch.no_grad():
        features = model.tagger.encoder(batch)
    for row, lattice in enumerate(lattices):
        expected = Slow(model, lattice).features()
        torch.testing.assert_close(features[row, : lattice.n_chars], expected, atol=2e-5, rtol=1e-4)


def test_the_tables_are_not_all_alike():
    """Or the slow definition would not see which table a character or word is read from."""
    model = made()
    lattice = model.lattices([TEXTS[2]])[0]
    slow = Slow(model, lattice)
    rows = {slow.char_row(t) for t in range(slow.n)}
    assert UNK in rows and len(rows) > 10
    counts = [slow.member(tuple(word))[1] for word in lattice.words.tolist()]
    assert len(set(counts)) > 2


# switches


@pytest.mark.parametrize("settings", [s for s in VARIANTS if s], ids=named)
def test_every_switch_changes_the_result(settings):
    plain, other = made(), made(**settings)
    shared = {k: v for k, v in plain.tagger.state_dict().items() if k in other.tagger.state_dict()}
    own = other.tagger.state_dict()
    other.tagger.load_state_dict({**own, **{k: v for k, v in shared.items() if own[k].shape == v.shape}})
    with torch.no_grad():
        a, b = (m.tagger(m.encode(TEXTS[:1])[0]).emissions for m in (plain, other))
    assert not torch.allclose(a, b, atol=1e-4)


def test_rows_of_table_3_lack_what_they_remove():
    parts = [{k.split(".")[0] for k, _ in made(**s).tagger.encoder.named_parameters()} for s in ({}, *TABLE_3)]
    full, no_cross, no_gate, no_self, nothing = parts
    assert full - no_cross == {"cross"} and full - no_gate == {"fusion"} and full - no_self == {"layers"}
    assert nothing == {"embeddings", "char_projection"}
    assert all(p <= full for p in parts)


def test_without_attention_a_character_is_read_alone():
    model = made(use_words=False, self_attention=False)
    with torch.no_grad():
        ab, b = (model.tagger(model.encode([text])[0]).emissions[0] for text in ("北京", "京"))
    torch.testing.assert_close(ab[1], b[0])


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"n_cross_heads": 5}, "model.width is 24, expected a multiple of model.n_cross_heads"),
        ({"n_self_heads": 8}, "model.n_self_heads: 8 heads in width 24"),
        ({"smoothing": -1.0}, "model.smoothing is -1.0, expected 0 or more"),
    ],
)
def test_settings_that_contradict_each_other(settings, complaint):
    (found,) = replace(CONFIG, **settings).problems()
    assert found.startswith(complaint)
    assert CONFIG.problems() == [] and DcsanConfig().problems() == []
    assert DcsanConfig(use_words=False, n_cross_heads=7).problems() == []


def test_the_defaults_are_the_papers():
    config = DcsanConfig()
    assert (config.width, config.n_cross_heads, config.n_self_heads, config.n_layers) == (768, 8, 4, 2)


# what it shows


@pytest.mark.parametrize("query", ["words", "chars"])
def test_maps_are_those_of_the_equations(query):
    model = made(cross_query=query)
    batch, lattices = model.encode(TEXTS)
    encoder: DcsanEncoder = model.tagger.encoder
    maps = encoder.attention_maps(batch)
    assert maps.cross is not None and maps.cross.shape == (3, 3, batch.chars.shape[1], batch.chars.shape[1])
    assert [m.shape[0] for m in maps.layers] == [2, 2]
    for row, lattice in enumerate(lattices):
        slow, n = Slow(model, lattice), lattice.n_chars
        slow.features()
        torch.testing.assert_close(maps.cross[:, row, :n, :n], slow.cross_map, atol=1e-5, rtol=1e-4)
        for layer in maps.layers:
            torch.testing.assert_close(layer[:, row, :n, :n].sum(-1), torch.ones(2, n))
    assert not maps.cross.requires_grad
    assert made(cross_attention=False).tagger.encoder.attention_maps(batch).cross is None


@pytest.mark.parametrize("fusion", ["gate", "vector_gate", "sum"])
@pytest.mark.parametrize("query", ["words", "chars"])
def test_what_was_read_from_words(fusion, query):
    """The gate's share of a character's own sets, and where characters ask, what they drew from those of others."""
    model = made(cross_query=query, fusion=fusion)
    batch, lattices = model.encode(TEXTS)
    with torch.no_grad():
        features, weights = model.tagger.encoder.read_words(batch)
        sets = model.tagger.encoder.word_sets(batch)
    torch.testing.assert_close(features, model.tagger.encoder(batch))
    for row, lattice in enumerate(lattices):
        slow = Slow(model, lattice)
        slow.features()
        for t in range(lattice.n_chars):
            g = 0.5 if fusion == "sum" else slow.gates[t]
            for w, (start, end, _) in enumerate(lattice.words.tolist()):
                share = [float(sets.words[row, j, :, w].sum()) for j in range(lattice.n_chars)]
                assert (share[t] > 0) == (start <= t < end)
                expected = (1 - g) * share[t]
                if query == "chars":
                    attended = slow.cross_map.mean(0)[t].tolist()
                    expected += g * sum(a * s for a, s in zip(attended, share, strict=True))
                assert float(weights[row, t, w]) == pytest.approx(expected, abs=1e-5)


def test_sets_of_a_sentence_as_table_4_lists_them():
    model = tiny.model(config=CONFIG, architecture="dcsan")
    model.lexicon.add("江大桥")
    batch, (lattice,) = model.encode(["长江大桥"])
    sets = model.tagger.encoder.word_sets(batch).listed(0, 4)

    def spelled(t: int) -> str:
        def text(member) -> str:
            if member.word is None:
                return lattice.text[t]
            start, end, _ = lattice.words[member.word]
            return lattice.text[start:end]

        return "; ".join(f"{k}:{','.join(sorted(map(text, v))) or 'none'}" for k, v in sets[t].items())

    assert spelled(0) == "B:长江,长江大桥; M:none; E:none; S:长"
    assert spelled(1) == "B:江大桥; M:长江大桥; E:长江; S:江"
    assert spelled(3) == "B:none; M:none; E:大桥,江大桥,长江大桥; S:桥"
    assert made(use_words=False).tagger.encoder.word_sets(batch) is None


class Features(nn.Module):
    """What stands for a BERT: a vector for each character."""

    width = 5

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(400, self.width)

    def forward(self, batch: LatticeBatch) -> Tensor:
        return self.table(batch.chars)


def test_a_bert_stands_beside_the_characters():
    plain = tiny.model(config=CONFIG, architecture="dcsan")
    sizes = InputSizes(n_rows=plain.vocabulary.n_rows, n_tuned=plain.vocabulary.n_tuned, widths=(12, 10, 8))
    encoder = DcsanEncoder(config=replace(CONFIG, bert="a bert"), sizes=sizes, features=Features())
    batch, _ = plain.encode(TEXTS)
    encoder(batch).square().mean().backward()
    assert encoder.char_projection.in_features == 12 + 5
    assert encoder.features.table.weight.grad.abs().sum() > 0
