"""LR-CNN: against its equations written as loops over characters, which words reach which layer, and its switches."""

from __future__ import annotations

from dataclasses import replace

import pytest
import tiny
import torch
from torch import Tensor, nn

from cige.data.vocabulary import USER
from cige.models.lr_cnn import BACKWARD, FORWARD, GlobalState, StreamGate, word_slots
from cige.models.lr_cnn_config import EQUATIONS, LrCnnConfig
from cige.models.model import LatticeModel

SMALL = LrCnnConfig(
    width=10, position_width=6, embed_dropout_prob=0.0, word_dropout_prob=0.0, state_dropout_prob=0.0,
    attention_dropout_prob=0.0,
)  # fmt: skip
TEXT = "南京市长江大桥，重庆人和药店"
VARIANTS: list[dict] = [
    {},
    EQUATIONS,
    {"n_passes": 1},
    {"n_passes": 3, "n_layers": 2},
    {"n_layers": 4},
    {"both_directions": False},
    {"shortcuts": False},
    {"global_state": False},
    {"convolve_states": False},
    {"long_words": False},
    {"use_positions": False, "use_bigrams": True},
    {"use_words": False},
]


def made(**settings) -> LatticeModel:
    return tiny.model(config=replace(SMALL, **settings), architecture="lr_cnn")


def affine(linear: nn.Linear, x: Tensor) -> Tensor:
    return linear.weight @ x + linear.bias


def gated(gate: StreamGate, width: int, own: Tensor, inputs: list[Tensor], feedback: Tensor | None) -> Tensor:
    """§3.1 and §3.2 at one character: u, C and F in the shares that their gates have of each number."""
    sums = affine(gate.sums, torch.cat([own, *inputs])).split(width)
    values, gates = [torch.tanh(sums[0]), own], [sums[1], sums[2]]
    if feedback is not None:
        values, gates = [*values, feedback], [*gates, sums[3]]
        gates = [g + f for g, f in zip(gates, affine(gate.feedback, feedback).split(width), strict=True)]
    scores = [torch.exp(torch.sigmoid(g)) for g in gates]
    return sum(score * value for score, value in zip(scores, values, strict=True)) / sum(scores)


def attended(part: GlobalState, states: list[Tensor], before: list[Tensor] | None) -> list[Tensor]:
    rows = []
    for t, x in enumerate(states):
        scores = [affine(part.query, x) @ affine(part.key, y) / len(x) ** 0.5 for y in states]
        shares = torch.stack(scores).softmax(0)
        read = sum(a * affine(part.value, y) for a, y in zip(shares, states, strict=True))
        row = part.norm(x + affine(part.output, read))
        if before is not None:
            z = torch.sigmoid(affine(part.update, torch.cat([row, before[t]])))
            row = z * row + (1 - z) * before[t]
        rows.append(row)
    return rows


