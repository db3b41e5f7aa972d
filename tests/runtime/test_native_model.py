"""The runtime against PyTorch: every setting of FLAT, in NumPy and in C at every level that this processor has."""

from __future__ import annotations

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import tiny
import torch
from flat_variants import SMALL, TEXTS, VARIANTS
from hypothesis import given, settings
from hypothesis import strategies as st
from runtime_forms import FORMS

from cige.api import NER
from cige.entities.label_facts import LabelFacts
from cige.errors import ModelError
from cige.folders.hub import BUNDLED
from cige.folders.manifest import MANIFEST
from cige.lattice.lattice import build_lattice
from cige.models.flat import RELEASED, FlatConfig
from cige.models.model import LatticeModel
from cige.models.soft_lexicon_config import SoftLexiconConfig
from cige.runtime.native_model import NativeModel
from cige.tagging.prediction import decode_spans, predict_spans
from cige.tagging.selection import Selection

MORE = {
    "three layers, bias, masks": {
        "n_layers": 3,
        "position_score": "bias",
        "max_distance": 3,
        "mask_self_matched": True,
    },
    "raw keys, two layers": {"key_projection": False, "n_layers": 2, "attention_bias": True, "shared_layer_norm": True},
    "all of the input": {"bigram_backoff": True, "char_words": True, "n_layers": 2},
    "odd widths": {"n_heads": 3, "head_width": 6, "ff_width": 19},
    "many heads": {"n_heads": 20, "head_width": 2, "n_layers": 2},
    "one wide head": {"n_heads": 1, "head_width": 38, "n_layers": 2},
    "released, two layers, composed": RELEASED | {"n_layers": 2, "bigram_backoff": True, "char_words": True},
    "components": {"components": tiny.COMPONENTS},
    "components with all of the input": {
        "components": tiny.COMPONENTS,
        "bigram_backoff": True,
        "char_words": True,
        "word_labels": True,
        "gazetteers": True,
        "n_layers": 2,
    },
    "components without bigrams and words": {
        "components": tiny.COMPONENTS,
        "use_bigrams": False,
        "use_words": False,
    },
    "wide": {"n_heads": 8, "head_width": 20, "ff_width": 480},
}
LONG = "".join(s.text for s in tiny.sentences(12, seed=3))


def made(**changes: object) -> LatticeModel:
    """Random weights, every bias among them, so that nothing is right because it is zero."""
    model = tiny.model(config=FlatConfig(**{**SMALL, **changes}), typed=bool(changes.get("word_labels")))
    torch.manual_seed(1)
    if model.config.reads_word_labels:
        model.tagger.encoder.word_labels.weight.data[1:].normal_()
        model.lexicon.add("南京市", label="LOC")
        model.lexicon.add("说话", "经理", label="STAR")  # a type that the model does not know
    for name, parameter in model.tagger.named_parameters():
        if name.endswith("bias") or "norm" in name or name.startswith("crf"):
            parameter.data += 0.3 * torch.randn_like(parameter)
    model.lexicon.add("轩辕", "澜沧江", "轩辕澜沧江渊瀚海说话")
    return model


def differences(model: LatticeModel, other: NativeModel, texts: list[str]) -> tuple[float, float]:
    """The largest of emissions and of attention, padding left out."""
    lattices = model.lattices(texts)
    (emissions, attention), (own, read) = model.read_words(lattices), other.read_words(lattices)
    assert own.shape == emissions.shape and own.dtype == read.dtype == np.float32
    np.testing.assert_array_equal(other.emissions(lattices), own)
    largest = [0.0, 0.0]
    for row, lattice in enumerate(lattices):
        part = row, slice(lattice.n_chars)
        of_words = *part, slice(lattice.n_words)
        largest[0] = max(largest[0], float(np.abs(emissions[part] - own[part]).max(initial=0)))
        largest[1] = max(largest[1], float(np.abs(attention[of_words] - read[of_words]).max(initial=0)))
    return largest[0], largest[1]


@pytest.mark.parametrize("changes", (VARIANTS | MORE).values(), ids=(VARIANTS | MORE).keys())
def test_every_form_computes_what_pytorch_does(tmp_path, changes):
    model = made(**changes)
    model.save(tmp_path / "model")
    for form in FORMS:
        other = NativeModel.load(tmp_path / "model", kernels=form)
        for texts in (TEXTS, TEXTS[:1], TEXTS[1:2], TEXTS[3:4], [LONG, *TEXTS], TEXTS[:1] * 3):
            emissions, attention = differences(model, other, texts)
            assert emissions < 5e-5 and attention < 1e-5, (form, [len(text) for text in texts])


