"""A tagger that starts from a trained one computes what that one does until it is trained."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tiny
import torch

from cige.data.vocabulary import N_SPECIAL, UNK
from cige.errors import ModelError
from cige.models.build import build_tagger
from cige.models.model import LatticeModel
from cige.models.registry import ARCHITECTURES
from cige.models.start import copy_weights, tables_of

TEXTS = ["李明在南京市长江大桥。", "好", "中国银行的经理来自清华大学，龘"]
NAMES = sorted(name for name in ARCHITECTURES if name not in ("bert_crf", "lebert"))  # no input without a BERT


def source_of(architecture: str) -> LatticeModel:
    return tiny.model(architecture=architecture, config=ARCHITECTURES[architecture].config_class()())


def started(source: LatticeModel, labels: list[str], texts: list[str]) -> LatticeModel:
    tables = tables_of(source, source.lattices(texts))
    torch.manual_seed(9)
    tagger = build_tagger(source.config, tables, labels, architecture=source.architecture, scheme=source.scheme)
    copy_weights(tagger, source)
    return replace(source, tagger=tagger.eval(), vocabulary=tables.vocabulary, labels=labels)


def emissions(model: LatticeModel) -> np.ndarray:
    snapshot = model.lexicon.snapshot()
    return model.emissions(model.lattices(TEXTS, snapshot))


@pytest.mark.parametrize("architecture", NAMES)
def test_same_labels_same_scores(architecture: str) -> None:
    source = source_of(architecture)
    source.lexicon.add("长江大桥。")  # a user's word too
    with torch.no_grad():
        for parameter in source.tagger.crf.parameters():  # zero at first, as those of a new CRF are
            parameter.copy_(torch.randn(parameter.shape, generator=torch.Generator().manual_seed(3)))
    made = started(source, source.labels, [*TEXTS, *(s.text for s in tiny.sentences())])
    np.testing.assert_allclose(emissions(made), emissions(source), atol=1e-5)
    for own, theirs in zip(made.tagger.crf.parameters(), source.tagger.crf.parameters(), strict=True):
        assert torch.equal(own, theirs)


def test_only_rows_of_the_new_text_are_trained() -> None:
    source = source_of("flat")
    made = started(source, source.labels, ["李明李明"])
    seen = {"李", "明"}
    known = {c for c in seen if source.vocabulary.chars.look_up(np.array([ord(c)]))[0] != UNK}
    assert made.vocabulary.n_tuned[0] == N_SPECIAL + len(known)
    assert made.vocabulary.n_rows == source.vocabulary.n_rows
    assert len(made.tagger.encoder.embeddings.char.tuned) == made.vocabulary.n_tuned[0]
    rows = made.vocabulary.chars.look_up(np.array([ord(c) for c in known]))
    assert (rows < made.vocabulary.n_tuned[0]).all()


def test_a_model_saved_small_can_be_started_from(tmp_path: Path) -> None:
    source = source_of("flat")
    source.save(tmp_path / "small", table_dtype="int8")
    small = LatticeModel.load(tmp_path / "small")
    made = started(small, small.labels, TEXTS)
    np.testing.assert_allclose(emissions(made), emissions(small), atol=1e-3)  # tables that stay are kept in float16
    assert made.vocabulary.n_tuned[0] > N_SPECIAL


def test_other_labels_keep_the_encoder() -> None:
    source = source_of("flat")
    made = started(source, ["GAME", "TEAM"], TEXTS)
    assert made.tagger.tags[:2] == ["O", "B-GAME"]
    with torch.no_grad():
        own, theirs = (m.tagger.encoder(m.encode(TEXTS)[0]) for m in (made, source))
    torch.testing.assert_close(own, theirs, atol=1e-5, rtol=0)


def test_a_further_label_leaves_the_scores_of_those_that_were_known() -> None:
    source = source_of("flat")
    with torch.no_grad():
        for parameter in source.tagger.crf.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=torch.Generator().manual_seed(3)))
    made = started(source, [*source.labels, "ZOO"], [*TEXTS, *(s.text for s in tiny.sentences())])
    shared = [made.tags.index(tag) for tag in source.tags]
    np.testing.assert_allclose(emissions(made)[:, :, shared], emissions(source), atol=1e-5)
    own, theirs = made.tagger.crf, source.tagger.crf
    assert torch.equal(own.transitions[shared][:, shared], theirs.transitions)
    assert torch.equal(own.start[shared], theirs.start) and torch.equal(own.end[shared], theirs.end)


def test_another_shape_is_refused() -> None:
    source = source_of("flat")
    tables = tables_of(source, source.lattices(TEXTS))
    wider = build_tagger(replace(source.config, ff_width=77), tables, source.labels)
    with pytest.raises(ModelError, match=r"ff_in.bias is \[480\] .*\[77\] .*leave them out"):
        copy_weights(wider, source)


def test_characters_as_words_cannot_come_from_a_model_without() -> None:
    source = source_of("flat")
    tables = tables_of(source, source.lattices(TEXTS))
    with pytest.raises(ModelError, match=r"model.char_words to false"):
        build_tagger(replace(source.config, char_words=True), tables, source.labels)


def test_labels_of_words_that_both_know_keep_what_they_mean() -> None:
    source = tiny.model(typed=True)
    with torch.no_grad():
        source.tagger.encoder.word_labels.weight[1:] = torch.randn(4, source.config.width)
    theirs = source.tagger.encoder.word_labels.weight
    labels = ["FOOD", "PER", "LOC"]
    tables = tables_of(source, source.lattices(TEXTS)).with_word_labels(labels)
    tagger = build_tagger(source.config, tables, labels)
    copy_weights(tagger, source, word_labels=labels)
    none, food, person, place, other = tagger.encoder.word_labels.weight
    assert not none.any() and not food.any()
    assert torch.equal(person, theirs[3]) and torch.equal(place, theirs[1]) and torch.equal(other, theirs[4])


def test_labels_of_words_are_learnt_anew_where_the_source_reads_none() -> None:
    source = tiny.model()
    tables = tables_of(source, source.lattices(TEXTS)).with_word_labels(source.labels)
    tagger = build_tagger(replace(source.config, word_labels=True), tables, source.labels)
    copy_weights(tagger, source, word_labels=source.labels)
    made = replace(source, tagger=tagger.eval(), vocabulary=tables.vocabulary)
    np.testing.assert_allclose(emissions(made), emissions(source), atol=1e-5)
    typed = tiny.model(typed=True)
    with pytest.raises(ModelError, match=r"encoder.word_labels.weight is \[5, 32\] .*none in the recipe"):
        copy_weights(tiny.model().tagger, typed)
