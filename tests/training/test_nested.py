"""Training with `head: pair_grid`: from a recipe and nested annotations to a model that `cige.load` reads."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import nested_sentences
import numpy as np
import pytest
import tiny
import tiny_run
import torch

import cige
from cige.api import NER
from cige.cli import main
from cige.data import read_sentences, write_sentences
from cige.data.sentence import Sentence, Span
from cige.errors import DataError, RecipeError
from cige.models.pair_grid import GridTagger
from cige.runtime.native_grid import NativeGridModel
from cige.tagging.evaluation import evaluate
from cige.training.recipe import Recipe
from cige.training.setup import TooLongWarning, set_up
from cige.training.train import train

TEST = nested_sentences.sentences(150, seed=3)


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory) -> Path:
    folder = tiny_run.write_data_folder(tmp_path_factory.mktemp("data"))
    known = nested_sentences.sentences(300, seed=1)
    write_sentences(folder / "ner/tiny/nested.jsonl", known)
    write_sentences(folder / "ner/tiny/nested_dev.jsonl", nested_sentences.sentences(50, seed=2))
    chars = sorted({c for sentence in known for c in sentence.text})
    bigrams = sorted({s.text[i : i + 2] for s in known for i in range(len(s.text) - 1)})
    for name, words, width in (("char", chars, 12), ("bichar.min20", bigrams, 10), ("word", nested_sentences.WORDS, 8)):
        table = tiny.random_table(words, width, seed=len(name))
        counts = np.ones(len(words), np.int64)
        np.savez(folder / f"vectors/{name}.npz", words="\n".join(words), vectors=table.vectors, counts=counts)
    return folder


def recipe(*, head: str = "pair_grid", n_epochs: int = 2, file: str = "nested", **settings: object) -> Recipe:
    return tiny_run.tiny_recipe(
        n_epochs=n_epochs,
        data__train=f"ner/tiny/{file}.jsonl",
        batches__batch_size=16,
        **(
            {"recipe__head": head, "data__dev": "ner/tiny/nested_dev.jsonl", "optimizer__learning_rate": 0.005}
            | settings
        ),
    )


def test_a_grammar_of_nested_entities_is_learned(data_dir, tmp_path):
    settings = recipe(n_epochs=10, optimizer__learning_rate=0.01, pair_grid__head_width=16)
    result = train(settings, tmp_path / "run", data_dir=data_dir, show_progress=False)
    assert result.dev_f1 >= 0.99
    ner = cige.load(tmp_path / "run")
    assert isinstance(ner, NER) and isinstance(ner.model, NativeGridModel)
    assert evaluate(ner, TEST).report.f1 >= 0.99
    flat = ner([s.text for s in TEST], nested=False)
    assert all(a.end <= b.start for found in flat for a, b in pairwise(found))


def test_discontinuous_entities_are_learned(data_dir, tmp_path):
    write_sentences(data_dir / "ner/tiny/broken.jsonl", nested_sentences.sentences(300, seed=1, broken_share=0.4))
    write_sentences(data_dir / "ner/tiny/broken_dev.jsonl", nested_sentences.sentences(30, seed=2, broken_share=0.4))
    settings = recipe(
        file="broken",
        n_epochs=14,
        data__dev="ner/tiny/broken_dev.jsonl",
        optimizer__learning_rate=0.015,
        model__embed_dropout_prob=0.05,
        model__word_dropout_prob=0.05,
        pair_grid__scores="relations",
        pair_grid__pair_width=12,
        pair_grid__biaffine_width=24,
        pair_grid__grid_dropout_prob=0.0,
        pair_grid__predictor_dropout_prob=0.0,
    )
    train(settings, tmp_path / "run", data_dir=data_dir, show_progress=False)
    test = nested_sentences.sentences(150, seed=4, broken_share=0.4)
    ner = cige.load(tmp_path / "run")
    assert evaluate(ner, test).report.f1 >= 0.99
    answers = ner([s.text for s in test])
    broken = {(k, e.start, e.end, e.parts) for k, found in enumerate(answers) for e in found if e.parts}
    gold = {(k, s.start, s.end, s.parts) for k, sentence in enumerate(test) for s in sentence.spans if s.parts}
    assert len(broken & gold) >= 0.98 * len(broken | gold) > 0


def test_files_of_nested_entities_need_the_head(data_dir):
    with pytest.raises(DataError, match=r"overlaps another entity.*head: pair_grid"):
        set_up(recipe(head="crf"), seed=1, data_dir=data_dir)


def test_the_band_is_as_wide_as_the_longest_entity(data_dir):
    longest = max(s.end - s.start for x in nested_sentences.sentences(300, seed=1) for s in x.spans)
    assert set_up(recipe(), seed=1, data_dir=data_dir).tagger.band == longest
    with pytest.warns(TooLongWarning, match="training entities longer than 5 characters cannot be found"):
        assert set_up(recipe(pair_grid__max_length=5), seed=1, data_dir=data_dir).tagger.band == 5


def test_partial_annotations_are_refused(data_dir, tmp_path):
    write_sentences(data_dir / "ner/tiny/open.jsonl", [Sentence("北京", (Span(0, 2, "LOC|ORG"),))] * 3)
    with pytest.raises(DataError, match=r"label 'LOC\|ORG'.*head: crf"):
        train(recipe(file="open"), tmp_path / "run", data_dir=data_dir, show_progress=False)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"user_words__unknown_label_prob": 0.5, "model__word_labels": True},
            "user_words.unknown_label_prob needs head: crf",
        ),
        ({"pair_grid__head_width": 7}, "pair_grid.head_width is 7, expected an even number"),
        ({"pair_grid__max_length": 0}, "max_length is 0, expected at least 1"),
        ({"recipe__head": "crf", "pair_grid__head_width": 8}, "pair_grid has settings, but head is crf"),
        ({"recipe__head": "grid"}, "head is 'grid'|head.*crf"),
    ],
)
def test_settings_that_contradict(settings, message):
    with pytest.raises(RecipeError, match=message):
        recipe(**settings)


def test_the_files_are_read_as_they_were_written(data_dir):
    made = nested_sentences.sentences(300, seed=1)
    found = read_sentences(data_dir / "ner/tiny/nested.jsonl", nested=True)
    assert [(s.text, s.spans) for s in found] == [(s.text, s.spans) for s in made]


def test_a_model_with_tags_can_be_the_start(data_dir, tmp_path):
    source = tiny.model(seed=5)
    source.save(tmp_path / "crf")
    made = set_up(recipe(recipe__start_from=str(tmp_path / "crf")), seed=1, data_dir=data_dir).tagger
    assert isinstance(made, GridTagger)
    theirs = source.tagger.encoder.state_dict()
    own = {k: v for k, v in made.encoder.state_dict().items() if not k.startswith("embeddings.")}
    assert own and all(torch.equal(value, theirs[name]) for name, value in own.items())


def test_the_command_trains_on_nested_files(data_dir, tmp_path, capsys):
    tiny.model(seed=5).save(tmp_path / "crf")
    file, settings = str(data_dir / "ner/tiny/nested_dev.jsonl"), ["head=pair_grid", "training.n_epochs=1"]
    settings += [f"start_from={tmp_path / 'crf'}"]
    main(["train", "--data", file, "--labels", "POST=TITLE", "-o", str(tmp_path / "run"), "--set", *settings])
    told = capsys.readouterr()
    # The model to start from finds flat entities, and is not compared.
    assert "dev F1" in told.out and "before training" not in told.out + told.err
    assert cige.load(tmp_path / "run").labels == ["LOC", "ORG", "PER", "TITLE"]
    write_sentences(tmp_path / "test.jsonl", read_sentences(file, nested=True)[:5])
    main(
        ["evaluate", "--data", str(tmp_path / "test.jsonl"), "--model", str(tmp_path / "run"), "--labels", "POST=TITLE"]
    )
    assert "5 sentences" in capsys.readouterr().out
