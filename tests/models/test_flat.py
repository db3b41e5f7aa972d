"""FLAT: the flat view, the masks, and what must not change its output."""

from __future__ import annotations

from dataclasses import replace

import kernel_forms
import numpy as np
import pytest
import tiny
import torch
from tiny import emissions_of_each

from benchmarks.parts.literal_flat import literal_encode
from cige.data.batch import LatticeBatch, collate
from cige.data.tags import spans_to_tags
from cige.models.flat import RELEASED, FlatConfig, FlatView, flat_view, hidden_pairs
from cige.models.model import LatticeModel

TEXTS = ["人和药店设在南京市长江大桥", "李明", "", "中国银行的经理来自清华大学，今天天气很好"]
LONG = TEXTS[3] * 3
VARIANTS = [
    tiny.CONFIG,
    replace(tiny.CONFIG, n_layers=3),
    replace(tiny.CONFIG, distances=("hh",)),
    replace(tiny.CONFIG, mask_self_matched=True, max_distance=4),
    replace(tiny.CONFIG, use_words=False),
    replace(tiny.CONFIG, bigram_backoff=True),
    replace(tiny.CONFIG, char_words=True),
    replace(tiny.CONFIG, **RELEASED),
]


@pytest.fixture(params=kernel_forms.FORMS)
def form(request, monkeypatch) -> None:
    kernel_forms.use(request.param, monkeypatch)


def name_of(config: FlatConfig) -> str:
    changed = [k for k, v in vars(config).items() if v != getattr(tiny.CONFIG, k)]
    return "+".join(changed) or "default"


def made(config: FlatConfig = tiny.CONFIG) -> LatticeModel:
    """A model whose biases and boundary scores are not all zero, so that a missing one is seen."""
    model = tiny.model(config=config)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.tagger.parameters():
            if parameter.ndim == 1:
                parameter.add_(torch.randn(parameter.shape, generator=generator) * 0.1)
    return model


# the flat view


def test_view_puts_characters_then_words_then_padding():
    model = made()
    batch, lattices = model.encode(TEXTS)
    view = flat_view(batch)
    n_padded = batch.chars.shape[1]
    assert view.n_nodes.tolist() == [lattice.n_nodes for lattice in lattices]
    assert view.head.shape[1] == max(view.n_nodes) and lattices[0].n_words > 4
    for row, lattice in enumerate(lattices):
        n, w = lattice.n_chars, lattice.n_words
        rest = view.head.shape[1] - n - w
        starts, ends = lattice.words[:, 0].tolist(), lattice.words[:, 1].tolist()
        assert view.head[row].tolist() == [*range(n), *starts, *[0] * rest]
        assert view.tail[row].tolist() == [*range(n), *(end - 1 for end in ends), *[0] * rest]
        assert view.is_word[row].tolist() == [False] * n + [True] * w + [False] * rest
        assert view.mask[row].tolist() == [True] * (n + w) + [False] * rest
        assert view.source[row, : n + w].tolist() == [*range(n), *range(n_padded, n_padded + w)]


def test_view_without_words_holds_characters_alone():
    batch, lattices = made().encode(TEXTS)
    view = flat_view(batch, use_words=False)
    assert view.n_nodes.tolist() == [len(text) for text in TEXTS] and not view.is_word.any()
    for row, lattice in enumerate(lattices):
        n = lattice.n_chars
        for part in (view.head, view.tail, view.source):
            assert part[row, :n].tolist() == list(range(n))
        assert not view.head[row, n:].any() and not view.mask[row, n:].any()


def test_view_of_a_batch_without_words_or_characters():
    batch, _ = made().encode(["", "嗯"])
    view = flat_view(batch)
    assert view.n_nodes.tolist() == [0, 1] and view.mask.tolist() == [[False], [True]]
    batch, _ = made().encode([""])
    assert flat_view(batch).mask.tolist() == [[False]]


# the masks of Table 2


