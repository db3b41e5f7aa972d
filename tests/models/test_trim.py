"""Trimming keeps what it says, and what is kept reads as before."""

from dataclasses import replace

import numpy as np
import pytest
import tiny
import torch

from cige.data.vocabulary import N_SPECIAL, UNK
from cige.errors import ModelError
from cige.lexicon.lexicon import Lexicon
from cige.models.model import LatticeModel
from cige.models.trim import rename_labels, trim
from cige.tagging.prediction import predict_spans

TEXTS = [s.text for s in tiny.sentences(6, seed=4)]


def emissions(model: LatticeModel) -> torch.Tensor:
    with torch.no_grad():
        return model.tagger.eval()(model.encode(TEXTS)[0]).emissions


def test_a_model_with_room_for_everything_reads_as_before():
    model = tiny.trained_model()
    small = trim(model, n_words=10**6, n_bigrams=10**6)
    torch.testing.assert_close(emissions(small), emissions(model), atol=5e-3, rtol=1e-3)  # rows are float16 now
    assert small.vocabulary.n_tuned == (N_SPECIAL,) * 3


def test_the_first_words_with_a_vector_are_kept():
    model = tiny.trained_model()
    small = trim(model, n_words=3, n_bigrams=4)
    with_vector = [w for k, w in enumerate(model.lexicon) if model.vocabulary.word_rows[k] != UNK]
    assert list(small.lexicon) == with_vector[:3]
    assert len(small.vocabulary.bigrams) == 4
    assert small.vocabulary.n_rows[1:] == (N_SPECIAL + 4, N_SPECIAL + 3)
    assert set(small.vocabulary.bigrams.codes) <= set(model.vocabulary.bigrams.codes)


def test_each_kept_row_is_the_row_of_its_word_and_bigram():
    model = tiny.trained_model()
    small = trim(model, n_words=3, n_bigrams=4)
    old, new = model.tagger.encoder.embeddings, small.tagger.encoder.embeddings
    for word in small.lexicon:
        before = old.word(torch.tensor([int(model.vocabulary.word_rows[model.lexicon.id(word)])]))
        after = new.word(torch.tensor([int(small.vocabulary.word_rows[small.lexicon.id(word)])]))
        torch.testing.assert_close(after, before, atol=1e-3, rtol=1e-3)
    codes = small.vocabulary.bigrams.codes
    before = old.bigram(torch.from_numpy(model.vocabulary.bigrams.look_up(codes)))
    torch.testing.assert_close(
        new.bigram(torch.from_numpy(small.vocabulary.bigrams.look_up(codes))), before, atol=1e-3, rtol=1e-3
    )


def test_counts_and_gazetteers_go_with_their_words():
    model = tiny.model()
    base = list(model.lexicon)
    assert model.vocabulary.word_counts is None and model.vocabulary.word_groups is None
    small = trim(model, n_words=4, n_bigrams=4)
    assert small.vocabulary.word_counts is None and small.vocabulary.word_groups is None
    rows = model.vocabulary.word_rows.copy()
    rows[[0, 2]] = UNK  # two words without a vector, of which the second is in a gazetteer
    counts, groups = np.arange(len(base)) + 7, np.ones(len(base), np.int32)
    groups[[2, 3]] = 1 | 2
    vocabulary = replace(model.vocabulary, word_rows=rows, word_counts=counts, word_groups=groups, n_groups=2)
    small = trim(replace(model, vocabulary=vocabulary), n_words=4, n_bigrams=4)
    assert list(small.lexicon) == [base[k] for k in (1, 2, 3, 4)]
    assert small.vocabulary.word_counts.tolist() == [8, 9, 10, 11]
    assert small.vocabulary.word_groups.tolist() == [1, 3, 3, 1] and small.vocabulary.n_groups == 2
    assert small.vocabulary.word_rows.tolist() == [N_SPECIAL, UNK, N_SPECIAL + 1, N_SPECIAL + 2]