def slow_features(model: LatticeModel, text: str) -> Tensor:
    """float[T, width] of one sentence."""
    encoder, config, n = model.tagger.encoder, model.config, len(text)
    batch, (lattice,) = model.encode([text])
    zero = torch.zeros(config.width)
    chars = list(encoder.embeddings.chars(batch)[0])
    if config.use_positions:
        wave = [[t / 10000 ** (2 * (k // 2) / config.position_width) for k in range(6)] for t in range(1, n + 1)]
        waves = [torch.tensor([a if k % 2 == 0 else a + torch.pi / 2 for k, a in enumerate(row)]).sin() for row in wave]
        chars = [torch.cat([c, w]) for c, w in zip(chars, waves, strict=True)]
    bottom = [torch.tanh(affine(encoder.input, c)) for c in chars]

    def word_vector(t: int, n_chars: int, *, forward: bool) -> Tensor:
        """The word of n_chars characters that begins or ends at t; longer ones too in the top layer."""
        found = []
        for k, (start, end, _) in enumerate(lattice.words.tolist()):
            fits = end - start == n_chars
            fits = fits or (config.long_words and n_chars == config.n_layers + 1 and end - start > n_chars)
            if fits and (start == t if forward else end == t + 1):
                found.append(encoder.embeddings.words(batch)[0, k])
        return sum(found) / len(found) if found else encoder.no_word

    feedback: list[Tensor] | None = None
    for _ in range(config.n_passes):
        layers = [bottom]
        whole = attended(encoder.whole, bottom, None) if config.global_state else None
        forward, backward = bottom, bottom  # C of the layer below, of either direction
        for layer in range(1, config.n_layers + 1):

            def at(rows: list[Tensor], t: int) -> Tensor:
                return rows[t] if 0 <= t < n else zero

            below = layers[-1]
            streams: list[list[Tensor]] = []
            convolution = encoder.layers[layer - 1].neighbours
            source = below if config.convolve_states else forward
            forward = [torch.tanh(affine(convolution[0], torch.cat([source[t], at(source, t + 1)]))) for t in range(n)]
            streams.append(forward)
            if config.both_directions:
                # the window [t - layer, t] out of [t - layer, t - 1] and [t - layer + 1, t]; a state of the layer
                # below stands where its window begins, a backward convolution where it ends
                source, reach = (below, layer) if config.convolve_states else (backward, 1)
                backward = [
                    torch.tanh(affine(convolution[1], torch.cat([at(source, t - reach), at(source, t - reach + 1)])))
                    for t in range(n)
                ]
                streams.append(backward)
            if config.shortcuts and layer > 1:
                for k in range(1 + config.both_directions):
                    rows = []
                    for t in range(n):
                        window = range(t, t + layer + 1) if k == 0 else range(t - layer, t + 1)
                        seen = torch.cat([at(bottom, j) for j in window])
                        rows.append(torch.tanh(affine(encoder.layers[layer - 1].shortcuts[k], seen)))
                    streams.append(rows)
            state = []
            for t in range(n):
                total = zero
                for k, rows in enumerate(streams):
                    is_forward = not config.both_directions or k % 2 == 0
                    inputs = [word_vector(t, layer + 1, forward=is_forward)] if config.use_words else []
                    inputs += [whole[t]] if whole is not None else []
                    fed = feedback[t] if feedback is not None else None
                    total = total + gated(encoder.gates[k], config.width, rows[t], inputs, fed)
                state.append(total)
            layers.append(state)
            if whole is not None:
                whole = attended(encoder.whole, state, whole)
        feedback = layers[-1]
    out = []
    for t in range(n):
        sums = torch.stack([rows[t].sum() for rows in layers])
        weights = torch.tanh(affine(encoder.scales.outer, torch.tanh(affine(encoder.scales.inner, sums)))).softmax(0)
        out.append(sum(a * rows[t] for a, rows in zip(weights, layers, strict=True)))
    return torch.stack(out)


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
@torch.no_grad()
def test_equals_the_equations(variant):
    model = made(**variant)
    tiny.vary_layer_norms(model)
    model.lexicon.add("药店，重庆", "长江", "大桥，重庆人和")  # one twice, two longer than any window
    for text in (TEXT, "李", "罕见"):
        batch, _ = model.encode([text])
        torch.testing.assert_close(model.tagger.encoder(batch)[0], slow_features(model, text), atol=1e-5, rtol=1e-4)


def test_words_stand_in_the_layer_of_their_length_where_they_begin_and_end():
    model = made()
    model.lexicon.add("大桥，重庆人和", "长江")
    batch, (lattice,) = model.encode([TEXT])
    slots = word_slots(batch, n_layers=3)[:, :, 0]  # [2, L, T, W]
    for k, (start, end, _) in enumerate(lattice.words.tolist()):
        layer = min(end - start - 2, 2)
        assert slots[FORWARD, :, :, k].nonzero().tolist() == [[layer, start]]
        assert slots[BACKWARD, :, :, k].nonzero().tolist() == [[layer, end - 1]]
    spans = lattice.words[:, :2].tolist()
    twice = [k for k, span in enumerate(spans) if spans.count(span) == 2]
    assert len(twice) == 2 and slots[FORWARD, 0, spans[twice[0]][0], twice].tolist() == [0.5, 0.5]
    fixed = word_slots(batch, n_layers=3, long_words=False)[:, :, 0]
    is_long = torch.tensor([end - start > 4 for start, end in spans])
    assert is_long.any() and not fixed[..., is_long].any() and fixed[..., ~is_long].any()


@torch.no_grad()
def test_a_long_user_word_reaches_the_model_unless_switched_off():
    name = "罕见名字很长"
    for long_words in (True, False):
        model = made(long_words=long_words)
        before = model.tagger(model.encode([f"请{name}说话"])[0]).emissions
        model.lexicon.add(name)
        batch, _ = model.encode([f"请{name}说话"])
        assert USER in batch.words
        changed = (model.tagger(batch).emissions - before).abs().max() > 1e-6
        assert bool(changed) == long_words


def test_every_convolution_is_trained_and_saved():
    """The slip of the released code: those of layers above the first in lists that no optimiser sees."""
    model = made()
    convolutions = [k for k in model.tagger.state_dict() if ".neighbours." in k or ".shortcuts." in k]
    assert len(convolutions) == 2 * (3 * 2 + 2 * 2)  # weight and bias
    model.tagger.encoder(model.encode([TEXT])[0]).square().sum().backward()
    trained = dict(model.tagger.named_parameters())
    assert all(trained[name].grad.abs().max() > 0 for name in convolutions)


@torch.no_grad()
def test_rethinking_lets_a_far_word_change_what_is_read():
    """F carries windows that grow with each pass: in one pass without G a character sees n_layers to either side."""
    settings = {"global_state": False, "use_positions": False}
    text = "请说话今天罕见名字很好啊啊啊"
    reach = {}
    for n_passes in (1, 2):
        model = made(n_passes=n_passes, **settings)
        before = model.tagger.encoder(model.encode([text])[0])
        model.lexicon.add("罕见名字")  # characters 5 to 8
        after = model.tagger.encoder(model.encode([text])[0])
        reach[n_passes] = set((after - before).abs().amax(-1)[0].gt(1e-7).nonzero()[:, 0].tolist())
    assert reach[1] == {5, 8} and reach[2] > reach[1]


@torch.no_grad()
def test_shares_are_where_words_begin_and_end():
    model = made()
    batch, (lattice,) = model.encode([TEXT])
    weights = model.tagger.encoder.read_words(batch)[1][0]
    for k, (start, end, _) in enumerate(lattice.words.tolist()):
        assert weights[:, k].nonzero()[:, 0].tolist() == [start, end - 1]


def test_settings_that_do_not_fit_are_told():
    problems = LrCnnConfig(n_layers=1, position_width=5).problems()
    assert [p.split(" is ")[0] for p in problems] == ["model.n_layers", "model.position_width"]
    assert LrCnnConfig().problems() == []