def literal_mask(view: FlatView, config: FlatConfig, row: int) -> list[list[bool]]:
    n = int(view.n_nodes[row])
    spans = [(int(view.head[row, k]), int(view.tail[row, k]), bool(view.is_word[row, k])) for k in range(n)]

    def is_hidden(i: int, j: int) -> bool:
        (head_i, tail_i, i_is_word), (head_j, tail_j, j_is_word) = spans[i], spans[j]
        if config.mask_self_matched and not i_is_word and j_is_word and head_j <= head_i <= tail_j:
            return True
        steps = 0  # from the one span to the other; 0 if they share a character
        if tail_i < head_j:
            steps = head_j - tail_i
        elif tail_j < head_i:
            steps = head_i - tail_j
        return config.max_distance is not None and steps > config.max_distance

    return [[is_hidden(i, j) for j in range(n)] for i in range(n)]


@pytest.mark.parametrize(
    "config",
    [
        FlatConfig(mask_self_matched=True),
        FlatConfig(max_distance=10),
        FlatConfig(max_distance=0),
        FlatConfig(mask_self_matched=True, max_distance=3),
    ],
    ids=name_of,
)
def test_masks_hide_what_they_say(config):
    batch, _ = made().encode([*TEXTS, LONG])
    view = flat_view(batch)
    hidden = hidden_pairs(view, config)
    n_hidden = 0
    for row, n in enumerate(view.n_nodes.tolist()):
        expected = literal_mask(view, config, row)
        assert hidden[row, :n, :n].tolist() == expected
        n_hidden += sum(map(sum, expected))
        assert not hidden[row].diagonal().any()  # every node sees itself, so no softmax is empty
    assert n_hidden > 10


def test_no_mask_is_none():
    batch, _ = made().encode(TEXTS)
    assert hidden_pairs(flat_view(batch), FlatConfig()) is None


def test_masked_pairs_get_no_attention(form):
    model = made(replace(tiny.CONFIG, mask_self_matched=True, max_distance=4))
    batch, _ = model.encode([LONG])
    _, view, (attention,) = model.tagger.encoder.encode(batch, with_attention=True)
    hidden = hidden_pairs(view, model.config)[0, : len(LONG)]  # characters alone ask
    assert float(attention[:, 0][:, hidden].abs().max()) == 0
    torch.testing.assert_close(attention[:, 0].sum(-1), torch.ones_like(attention[:, 0, :, 0]))


@pytest.mark.parametrize("setting", [{"mask_self_matched": True}, {"max_distance": 4}])
def test_each_mask_changes_the_output(setting):
    plain, masked = made(), made(replace(tiny.CONFIG, **setting))
    masked.tagger.load_state_dict(plain.tagger.state_dict())
    assert (emissions_of_each(plain, [LONG])[0] - emissions_of_each(masked, [LONG])[0]).abs().max() > 1e-3


# what the output depends on


def test_flat_head_sees_no_word_length():
    longer = {}
    for distances in (("hh",), ("hh", "th", "ht", "tt")):
        model = made(replace(tiny.CONFIG, distances=distances))
        batch, _ = model.encode([TEXTS[0]])
        changed = replace(batch, word_ends=batch.word_ends + 2)
        with torch.no_grad():
            before, after = model.tagger(batch).emissions, model.tagger(changed).emissions
        longer[distances] = float((before - after).abs().max())
    assert longer["hh",] == 0
    assert longer["hh", "th", "ht", "tt"] > 1e-3


@pytest.mark.parametrize("config", VARIANTS, ids=name_of)
def test_a_sentence_alone_and_in_a_batch_is_read_alike(form, config):
    model = made(config)
    texts = [*TEXTS, LONG]
    for text, together in zip(texts, emissions_of_each(model, texts), strict=True):
        (alone,) = emissions_of_each(model, [text])
        torch.testing.assert_close(together, alone, atol=1e-5, rtol=0)


@pytest.mark.parametrize("level", kernel_forms.LEVELS)
def test_both_forms_give_the_same(level, monkeypatch):
    kernel_forms.use(level, monkeypatch)
    for config in VARIANTS:
        model = made(config)
        compiled = emissions_of_each(model, TEXTS)
        with monkeypatch.context() as patch:
            kernel_forms.use("torch", patch)
            for a, b in zip(compiled, emissions_of_each(model, TEXTS), strict=True):
                torch.testing.assert_close(a, b, atol=1e-5, rtol=0, msg=lambda m, c=config: f"{name_of(c)}: {m}")