@pytest.mark.parametrize("dtype", [None, "float16", "int8"])
@pytest.mark.parametrize("form", FORMS)
def test_tables_of_every_type_are_read(tmp_path, dtype, form):
    made(bigram_backoff=True, char_words=True).save(tmp_path / "model", table_dtype=dtype)
    other = NativeModel.load(tmp_path / "model", kernels=form)
    emissions, _ = differences(LatticeModel.load(tmp_path / "model"), other, TEXTS)
    assert emissions < 5e-5


@pytest.fixture(scope="module")
def two_layers(tmp_path_factory):
    """A model, and the same in every form."""
    model, folder = made(n_layers=2, bigram_backoff=True), tmp_path_factory.mktemp("any") / "model"
    model.save(folder)
    return model, {form: NativeModel.load(folder, kernels=form) for form in FORMS}


CHARS = "李明在南京市长江大桥的中国银行经理请了轩辕澜沧渊龘𠮷 ab"


@settings(max_examples=20, deadline=None)
@given(texts=st.lists(st.text(CHARS, max_size=90), min_size=1, max_size=6))
def test_any_texts_in_any_batch(two_layers, texts):
    model, forms = two_layers
    for form, other in forms.items():
        emissions, attention = differences(model, other, texts)
        assert emissions < 5e-5 and attention < 1e-5, form


@pytest.mark.parametrize("scheme", ["BMES", "BIOES", "BIO"])
@pytest.mark.parametrize("constrained", [True, False])
@pytest.mark.parametrize("form", FORMS)
def test_spans_and_scores_are_those_of_pytorch(tmp_path, scheme, constrained, form):
    """Emissions far apart, so that the best tags do not hang on rounding, and random scores of the CRF."""
    model = tiny.model(config=FlatConfig(**SMALL, constrained=constrained), scheme=scheme, seed=2)
    torch.manual_seed(3)
    for parameter in model.tagger.crf.parameters():
        parameter.data += torch.randn_like(parameter)
    model.tagger.output.weight.data *= 6
    model.save(tmp_path / "model")
    other = NativeModel.load(tmp_path / "model", kernels=form)
    assert (other.tags, other.labels, other.scheme) == (model.tags, model.labels, model.scheme)
    lattices = model.lattices([*TEXTS, LONG, *(s.text for s in tiny.sentences(20, seed=5))])
    expected = decode_spans(model, model.emissions(lattices), lattices)
    assert (other.find_spans(lattices) is None) == (form == "off")
    found = predict_spans(other, lattices, batch_size=len(lattices))
    assert [[s._replace(score=0) for s in of_one] for of_one in found] == [
        [s._replace(score=0) for s in of_one] for of_one in expected
    ]
    assert sum(map(len, found)) > 20
    scores = ([s.score for of_one in x for s in of_one] for x in (found, expected))
    np.testing.assert_allclose(*scores, atol=1e-4)
    assert all(isinstance(s.start, int) and isinstance(s.score, float) for of_one in found for s in of_one)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("thresholds", [None, {"NAME": 0.01, "LOC": 0.3}], ids=["best", "all"])
def test_labels_reported_as_one_are_those_of_pytorch(two_layers, form, thresholds):
    """The form that reads spans itself answers so too, and it finds more than one label and one reading."""
    model, other = two_layers[0], two_layers[1][form]
    selection = Selection({"PER": "NAME", "ORG": "NAME", "LOC": "LOC"}, thresholds=thresholds)
    lattices = model.lattices([*TEXTS, *(s.text for s in tiny.sentences(8, seed=6))])
    expected = decode_spans(model, model.emissions(lattices), lattices, selection)
    found = predict_spans(other, lattices, selection, batch_size=len(lattices))
    if thresholds is not None:  # a span whose probability is a threshold may be on either side of it
        least = {name: p + 1e-4 for name, p in thresholds.items()}
        kept = [[s for s in of_one if s.score >= least[s.label]] for of_one in expected]
        found = [
            [s for s in of_one if (s.start, s.end, s.label) in {(k.start, k.end, k.label) for k in own}]
            for of_one, own in zip(found, kept, strict=True)
        ]
        expected = kept
    shapes = [[[(s.start, s.end, s.label) for s in of_one] for of_one in x] for x in (found, expected)]
    assert shapes[0] == shapes[1] and sum(map(len, found)) > 5
    scores = ([s.score for of_one in x for s in of_one] for x in (found, expected))
    np.testing.assert_allclose(*scores, atol=1e-4)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("labels", [[], ["LOC"], ["LOC", "STAR"]], ids=str)
