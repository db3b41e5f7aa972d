"""NFLAT against its equations, pair by pair."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import tiny
import torch
from torch import Tensor

from cige.data.batch import LatticeBatch
from cige.data.vocabulary import USER
from cige.lattice.lattice import Lattice
from cige.models.model import LatticeModel
from cige.models.nflat import RELEASED, NflatConfig, NflatEncoder
from cige.nn import native
from cige.nn.embeddings import InputSizes

CONFIG = NflatConfig(
    n_heads=3, head_width=8, n_self_heads=2, ff_width=20, embed_dropout_prob=0.0, word_dropout_prob=0.0,
    attention_dropout_prob=0.0, output_dropout_prob=0.0,
)  # fmt: skip
TEXTS = ["人和药店设在南京市长江大桥", "李明", "", "中国银行的经理", "罕"]
LONG = "".join(TEXTS) * 24  # 552 characters
SWITCHES = [
    {},
    RELEASED,
    {"scale_scores": True, "use_bigrams": False},
    {"order": "characters_first", "n_layers": 2},
    {"char_words": True},
    {"use_words": False},
    {"negative_distance": "wrapped"},
]


def made(*, double: bool = True, **changes: object) -> LatticeModel:
    model = tiny.model(config=replace(CONFIG, **changes), architecture="nflat")
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.tagger.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator) * 0.1)
    if double:
        model.tagger.double()
    return model


# ---- the equations


def literal_encode(encoder: NflatEncoder, batch: LatticeBatch, b: int) -> Tensor:
    """[T, D] of sentence b, with a tensor R_ij for each pair."""
    config, weights = encoder.config, {name: value.detach() for name, value in encoder.named_parameters()}
    n_chars, n_words = int(batch.n_chars[b]), int(batch.n_words[b])
    chars = encoder.embeddings.chars(batch)[b, :n_chars]
    if config.char_words:
        chars = torch.cat([chars, encoder.embeddings.char_words(batch)[b, :n_chars]], -1)
    x = [linear(c, weights, "char_projection") for c in chars]
    if not config.use_words:
        return torch.stack(literal_self_attention(weights, config, x))
    ends = [(None, None)]  # "no word"
    ends += zip(batch.word_starts[b, :n_words].tolist(), (batch.word_ends[b, :n_words] - 1).tolist(), strict=True)
    vectors = [weights["no_word"], *encoder.embeddings.words(batch)[b, :n_words]]
    words = [linear(w, weights, "word_projection") for w in vectors]
    if config.order == "characters_first":
        return torch.stack(literal_inter(weights, config, literal_self_attention(weights, config, x), words, ends))
    return torch.stack(literal_self_attention(weights, config, literal_inter(weights, config, x, words, ends)))


def literal_inter(
    weights: dict[str, Tensor], config: NflatConfig, x: list[Tensor], words: list[Tensor], ends: list
) -> list[Tensor]:
    weights = {n.removeprefix("inter."): v for n, v in weights.items() if n.startswith("inter.")}
    d, rows = config.head_width, []
    for i in range(len(x)):
        heads = []
        for h in range(config.n_heads):
            part = slice(h * d, (h + 1) * d)
            query, scores, values = linear(x[i], weights, "attention.query")[part], [], []
            for word, (head, tail) in zip(words, ends, strict=True):
                to_head, to_tail = (0, 0) if head is None else (i - head, i - tail)
                both = torch.cat([inter_encoding(to_head, config), inter_encoding(to_tail, config)])
                r = weights["attention.relation_key.weight"] @ linear(both, weights, "attention.relation.fusion").relu()
                key = (weights["attention.key.weight"] @ word)[part]
                score = (query + weights["attention.u"][h]) @ key + (query + weights["attention.z"][h]) @ r[part]
                scores.append(score / (math.sqrt(d) if config.scale_scores else 1))
                values.append(linear(word, weights, "attention.value")[part])
            probability = torch.softmax(torch.stack(scores), 0)
            heads.append(sum(p * v for p, v in zip(probability, values, strict=True)))
        rows.append(sub_layers(x[i], torch.cat(heads), weights))
    return rows


def literal_self_attention(weights: dict[str, Tensor], config: NflatConfig, x: list[Tensor]) -> list[Tensor]:
    for k in range(config.n_layers):
        of_layer = {n.removeprefix(f"layers.{k}."): v for n, v in weights.items() if n.startswith(f"layers.{k}.")}
        x = literal_self_layer(of_layer, config, x)
    return x


def literal_self_layer(weights: dict[str, Tensor], config: NflatConfig, x: list[Tensor]) -> list[Tensor]:
    d, rows = config.width // config.n_self_heads, []
    sign = -1 if config.reverse_distance else 1
    for t in range(len(x)):
        heads = []
        for h in range(config.n_self_heads):
            part = slice(h * d, (h + 1) * d)
            query = (weights["attention.query.weight"] @ x[t])[part]
            scores = []
            for j in range(len(x)):
                key = (weights["attention.key.weight"] @ x[j])[part]
                r = encoding(sign * (t - j), d, config)
                score = (query + weights["attention.u"][h]) @ key + (query + weights["attention.v"][h]) @ r
                if config.key_positions:
                    score = score + key @ encoding(sign * (j - t), d, config)
                scores.append(score / (math.sqrt(d) if config.scale_scores else 1))
            probability = torch.softmax(torch.stack(scores), 0)
            values = [(weights["attention.value.weight"] @ y)[part] for y in x]
            heads.append(sum(p * v for p, v in zip(probability, values, strict=True)))
        rows.append(sub_layers(x[t], torch.cat(heads), weights))
    return rows


def inter_encoding(distance: int, config: NflatConfig) -> Tensor:
    if distance < 0 and config.negative_distance == "wrapped":
        distance += 1025
    return encoding(distance, config.width, config)


def encoding(distance: int, width: int, config: NflatConfig) -> Tensor:
    """sin(n f_0), cos(n f_0), sin(n f_1), ..., f_i = 10000^(-2i / width).

    Or all sines first, f_i = 10000^(-i / (half - 1)).
    """
    half = width // 2
    if config.sinusoid == "concatenated":
        angles = [distance * 10000 ** (-i / (half - 1)) for i in range(half)]
        return torch.tensor([math.sin(a) for a in angles] + [math.cos(a) for a in angles]).double()
    angles = [distance * 10000 ** (-2 * i / width) for i in range(half)]
    return torch.tensor([wave(a) for a in angles for wave in (math.sin, math.cos)]).double()


def sub_layers(x: Tensor, read: Tensor, weights: dict[str, Tensor]) -> Tensor:
    """LN(y + FFN(y)) of y = LN(x + read)."""
    y = normalised(x + read, weights, "attention_norm")
    return normalised(y + linear(linear(y, weights, "ff_in").relu(), weights, "ff_out"), weights, "ff_norm")


def linear(x: Tensor, weights: dict[str, Tensor], name: str) -> Tensor:
    return weights[f"{name}.weight"] @ x + weights[f"{name}.bias"]


def normalised(x: Tensor, weights: dict[str, Tensor], name: str) -> Tensor:
    deviation = x - x.mean()
    return (
        deviation / torch.sqrt(deviation.square().mean() + 1e-5) * weights[f"{name}.weight"] + weights[f"{name}.bias"]
    )


@pytest.mark.parametrize("changes", SWITCHES, ids=str)
def test_equals_its_equations(changes):
    model = made(**changes)
    model.lexicon.add("市长江")  # crosses the limits of two others
    batch, _ = model.encode(TEXTS)
    encoder = model.tagger.encoder
    with torch.no_grad():
        found = encoder(batch)
        for b, n in enumerate(batch.n_chars.tolist()):
            if n:
                expected = literal_encode(encoder, batch, b)
                torch.testing.assert_close(found[b, :n], expected, atol=1e-6, rtol=1e-5)  # p is made in float32


@pytest.mark.parametrize("kernels", ["on", "off"])
def test_float32_equals_the_equations_with_and_without_the_compiled_kernel(kernels, monkeypatch):
    if kernels == "off":
        monkeypatch.setattr(native, "load", lambda: None)
    elif native.load() is None:
        pytest.skip("no compiled kernel")
    exact, model = made(), made(double=False)
    batch, _ = model.encode(TEXTS)
    with torch.no_grad():
        found, expected = (m.tagger.encoder(batch).float() for m in (model, exact))
    torch.testing.assert_close(found[batch.char_mask], expected[batch.char_mask], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("changes", [{}, RELEASED, {"order": "characters_first"}], ids=str)
def test_gradients_are_those_of_the_function(changes):
    """In double precision, for every weight and the vectors of characters, bigrams and words."""
    model = made(**changes)
    encoder, (batch, _) = model.tagger.encoder, model.encode(["南京市长江", "李明"])
    names = [n for n, p in encoder.named_parameters() if p.requires_grad]
    probe = torch.randn(2, 5, CONFIG.width, generator=torch.Generator().manual_seed(2)).double()
    probe *= batch.char_mask[:, :, None]

    def loss(*values: Tensor) -> Tensor:
        return (torch.func.functional_call(encoder, dict(zip(names, values, strict=True)), (batch,)) * probe).sum()

    values = [dict(encoder.named_parameters())[n].detach().clone().requires_grad_() for n in names]
    assert torch.autograd.gradcheck(loss, values, fast_mode=True)


@pytest.mark.parametrize("prob", [0.0, 0.3])
def test_training_without_and_with_attention_dropout_has_finite_gradients(prob):
    model = made(double=False, attention_dropout_prob=prob)
    model.tagger.train()
    batch, _ = model.encode(TEXTS)
    model.tagger.encoder(batch)[batch.char_mask].square().sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in model.tagger.encoder.parameters() if p.grad is not None)


# ---- what follows from the equations


def test_a_sentence_without_words_attends_to_no_word_alone():
    model = made()
    encoder, (batch, _) = model.tagger.encoder, model.encode(["罕见", "好"])
    assert not batch.n_words.any()
    with torch.no_grad():
        words = encoder.word_input(batch)
        read, probabilities = encoder.inter.attention(encoder.char_projection(encoder.read_chars(batch)), words, batch)
        value = encoder.inter.attention.value(words[:, :1])
    mask = batch.char_mask
    assert (probabilities[:, mask][:, :, 0] == 1).all() and (probabilities[:, mask][:, :, 1:] == 0).all()
    torch.testing.assert_close(read[mask], value.expand_as(read)[mask])


def test_no_word_keeps_a_share_and_the_rest_is_shown():
    model = made()
    batch, _ = model.encode(TEXTS)
    with torch.no_grad():
        _, to_words, _ = model.tagger.encoder.encode(batch)
        _, shown = model.tagger.encoder.read_words(batch)
    mask = batch.char_mask
    torch.testing.assert_close(to_words[:, mask].sum(-1), torch.ones(CONFIG.n_heads, int(mask.sum())).double())
    torch.testing.assert_close(shown[mask].sum(-1) + to_words.mean(0)[mask][:, 0], torch.ones(int(mask.sum())).double())
    assert (to_words[:, mask][:, :, 0] > 0).all()


def test_the_order_of_words_and_what_is_beyond_the_masks_change_nothing():
    model = made()
    batch, lattices = model.encode(TEXTS)
    turned = model.batch([replace(x, words=x.words[::-1].copy()) if x.n_base == x.n_words else x for x in lattices])
    with torch.no_grad():
        expected = model.tagger.encoder(batch)[batch.char_mask]
        torch.testing.assert_close(model.tagger.encoder(turned)[batch.char_mask], expected)
        noise = {"words": 5, "word_starts": 3, "word_ends": 9}
        changed = {k: getattr(batch, k).masked_fill(~batch.word_mask, v) for k, v in noise.items()}
        changed |= {k: getattr(batch, k).masked_fill(~batch.char_mask, 5) for k in ("chars", "bigrams")}
        torch.testing.assert_close(model.tagger.encoder(replace(batch, **changed))[batch.char_mask], expected)


@pytest.mark.parametrize("changes", [{}, RELEASED], ids=str)
def test_sentences_of_a_batch_are_independent(changes):
    model = made(**changes)
    texts = [*TEXTS, LONG[:70]]
    together, _ = model.encode(texts)
    with torch.no_grad():
        found = model.tagger.encoder(together)
        for row, text in zip(found, texts, strict=True):
            alone, _ = model.encode([text])
            torch.testing.assert_close(row[: len(text)], model.tagger.encoder(alone)[0, : len(text)])


@pytest.mark.parametrize("changes", [{}, RELEASED], ids=str)
def test_long_input(changes):
    """Beyond the 1,025 positions of the released table; in the middle, as the equations say."""
    model = made(double=False, **changes)
    text = LONG * 2
    batch, _ = model.encode([text])
    assert batch.chars.shape[1] > 1025 and batch.n_words[0] > 300
    with torch.no_grad():
        assert torch.isfinite(model.tagger.encoder(batch)).all()
    encoder = made(**changes).tagger.encoder
    with torch.no_grad():
        words = encoder.word_input(batch)
        x = encoder.char_projection(encoder.read_chars(batch))
        pairs = encoder.inter.attention.relation(batch)
    assert x.shape[1] == len(text) and words.shape[1] == 1 + batch.words.shape[1]
    fusion = encoder.inter.attention.relation.fusion
    heads, tails = batch.word_starts[0].tolist(), (batch.word_ends[0] - 1).tolist()
    for i, j in [(0, 300), (700, 5), (1100, 1), (3, 3)]:
        both = [inter_encoding(i - end, encoder.config) for end in (heads[j], tails[j])]
        row = pairs.relation[pairs.spans.index[0, i, 1 + j].long()]
        with torch.no_grad():
            torch.testing.assert_close(row, fusion(torch.cat(both)).relu(), atol=1e-6, rtol=1e-5)


def test_each_pair_reads_the_row_of_its_distances():
    model = made()
    batch, _ = model.encode(TEXTS)
    pairs = model.tagger.encoder.inter.attention.relation(batch)
    i = torch.arange(batch.chars.shape[1])[:, None]
    spans = pairs.spans
    for end, name in ((batch.word_starts, "hh"), (batch.word_ends - 1, "ht")):
        distance = spans.distance(name)[spans.index[:, :, 1:].long()]
        real = batch.word_mask[:, None].expand(distance.shape)
        assert torch.equal(distance[real], (i - end[:, None])[real])
    assert (spans.index[:, :, 0] == len(pairs.relation) - 1).all()
    reaches = torch.unique((batch.word_ends - batch.word_starts)[batch.word_mask])
    assert len(pairs.relation) <= (2 * batch.chars.shape[1] - 1) * (len(reaches) + 1) + 1  # once a batch, no [T, W, D]


def test_a_word_elsewhere_reaches_every_character():
    model = made()
    (lattice,) = model.lattices(["李明请了王小红说话"])
    with_word = Lattice(lattice.text, np.array([[0, 2, USER]], dtype=np.int32), 0)
    with torch.no_grad():
        before, after = (model.tagger.encoder(model.batch([x]))[0] for x in (lattice, with_word))
    assert ((before - after).abs().amax(1) > 1e-6).all()


@pytest.mark.parametrize(
    ("n_heads", "head_width", "n_self_heads", "released"),
    [(8, 16, 8, 300_928), (12, 16, 6, 660_288), (8, 32, 4, 1_158_912)],
)
def test_as_many_weights_as_the_released_network(n_heads, head_width, n_self_heads, released):
    """Less the biases of keys and of W_r, which cancel, and more the vector of "no word", a row of its table there."""
    width = n_heads * head_width
    config = NflatConfig(n_heads=n_heads, head_width=head_width, n_self_heads=n_self_heads, ff_width=2 * width)
    encoder = NflatEncoder(config=config, sizes=InputSizes(n_rows=(4,) * 3, n_tuned=(4,) * 3, widths=(50,) * 3))
    n_weights = sum(p.numel() for n, p in encoder.named_parameters() if not n.startswith("embeddings."))
    assert n_weights == released - 2 * width + 50


def test_the_maps_of_explanations_are_those_among_characters():
    model = made(n_layers=2)
    batch, _ = model.encode(TEXTS)
    maps = model.tagger.encoder.attention_maps(batch)
    assert maps.cross is None and [x.shape[:2] for x in maps.layers] == [(2, len(TEXTS))] * 2
    assert [name for name, *_ in maps.named()] == ["self-attention, layer 1", "self-attention, layer 2"]


def test_settings_that_do_not_fit_are_told():
    assert "model.n_self_heads 5, which do not fit" in replace(CONFIG, n_self_heads=5).problems()[0]
    assert not CONFIG.problems()