@pytest.mark.parametrize("config", VARIANTS, ids=name_of)
def test_the_order_of_words_does_not_matter(form, config):
    model = made(config)
    encoded = model.vocabulary.encode(model.lattices([LONG])[0])
    order = np.random.default_rng(0).permutation(len(encoded.words))
    moved = replace(encoded, words=encoded.words[order], starts=encoded.starts[order], ends=encoded.ends[order])
    with torch.no_grad():
        before, after = (model.tagger(collate([x])).emissions for x in (encoded, moved))
    torch.testing.assert_close(before, after, atol=1e-5, rtol=0)


def test_words_count_and_without_words_they_do_not():
    for config, expected in ((tiny.CONFIG, True), (replace(tiny.CONFIG, use_words=False), False)):
        model = made(config)
        batch, _ = model.encode([TEXTS[0]])
        with torch.no_grad():
            with_words = model.tagger(batch).emissions
            without = model.tagger(replace(batch, n_words=torch.zeros_like(batch.n_words))).emissions
        assert ((with_words - without).abs().max() > 1e-3) == expected


def test_a_users_words_count_and_share_one_vector():
    model = made()
    text = "轩辕龘靐说话"
    (before,) = emissions_of_each(model, [text])
    model.lexicon.add("轩辕")
    (one,) = emissions_of_each(model, [text])
    assert (one - before).abs().max() > 1e-3
    model.lexicon.remove("轩辕")
    model.lexicon.add("无关", "轩辕")  # another id
    torch.testing.assert_close(emissions_of_each(model, [text])[0], one, atol=0, rtol=0)
    model.lexicon.remove("轩辕")
    model.lexicon.add("龘靐")
    batch, (lattice,) = model.encode([text])
    assert lattice.words.tolist() == [[2, 4, len(model.lexicon) + 1]]
    user_vector = model.tagger.encoder.embeddings.word.tuned[2]
    assert torch.equal(model.tagger.encoder.embeddings.word(batch.words)[0, 0], user_vector)


def test_a_users_word_that_is_a_base_word_is_two_nodes():
    model = made()
    (before,) = emissions_of_each(model, [TEXTS[0]])
    model.lexicon.add("药店")
    batch, _ = model.encode([TEXTS[0]])
    places = list(zip(batch.word_starts[0].tolist(), batch.word_ends[0].tolist(), strict=True))
    assert places.count((2, 4)) == 2
    assert (emissions_of_each(model, [TEXTS[0]])[0] - before).abs().max() > 1e-3


# the equations


@pytest.mark.parametrize("n_layers", [1, 2])
@pytest.mark.parametrize("distances", [("hh", "th", "ht", "tt"), ("hh",)])
def test_equals_the_literal_transcription(form, n_layers, distances):
    model = made(replace(tiny.CONFIG, n_layers=n_layers, distances=distances))
    batch, _ = model.encode([*TEXTS[:2], LONG])
    with torch.no_grad():
        out = model.tagger.encoder(batch)
        expected = literal_encode(model.tagger.encoder, batch)
    torch.testing.assert_close(out[batch.char_mask], expected[batch.char_mask], atol=1e-5, rtol=0)


def training_batch(model: LatticeModel) -> LatticeBatch:
    model.lexicon.add("李明")
    known = tiny.sentences(30)
    ids = {tag: k for k, tag in enumerate(model.tagger.tags)}
    tags = [np.array([ids[t] for t in spans_to_tags(len(s.text), s.spans)]) for s in known]
    return collate([model.vocabulary.encode(x) for x in model.lattices([s.text for s in known])], tags)


@pytest.mark.parametrize("config", [c for c in VARIANTS if c.use_words], ids=name_of)
def test_gradient_reaches_every_parameter(form, config):
    model = made(config)
    batch = training_batch(model)
    batch = replace(batch, bigrams=batch.bigrams.masked_fill(batch.bigrams == batch.bigrams[0, 0], 1))  # an unknown one
    model.tagger.loss(batch).backward()
    dead = [k for k, p in model.tagger.named_parameters() if p.requires_grad and (p.grad is None or not p.grad.any())]
    assert dead == []
    assert all(p.grad.isfinite().all() for p in model.tagger.parameters() if p.grad is not None)