def test_spans_by_labels_of_user_words_are_those_of_pytorch(tmp_path, form, labels):
    """A model that may find what it does not know the type of, with user words of types known and unknown."""
    model = tiny.model(config=FlatConfig(**SMALL), typed=True, seed=2)
    model.tagger.encoder.word_labels.weight.data[1:].normal_()
    model.tagger.output.weight.data *= 6
    for label in labels:
        model.lexicon.add(*{"LOC": ("南京市", "李明"), "STAR": ("说话", "清华")}[label], label=label)
    model.save(tmp_path / "model")
    other = NativeModel.load(tmp_path / "model", kernels=form)
    lattices = model.lattices([*TEXTS, *(s.text for s in tiny.sentences(20, seed=5))])
    expected, found = predict_spans(model, lattices), predict_spans(other, lattices)
    assert [[s._replace(score=0) for s in x] for x in found] == [[s._replace(score=0) for s in x] for x in expected]
    scores = ([s.score for of_one in x for s in of_one] for x in (found, expected))
    np.testing.assert_allclose(*scores, atol=1e-4)
    types = {s.label for of_one in found for s in of_one}
    assert ("STAR" in types) == ("STAR" in labels) and "*" not in types


@st.composite
def closed_texts(draw):
    """A text and closed stretches of it: at its edges, next to each other, or all of it."""
    text = draw(st.text(CHARS, max_size=60))
    cuts = sorted(draw(st.sets(st.integers(0, len(text)), max_size=8)) | {0, len(text)})
    return text, tuple(stretch for stretch in pairwise(cuts) if draw(st.booleans()))


@pytest.fixture(scope="module", params=["flat", "soft_lexicon"])
def limited(request, tmp_path_factory):
    """A model that finds much and allows little of it, in every form."""
    config = FlatConfig(**SMALL) if request.param == "flat" else SoftLexiconConfig(lstm_width=32)
    folder = tmp_path_factory.mktemp("limited") / "model"
    model = tiny.model(config=config, architecture=request.param, seed=2)
    model.tagger.output.weight.data *= 6
    model.label_facts = LabelFacts(max_lengths={model.labels[0]: 1, model.labels[1]: 2})
    model.save(folder)
    return model, {form: NativeModel.load(folder, kernels=form) for form in FORMS}


@settings(max_examples=30, deadline=None)
@given(texts=st.lists(closed_texts(), min_size=1, max_size=5))
def test_no_span_is_in_a_closed_stretch_or_too_long(limited, texts):
    model, forms = limited
    plain = model.lattices([text for text, _ in texts])
    lattices = [replace(lattice, closed=closed) for lattice, (_, closed) in zip(plain, texts, strict=True)]
    expected = decode_spans(model, model.emissions(lattices), lattices)
    for form, other in forms.items():
        assert (other.find_spans(lattices) is None) == (form == "off")
        found = predict_spans(other, lattices, batch_size=len(lattices))
        assert [[s._replace(score=0) for s in x] for x in found] == [[s._replace(score=0) for s in x] for x in expected]
        scores = ([s.score for of_one in x for s in of_one] for x in (found, expected))
        np.testing.assert_allclose(*scores, atol=1e-4)


def test_a_longer_sentence_and_a_longer_word_come_later(tmp_path):
    """Tables of relative spans grow while the model is in use."""
    model = made(n_layers=2)
    model.save(tmp_path / "model")
    for form in FORMS:
        other = NativeModel.load(tmp_path / "model", kernels=form)
        for text, word in (("李明", None), (LONG * 2, None), ("好", None), (LONG, LONG[3:60]), ("南京市", None)):
            if word is not None:
                model.lexicon.add(word)
            emissions, _ = differences(model, other, [text])
            assert emissions < 5e-5
        model.lexicon.remove(LONG[3:60])


def test_several_threads_use_one_model(tmp_path):
    """While its tables grow and characters are met for the first time."""
    model = made(bigram_backoff=True, n_layers=2)
    model.save(tmp_path / "model")
    texts = [(LONG * 3)[k : k + 2 + 11 * k % 190] for k in range(60)]
    lattices = [model.lattices([text]) for text in texts]
    expected = [predict_spans(model, one) for one in lattices]
    for form in [*FORMS, *[FORMS[-1]] * 8]:  # what threads get in each other's way with does not happen every time
        other = NativeModel.load(tmp_path / "model", kernels=form)
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda one, other=other: predict_spans(other, one), lattices))
        for own, theirs in zip(found, expected, strict=True):
            assert [(s.start, s.end, s.label) for s in own[0]] == [(s.start, s.end, s.label) for s in theirs[0]]


