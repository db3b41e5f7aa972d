"""PLT: against its equations written as loops over pairs of nodes, and what meets only through the pivot."""

from __future__ import annotations

from dataclasses import replace

import pytest
import tiny
import torch
from torch import Tensor

from cige.models.model import LatticeModel
from cige.models.plt import LatticeAttention, PltConfig

SMALL = PltConfig(
    n_heads=2, head_width=6, ff_width=10, gru_width=12, embed_dropout_prob=0.0, word_dropout_prob=0.0,
    attention_dropout_prob=0.0, ff_dropout_prob=0.0,
)  # fmt: skip
TEXT = "南京市长江大桥，重庆人和药店"
VARIANTS: list[dict] = [
    {},
    {"porous": False},
    {"relation_values": False},
    {"n_layers": 1},
    {"n_layers": 3},
    {"use_words": False},
    {"use_words": False, "porous": False},
]


def made(**settings) -> LatticeModel:
    return tiny.model(config=replace(SMALL, **settings), architecture="plt")


def relation(i: tuple[int, int], j: tuple[int, int]) -> int:
    """How j stands to i, both as the set of their characters: the order of the constants of nn.lattice_graph."""
    mine, other = set(range(*i)), set(range(*j))
    if mine == other:
        return 0
    if j[1] == i[0]:
        return 1
    if i[1] == j[0]:
        return 2
    if other < mine:
        return 3
    if mine < other:
        return 4
    if mine & other:
        return 5
    return 6 if j[1] < i[0] else 7


def attend(part: LatticeAttention, query: Tensor, keys: list[tuple[Tensor, int | None]]) -> Tensor:
    """One query over keys, each with its relation or None."""
    heads = []
    for h in range(part.n_heads):
        rows = slice(h * 6, h * 6 + 6)
        q = part.query.weight[rows] @ query
        scores, values = [], []
        for x, code in keys:
            key, value = part.key.weight[rows] @ x, part.value.weight[rows] @ x
            if code is not None:
                key = key + part.key_relations[code]
                value = value + part.value_relations[code] if part.value_relations is not None else value
            scores.append(q @ key / 6**0.5)
            values.append(value)
        shares = torch.stack(scores).softmax(0)
        heads.append(sum(a * v for a, v in zip(shares, values, strict=True)))
    return part.output.weight @ torch.cat(heads)


def sinusoid(place: int, width: int) -> Tensor:
    angles = [place / 10000 ** (2 * (k // 2) / width) for k in range(width)]
    return torch.tensor([torch.tensor(a).sin() if k % 2 == 0 else torch.tensor(a).cos() for k, a in enumerate(angles)])


def slow_features(model: LatticeModel, text: str) -> Tensor:
    """float[T, gru_width] of one sentence."""
    encoder, config = model.tagger.encoder, model.config
    batch, (lattice,) = model.encode([text])
    spans = [(t, t + 1) for t in range(len(text))]
    x = [encoder.char_projection(v) for v in encoder.embeddings.chars(batch)[0]]
    if config.use_words:
        words = lattice.words[:, :2].tolist()
        spans += [tuple(word) for word in words]
        x += [encoder.word_projection(v) for v in encoder.embeddings.words(batch)[0][: len(words)]]
    x = [v + sinusoid(span[0], config.width) for v, span in zip(x, spans, strict=True)]
    pivot = sum(x) / len(x)
    for layer in encoder.layers:
        if config.porous:
            pivot = layer.pivot_norm(pivot + attend(layer.pivot_attention, pivot, [(v, None) for v in [*x, pivot]]))
        new = []
        for i, v in enumerate(x):
            keys = [(other, relation(spans[i], spans[j])) for j, other in enumerate(x)]
            if config.porous:
                keys = [*((other, code) for other, code in keys if code < 6), (pivot, 6)]
            v = layer.attention_norm(v + attend(layer.attention, v, keys))
            new.append(layer.ff_norm(v + layer.ff_out(torch.relu(layer.ff_in(v)))))
        x = new
    return encoder.gru(torch.stack(x[: len(text)])[None], batch.n_chars)[0]


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
@torch.no_grad()
def test_equals_the_equations(variant):
    model = made(**variant)
    tiny.vary_layer_norms(model)
    model.lexicon.add("药店，重庆", "长江", "市长江")  # one twice: as the lexicon's word and as the user's
    for text in (TEXT, "李", "罕见"):
        batch, _ = model.encode([text])
        torch.testing.assert_close(model.tagger.encoder(batch)[0], slow_features(model, text), atol=1e-5, rtol=1e-4)


@torch.no_grad()
def test_what_is_far_is_read_through_the_pivot_alone():
    model = made(n_layers=1)
    batch, _ = model.encode([TEXT])
    _, (shares,), pairs = model.tagger.encoder.encode(batch)
    n_chars, n_nodes = len(TEXT), len(TEXT) + batch.words.shape[1]
    attention = torch.zeros(1, 2, n_nodes, n_nodes + 1)  # the pivot's column is the last
    for i, j, share in zip(pairs.edges.query.tolist(), pairs.edges.key.tolist(), shares, strict=True):
        attention[0, :, i, j] = share
    for i in range(n_chars):
        for j in range(n_chars):
            assert (attention[0, :, i, j] > 0).all() == (abs(i - j) <= 1)
    assert (attention[0, :, :n_chars, -1] > 0).all()

    def effect_on_the_end(model: LatticeModel) -> float:
        """How much the vector of the first character changes what the last one has before the GRU."""
        encoder, seen = model.tagger.encoder, []
        handle = encoder.gru.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0][0, -1].clone()))
        for chars in (batch.chars, torch.cat([batch.chars[:, 1:2], batch.chars[:, 1:]], 1)):
            encoder(replace(batch, chars=chars))
        handle.remove()
        return float((seen[0] - seen[1]).abs().max())

    assert effect_on_the_end(model) > 1e-5
    model.tagger.encoder.layers[0].pivot_norm.weight.zero_()  # a pivot that is the same whatever it read
    assert effect_on_the_end(model) == 0


@torch.no_grad()
def test_a_character_reads_words_that_it_meets():
    model = made(n_layers=1)
    batch, (lattice,) = model.encode([TEXT])
    weights = model.tagger.encoder.read_words(batch)[1][0]
    for k, (start, end, _) in enumerate(lattice.words.tolist()):
        met = set(range(start - 1, end + 1)) & set(range(len(TEXT)))
        assert set(torch.nonzero(weights[:, k])[:, 0].tolist()) == met


def test_odd_widths_are_refused():
    problems = PltConfig(gru_width=5, n_heads=3, head_width=5).problems()
    assert [p.split(" is ")[0] for p in problems] == ["model.gru_width", "model.n_heads * head_width"]
    assert PltConfig().problems() == []