def test_several_layers_each_report_their_attention():
    model = made(replace(tiny.CONFIG, n_layers=3))
    batch, _ = model.encode(TEXTS)
    features, view, attention = model.tagger.encoder.encode(batch, with_attention=True)
    assert features.shape == (4, batch.chars.shape[1], tiny.CONFIG.width) and len(attention) == 3
    n = view.head.shape[1]
    asking = [n, n, batch.chars.shape[1]]  # in the last layer characters alone
    assert [a.shape for a in attention] == [(tiny.CONFIG.n_heads, 4, n_asking, n) for n_asking in asking]
    assert not torch.equal(attention[0], attention[1])
    again, _, nothing = model.tagger.encoder.encode(batch, with_attention=False)
    assert nothing == [] and torch.equal(again, features)  # kept only where asked for


def test_the_default_is_the_papers_form():
    config = FlatConfig()
    assert (config.n_heads, config.head_width, config.width, config.ff_width, config.n_layers) == (8, 20, 160, 480, 1)
    assert config.distances == ("hh", "th", "ht", "tt") and config.scale_scores and config.residual
    assert not set(RELEASED.items()) & set(vars(config).items())


def test_labels_of_words_are_added_to_the_words_alone() -> None:
    plain, typed = tiny.model(), tiny.model(typed=True)
    for made in (plain, typed):
        made.lexicon.add("龘龘", label="LOC")
        made.lexicon.add("李明", label="STAR")
    texts = ["李明来自龘龘", "北京李明", ""]
    labels = typed.encode(texts)[0].word_labels
    assert labels.tolist() == [[4, 0, 1], [0, 4, 0], [0, 0, 0]]
    assert plain.encode(texts)[0].word_labels.tolist() == [[1, 0, 1], [0, 1, 0], [0, 0, 0]]
    encoders = [made.tagger.encoder for made in (plain, typed)]
    theirs = encoders[0].state_dict()
    encoders[1].load_state_dict(theirs | {"word_labels.weight": torch.zeros(5, typed.config.width)})
    batch = typed.encode(texts)[0]
    with torch.no_grad():
        before, untrained = (encoder(batch) for encoder in encoders)
        assert torch.equal(before, untrained), "labels that nobody trained change nothing"
        encoders[1].word_labels.weight[1:] = torch.randn(4, typed.config.width)
        words = encoders[1].word_input(batch) - encoders[0].word_input(batch)
        expected = encoders[1].word_labels.weight[labels] * (labels > 0)[..., None]
        torch.testing.assert_close(words, expected, atol=1e-5, rtol=1e-5)
        changed = (encoders[1](batch) - before).abs().amax((1, 2))
        assert (changed[:2] > 1e-3).all()
        without = replace(batch, word_labels=None)
        assert torch.equal(encoders[1](without), before)


def test_the_vector_of_no_label_is_never_trained() -> None:
    typed = tiny.model(typed=True)
    typed.lexicon.add("李明", label="STAR")
    batch = replace(typed.encode(["李明来自北京"])[0], tags=torch.zeros(1, 6, dtype=torch.long))
    typed.tagger.loss(batch).backward()
    gradient = typed.tagger.encoder.word_labels.weight.grad
    assert not gradient[:4].any() and gradient[4].any()


def test_labels_of_words_come_back_with_the_model(tmp_path) -> None:
    typed = tiny.trained_model(typed=True)
    typed.lexicon.add("龘靐", label="STAR")
    typed.save(tmp_path / "model")
    again = LatticeModel.load(tmp_path / "model")
    assert again.vocabulary.word_labels == tuple(tiny.LABELS) and again.labels == tiny.LABELS
    assert again.tags == typed.tags and "S-*" in again.tags
    assert again.lexicon.user_entries == typed.lexicon.user_entries
    texts = ["龘靐来自北京"]
    np.testing.assert_array_equal(again.emissions(again.lattices(texts)), typed.emissions(typed.lattices(texts)))