def test_the_bundled_model_reads_the_same_in_every_form():
    model = LatticeModel.load(BUNDLED)
    model.lexicon.add("人和药店设在重庆")
    texts = [s.text for s in tiny.sentences(30, seed=7)] + ["", "罗氏公司总部设在瑞士巴塞尔。" * 9, "靐" * 40]
    lattices = model.lattices(texts)
    expected = decode_spans(model, model.emissions(lattices), lattices)
    for form in FORMS:
        other = NativeModel.load(BUNDLED, kernels=form)
        emissions, attention = differences(model, other, texts)
        assert emissions < 1e-4 and attention < 1e-5
        found = predict_spans(other, lattices, batch_size=len(lattices))
        for own, theirs in zip(found, expected, strict=True):
            assert [(s.start, s.end, s.label) for s in own] == [(s.start, s.end, s.label) for s in theirs]
            np.testing.assert_allclose([s.score for s in own], [s.score for s in theirs], atol=1e-4)


def test_a_model_is_saved_with_the_words_of_now(tmp_path):
    model = made()
    model.save(tmp_path / "model", table_dtype="int8")
    opened = NativeModel.load(tmp_path / "model")
    opened.lexicon.add("龘靐鱻")
    opened.save(tmp_path / "copy")
    opened.save(tmp_path / "model")  # over the folder that is in use
    for name in ("copy", "model"):
        again, in_torch = NativeModel.load(tmp_path / name), LatticeModel.load(tmp_path / name)
        assert again.lexicon.user_words == in_torch.lexicon.user_words == (*model.lexicon.user_words, "龘靐鱻")
        assert differences(in_torch, again, TEXTS)[0] < 5e-5
        np.testing.assert_array_equal(again.emissions(model.lattices(TEXTS)), opened.emissions(model.lattices(TEXTS)))


def test_what_the_runtime_does_not_know_is_refused(tmp_path):
    tiny.model(config=replace(tiny.CONFIG)).save(tmp_path / "model")
    manifest = json.loads((tmp_path / "model" / MANIFEST).read_text(encoding="utf-8"))
    for changes in ({"architecture": "tener"}, {"config": manifest["config"] | {"bert": "somewhere"}}):
        shutil.rmtree(tmp_path / "other", ignore_errors=True)
        shutil.copytree(tmp_path / "model", tmp_path / "other")
        (tmp_path / "other" / MANIFEST).write_text(json.dumps(manifest | changes), encoding="utf-8")
        with pytest.raises(ModelError, match=r'needs PyTorch; .*pip install .*\[train\]"'):
            NativeModel.load(tmp_path / "other")


def test_damage_is_told(tmp_path):
    tiny.model().save(tmp_path / "model")
    weights = tmp_path / "model" / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[:-1])
    with pytest.raises(ModelError, match="damaged"):
        NativeModel.load(tmp_path / "model")
    weights.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(ModelError, match="sha256"):
        NativeModel.load(tmp_path / "model")


@pytest.mark.parametrize("form", FORMS)
def test_a_model_that_reads_no_labels_leaves_those_of_words_alone(tmp_path, form):
    made().save(tmp_path / "model")
    other = NativeModel.load(tmp_path / "model", kernels=form)
    texts = [*TEXTS, "轩辕在澜沧江"]
    before = other.emissions([build_lattice(text, other.lexicon.snapshot()) for text in texts])
    other.lexicon.add("轩辕", label="LOC")
    other.lexicon.add("澜沧江", label="STAR")
    lattices = [build_lattice(text, other.lexicon.snapshot()) for text in texts]
    assert lattices[-1].labelled_words
    np.testing.assert_array_equal(other.emissions(lattices), before)


@pytest.mark.parametrize("kernels", FORMS[1:])
def test_answers_depend_neither_on_the_batch_nor_on_what_was_read_before(kernels):
    """To the bit: bulk annotation gives the same bytes however its texts are divided among processes."""
    texts = [sentence.text for sentence in tiny.sentences(40, new_name_prob=0.5)]
    texts += ["", "😀" * 30, "长" * 700, "".join(texts) * 2]
    alone = [NER(NativeModel.load(BUNDLED, kernels=kernels))(text) for text in texts[::7]]
    ner = NER(NativeModel.load(BUNDLED, kernels=kernels))
    for batch_size in (1, 3, 16):
        assert list(ner.pipe(texts[::-1], batch_size=batch_size))[::-1][::7] == alone
