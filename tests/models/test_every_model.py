"""What must hold for every architecture: padding, gradients, learning, saving, user words, empty cases."""

from __future__ import annotations

from dataclasses import fields, replace
from functools import cache

import numpy as np
import pytest
import tiny
import torch
from small_models import EVERY, SMALL, TEXTS, VARIANTS, WITHOUT_WORDS, labelled_batch, made
from tiny import emissions_of_each

from cige.data.tags import tags_to_spans
from cige.data.vocabulary import USER
from cige.lattice.lattice import Lattice
from cige.models.model import LatticeModel
from cige.models.registry import ARCHITECTURES, architecture

NOTHING_TO_DROP = {  # settings that all models share, of inputs that these do not read
    ("bert_crf", "embed_dropout_prob"),
    ("bert_crf, components", "embed_dropout_prob"),
    ("multi_digraph", "word_dropout_prob"),  # of words it reads the gazetteers alone
    ("lr_cnn, equations", "attention_dropout_prob"),  # the equations have no global state
} | {(name, "word_dropout_prob") for name in WITHOUT_WORDS}
NOTHING_TO_DROP |= {(name, "embed_dropout_prob") for name in EVERY if name.startswith("lebert")}


def dropouts_of(name: str) -> list[str]:
    config_class = architecture(VARIANTS[name][0] if name in VARIANTS else name).config_class()
    return [field.name for field in fields(config_class) if field.name.endswith("_dropout_prob")]


@cache
def without_dropout(name: str) -> LatticeModel:
    """One model for all tests of its dropouts, which leave its weights alone."""
    return made(name, **dict.fromkeys(dropouts_of(name), 0.0))


@pytest.mark.parametrize(
    ("name", "field"),
    [(name, field) for name in EVERY for field in dropouts_of(name) if (name, field) not in NOTHING_TO_DROP],
)
def test_each_dropout_drops_in_training_and_never_in_evaluation(name, field):
    plain, dropping = without_dropout(name), made(name, **dict.fromkeys(dropouts_of(name), 0.0) | {field: 0.5})
    dropping.tagger.load_state_dict(plain.tagger.state_dict())
    batch, _ = plain.encode(TEXTS)
    mask = batch.char_mask
    with torch.no_grad():
        plain.tagger.eval()
        expected = plain.tagger(batch).emissions[mask]
        assert torch.equal(dropping.tagger(batch).emissions[mask], expected)
        plain.tagger.train()
        dropping.tagger.train()
        torch.manual_seed(0)
        torch.testing.assert_close(plain.tagger(batch).emissions[mask], expected, atol=1e-5, rtol=0)
        first, second = (dropping.tagger(batch).emissions[mask] for _ in range(2))
    assert not torch.allclose(first, second, atol=1e-4) and not torch.allclose(first, expected, atol=1e-4)


def test_every_architecture_is_tried_here():
    assert set(SMALL) == set(ARCHITECTURES)