def test_words_of_gazetteers_stay_before_others():
    model = tiny.model()
    base = list(model.lexicon)
    groups = np.ones(len(base), np.int32)
    groups[[7, 9]] = 1 | 2
    vocabulary = replace(model.vocabulary, word_groups=groups, n_groups=2)
    for n_words, kept in ((4, (0, 1, 7, 9)), (2, (7, 9)), (1, (7,))):
        small = trim(replace(model, vocabulary=vocabulary), n_words=n_words, n_bigrams=4)
        assert list(small.lexicon) == [base[k] for k in kept]


@pytest.mark.parametrize("dtype", ["int8", "float16"])
def test_a_small_folder_gives_nearly_the_same(tmp_path, dtype):
    small = trim(tiny.trained_model(), n_words=10**6, n_bigrams=10**6)
    small.save(tmp_path / "small", table_dtype=dtype)
    torch.testing.assert_close(emissions(LatticeModel.load(tmp_path / "small")), emissions(small), atol=0.2, rtol=0.1)


def test_labels_get_other_names():
    model = tiny.trained_model()
    first = model.labels[0]
    renamed = rename_labels(trim(model, n_words=10, n_bigrams=10), {first: "新"})
    assert "新" in renamed.labels and first not in renamed.labels
    assert f"B-{first}" not in renamed.tagger.tags and "B-新" in renamed.tagger.tags
    assert len(renamed.tagger.tags) == len(model.tagger.tags)


def test_renamed_labels_find_the_same_entities(tmp_path):
    model = trim(tiny.trained_model(), n_words=100, n_bigrams=1000)
    names = {"LOC": "Z", "ORG": "A", "PER": "M"}  # another order of tags
    renamed = rename_labels(model, names)
    renamed.save(tmp_path / "renamed")
    loaded = LatticeModel.load(tmp_path / "renamed")

    def found(any_model: LatticeModel) -> list[list[str]]:
        batch, _ = any_model.encode(TEXTS)
        return [[any_model.tagger.tags[k] for k in path] for path in any_model.tagger.decode(batch)]

    expected = [[tag if tag == "O" else tag[:2] + names[tag[2:]] for tag in path] for path in found(model)]
    assert found(loaded) == expected
    assert any(tag != "O" for path in expected for tag in path)


def test_labels_of_words_are_kept_and_renamed_with_the_models():
    model = tiny.trained_model(typed=True)
    small = trim(model, n_words=100, n_bigrams=1000)
    names = {"LOC": "Z", "ORG": "A"}
    renamed = rename_labels(small, names)
    assert renamed.labels == ["A", "PER", "Z"] and "B-*" in renamed.tags
    assert renamed.vocabulary.word_labels == ("Z", "A", "PER"), "in the order of the rows"

    def found(made: LatticeModel, labels: dict[str, str]) -> list[list[tuple[int, int, str, float]]]:
        own = replace(made, lexicon=Lexicon.from_words(made.lexicon))
        for label, word in {"LOC": "龘靐", "ORG": "鱻麤", "STAR": "飍驫"}.items():
            own.lexicon.add(word, label=labels.get(label, label))
        spans = predict_spans(own, own.lattices([*TEXTS, "龘靐和鱻麤和飍驫"]))
        return [[(s.start, s.end, s.label, round(s.score, 4)) for s in of_text] for of_text in spans]

    expected = [[(*span[:2], names.get(span[2], span[2]), span[3]) for span in x] for x in found(model, {})]
    assert {"Z", "A", "STAR"} <= {span[2] for span in expected[-1]}
    # Rows of tables are float16 now.
    assert found(renamed, names) == [[(*span[:3], pytest.approx(span[3], abs=0.02)) for span in x] for x in expected]
    with pytest.raises(ModelError, match=r"cannot be called '\*'"):
        rename_labels(small, {"LOC": "*"})


def test_labels_that_do_not_exist_or_collide_are_refused():
    model = trim(tiny.trained_model(), n_words=10, n_bigrams=10)
    with pytest.raises(ModelError, match="no label XYZ; the model's labels are"):
        rename_labels(model, {"XYZ": "PER"})
    first, second = model.labels[:2]
    with pytest.raises(ModelError, match="two labels of one name"):
        rename_labels(model, {first: second})