@pytest.mark.parametrize("name", EVERY)
def test_padding_changes_nothing(name):
    model = made(name)
    together = emissions_of_each(model, TEXTS)
    for text, row in zip(TEXTS, together, strict=True):
        torch.testing.assert_close(row, emissions_of_each(model, [text])[0], atol=1e-5, rtol=1e-5)
    reversed_order = emissions_of_each(model, TEXTS[::-1])[::-1]
    for row, same in zip(together, reversed_order, strict=True):
        torch.testing.assert_close(row, same, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", EVERY)
def test_sentences_that_are_empty_or_without_words(name):
    model = made(name)
    rows = emissions_of_each(model, ["", "罕", "罕见", TEXTS[0], ""])
    assert all(torch.isfinite(row).all() for row in rows)
    assert emissions_of_each(model, [""])[0].shape == (0, len(model.tagger.tags))
    torch.testing.assert_close(rows[1], emissions_of_each(model, ["罕"])[0], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", EVERY)
def test_every_weight_gets_a_finite_gradient(name):
    model = made(name)
    model.tagger.train()
    model.lexicon.add("欧阳修")
    model.tagger.loss(labelled_batch(model, tiny.sentences(12))).backward()
    weights = dict(model.tagger.encoder.named_parameters())
    trained = [(key, w) for key, w in weights.items() if w.requires_grad]
    assert len(trained) > 0 and all(w.requires_grad or key.startswith("features.") for key, w in weights.items())
    for key, weight in trained:
        assert weight.grad is not None, f"{key} has no part in the loss"
        assert torch.isfinite(weight.grad).all(), key
        assert weight.grad.abs().max() > 0, f"{key} never changes"


@pytest.mark.parametrize("name", [name for name in EVERY if "bert" not in name.lower()])  # it is float32
def test_gradients_equal_finite_differences(name):
    """Along one random direction over all weights but the tables: the loss (a float32) changes as its gradient says."""
    model = made(name)
    model.tagger.double()
    batch = labelled_batch(model, tiny.sentences(3))
    weights = [w for key, w in model.tagger.named_parameters() if w.requires_grad and not key.endswith("tuned")]
    torch.manual_seed(0)
    drawn = [torch.randn_like(w) for w in weights]
    length = torch.stack([d.norm() for d in drawn]).norm()
    direction = [d / length for d in drawn]
    slope = sum(
        float((g * d).sum())
        for g, d in zip(torch.autograd.grad(model.tagger.loss(batch), weights), direction, strict=True)
    )

    def loss_at(step: float) -> float:
        with torch.no_grad():
            for w, d in zip(weights, direction, strict=True):
                w.add_(d, alpha=step)
            value = float(model.tagger.loss(batch))
            for w, d in zip(weights, direction, strict=True):
                w.add_(d, alpha=-step)
        return value

    step = 5e-3
    assert (loss_at(step) - loss_at(-step)) / (2 * step) == pytest.approx(slope, rel=2e-2, abs=1e-3)


@pytest.mark.parametrize("name", EVERY)
def test_twenty_sentences_are_learnt_by_heart(name):
    model = made(name)
    sentences = tiny.sentences(20, seed=5)
    batch = labelled_batch(model, sentences)
    # Over a fixed random BERT the scores start small; what DCSAN learns is unstable at higher rates.
    learning_rate = 1e-2 if name == "dcsan" else 3e-2 if "bert" in name else 2e-2
    optimizer = torch.optim.Adam(model.tagger.parameters(), lr=learning_rate)
    gold = [sorted(s.spans, key=lambda x: x.start) for s in sentences]
    n_steps = 300 if name == "lebert, released" else 200  # over a fixed random BERT, it needs some more
    for step in range(n_steps):
        model.tagger.train()
        optimizer.zero_grad()
        model.tagger.loss(batch).backward()
        optimizer.step()
        if step % 2:
            model.tagger.eval()
            paths = model.tagger.decode(batch)
            found = [tags_to_spans([model.tagger.tags[k] for k in path], model.scheme) for path in paths]
            if [sorted(spans, key=lambda x: x.start) for spans in found] == gold:
                return
    pytest.fail(f"not learnt within {n_steps} steps")


@pytest.mark.parametrize("name", EVERY)
def test_a_saved_model_reads_alike(name, tmp_path):
    model = made(name)
    model.save(tmp_path / "m")
    again = LatticeModel.load(tmp_path / "m")
    assert again.architecture == model.architecture and again.config == model.config
    for row, same in zip(emissions_of_each(model, TEXTS), emissions_of_each(again, TEXTS), strict=True):
        torch.testing.assert_close(row, same, atol=1e-6, rtol=0)
    model.save(tmp_path / "small", table_dtype="int8")
    assert all(torch.isfinite(row).all() for row in emissions_of_each(LatticeModel.load(tmp_path / "small"), TEXTS))


@pytest.mark.parametrize("name", sorted(ARCHITECTURES))
def test_every_architecture_reads_components_of_characters(name, tmp_path):
    unknown = "龘罕爨齉"  # neither a vector nor components; the others have components alone
    model = made(name, components=tiny.COMPONENTS)
    plain = made(name)
    more = dict(model.tagger.named_parameters()).keys() - dict(plain.tagger.named_parameters()).keys()
    assert {key.rsplit(".", 2)[0] for key in more} == {"encoder.components"} and len(more) == 5
    model.tagger.loss(labelled_batch(model, tiny.sentences(8))).backward()
    for key, weight in model.tagger.encoder.components.named_parameters():
        assert weight.grad is not None and weight.grad.abs().max() > 0, key
    together = emissions_of_each(model, [*TEXTS, tiny.UNSEEN + unknown])
    assert not torch.allclose(
        together[-1][: len(tiny.UNSEEN)], emissions_of_each(model, [unknown * 2])[0][: len(tiny.UNSEEN)], atol=1e-4
    )
    model.save(tmp_path / "model")
    again = LatticeModel.load(tmp_path / "model")
    assert again.config == model.config and again.vocabulary.components.same_as(model.vocabulary.components)
    for row, same in zip(together, emissions_of_each(again, [*TEXTS, tiny.UNSEEN + unknown]), strict=True):
        torch.testing.assert_close(row, same, atol=1e-6, rtol=0)


@pytest.mark.parametrize("name", [name for name in EVERY if name not in WITHOUT_WORDS])
def test_a_users_word_reaches_the_model(name):
    """It changes the emissions of its sentence alone, by the shared vector, whatever its spelling."""
    model = made(name)
    text, other = "请罕见名字说话", "今天天气很好"
    before = emissions_of_each(model, [text, other])
    model.lexicon.add("罕见名字")
    after = emissions_of_each(model, [text, other])
    assert not torch.allclose(before[0], after[0], atol=1e-6)
    torch.testing.assert_close(before[1], after[1], atol=1e-5, rtol=1e-5)
    with torch.no_grad():
        model.tagger.encoder.embeddings.word.tuned[USER] += 1.0
    assert not torch.allclose(after[0], emissions_of_each(model, [text])[0], atol=1e-6)


@pytest.mark.parametrize("name", [name for name in EVERY if name not in WITHOUT_WORDS])
def test_a_user_may_list_a_word_that_the_lexicon_has(name):
    model = made(name)
    model.lexicon.add("长江大桥")
    lattices = model.lattices([TEXTS[0]])
    assert lattices[0].is_user.any()
    assert torch.isfinite(emissions_of_each(model, [TEXTS[0]])[0]).all()


@pytest.mark.parametrize("name", EVERY)
def test_what_was_read_from_words(name):
    model = made(name)
    batch, lattices = model.encode(TEXTS)
    with torch.no_grad():
        features, weights = model.tagger.encoder.read_words(batch)
        torch.testing.assert_close(features, model.tagger.encoder(batch))
    assert weights.shape == (*batch.chars.shape, batch.words.shape[1])
    assert (weights >= 0).all() and (weights.sum(2) <= 1 + 1e-5).all()
    assert (weights * ~batch.word_mask[:, None] == 0).all()
    assert (weights.sum() > 0) == (name not in WITHOUT_WORDS)
    assert sum(lattice.n_words for lattice in lattices) > 0


@pytest.mark.parametrize("name", [name for name in EVERY if name not in WITHOUT_WORDS])
def test_the_word_free_twin_reads_no_word(name):
    model = made(name, use_words=False)
    batch, lattices = model.encode(TEXTS)
    bare = model.batch([replace(x, words=x.words[:0]) for x in lattices])
    with torch.no_grad():
        torch.testing.assert_close(model.tagger(batch).emissions, model.tagger(bare).emissions)


@pytest.mark.parametrize("name", EVERY)
def test_nested_words_at_one_place(name):
    """Many words over one span of text, some of them twice."""
    model = made(name)
    (lattice,) = model.lattices(["南京市长江大桥"])
    dense = Lattice(lattice.text, np.repeat(lattice.words, 5, axis=0), lattice.n_base)
    with torch.no_grad():
        assert torch.isfinite(model.tagger(model.batch([dense, lattice])).emissions).all()
