"""From a recipe to what a run needs: sentences, lexicon, lattices, vocabulary and an untrained network."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch

from cige.data.reading import read_sentences
from cige.data.registry import load_split
from cige.data.sentence import Sentence
from cige.data.vocabulary import Vocabulary
from cige.errors import RecipeError
from cige.lattice.lattice import Lattice, build_lattice
from cige.lexicon.gazetteers import with_gazetteers
from cige.lexicon.lexicon import Lexicon
from cige.lexicon.vectors import VectorTable
from cige.models.build import InputTables, Vectors, build_tagger, input_tables
from cige.models.config import ModelConfig
from cige.models.lattice_bert.features import CharFeatures, load_features
from cige.models.model import LatticeModel
from cige.models.registry import architecture
from cige.models.start import tables_of, take_over
from cige.models.tagger import Tagger
from cige.training.recipe import DataConfig, LexiconConfig, Recipe, start_folder


@dataclass(frozen=True)
class TrainingSetup:
    """All that a run starts from.

    Attributes:
        train, dev: labelled sentences.
        train_lattices, dev_lattices: the lattice of each.
        lexicon: the words of the lattices.
        vocabulary: rows of the tagger's tables.
        labels: entity labels of the training sentences, sorted.
        tagger: the network, its tables holding the pre-trained vectors.
    """

    train: list[Sentence]
    dev: list[Sentence]
    train_lattices: list[Lattice]
    dev_lattices: list[Lattice]
    lexicon: Lexicon
    vocabulary: Vocabulary
    labels: list[str]
    tagger: Tagger

    def fingerprint(self) -> str:
        """sha256 (hex) of the sentences, the words, their gazetteers and the initial weights (vectors and seed)."""
        digest = hashlib.sha256(self.lexicon.fingerprint.encode())
        if self.vocabulary.word_groups is not None:
            digest.update(self.vocabulary.word_groups.tobytes())
        for sentence in (*self.train, *self.dev):
            digest.update(repr((sentence.text, sentence.spans)).encode("utf-8", "backslashreplace"))
        for tensor in self.tagger.state_dict().values():
            digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
        return digest.hexdigest()


def set_up(recipe: Recipe, *, seed: int, data_dir: str | Path | None = None) -> TrainingSetup:
    """Read data, vectors and words and build the network; the same recipe and seed give the same weights."""
    train, dev = read_data(recipe.data, data_dir)
    labels = sorted({span.label for sentence in train for span in sentence.spans})
    if not labels:
        raise RecipeError(f"{recipe.name}: the training sentences hold no entity; there is nothing to learn")
    source = None if recipe.start_from is None else LatticeModel.load(start_folder(recipe.start_from))
    lexicon, tables_for = _words_of_files(recipe, seed, data_dir) if source is None else _words_of_model(source)
    snapshot = lexicon.snapshot()
    train_lattices = [build_lattice(sentence.text, snapshot) for sentence in train]
    dev_lattices = [build_lattice(sentence.text, snapshot) for sentence in dev]
    tables = tables_for(train_lattices)
    features = load_bert(recipe.model, data_dir) if recipe.model.bert is not None else None
    torch.manual_seed(seed)
    tagger = build_tagger(
        recipe.model,
        tables,
        labels,
        architecture=recipe.architecture,
        scheme=recipe.data.scheme,
        features=features,
    )
    if source is not None:
        take_over(tagger, source)
    return TrainingSetup(train, dev, train_lattices, dev_lattices, lexicon, tables.vocabulary, labels, tagger)


_TablesFor = Callable[[Sequence[Lattice]], InputTables]  # what training lattices make of vectors


def _words_of_files(recipe: Recipe, seed: int, data_dir: str | Path | None) -> tuple[Lexicon, _TablesFor]:
    """The lexicon of a recipe, and tables of its vector files."""
    files = recipe.vectors
    vectors = Vectors(
        char=VectorTable.load(find_file(files.char, data_dir)),
        bigram=VectorTable.load(find_file(files.bigram, data_dir)),
        word=VectorTable.load(find_file(files.word, data_dir)),
        length=files.length,
    )
    lexicon, word_groups = read_lexicon(recipe.lexicon, vectors, data_dir)
    return lexicon, partial(
        input_tables,
        lexicon=lexicon,
        vectors=vectors,
        seed=seed,
        count=architecture(recipe.architecture).reads_counts,
        word_groups=word_groups,
        n_groups=1 + len(recipe.lexicon.gazetteers),
    )


def _words_of_model(source: LatticeModel) -> tuple[Lexicon, _TablesFor]:
    """The lexicon of a trained model, and tables of its vectors."""
    return source.lexicon, partial(tables_of, source)


def read_data(data: DataConfig, data_dir: str | Path | None = None) -> tuple[list[Sentence], list[Sentence]]:
    """The training and the development sentences."""
    if data.dataset is not None:
        train = load_split(data.dataset, "train", data_dir=data_dir)
        dev = [] if data.n_held_out else load_split(data.dataset, "dev", data_dir=data_dir)
    else:
        assert data.train is not None
        train = read_sentences(find_file(data.train, data_dir))
        dev = read_sentences(find_file(data.dev, data_dir)) if data.dev is not None else []
    if data.n_held_out:
        if data.n_held_out >= len(train):
            raise RecipeError(f"data.n_held_out is {data.n_held_out}, but there are {len(train)} training sentences")
        train, dev = train[: -data.n_held_out], train[-data.n_held_out :]
    return train[: data.n_train], dev


def read_lexicon(
    words: LexiconConfig, vectors: Vectors, data_dir: str | Path | None = None
) -> tuple[Lexicon, np.ndarray | None]:
    """The lexicon of a recipe, and which gazetteers each word is in if there are any (see `with_gazetteers`)."""
    if words.path is None:
        lexicon = Lexicon.from_words(word for word in vectors.word.words if len(word) >= 2)
    else:
        lexicon = Lexicon.from_file(find_file(words.path, data_dir))
    if not words.gazetteers:
        return lexicon, None
    return with_gazetteers(lexicon, [find_file(path, data_dir) for path in words.gazetteers])


def load_bert(model: ModelConfig, data_dir: str | Path | None = None) -> CharFeatures:
    """The BERT or Lattice-BERT that a recipe names: a folder, as `find_file` finds it, or a hub id."""
    assert model.bert is not None
    try:
        name = str(find_file(model.bert, data_dir))
    except RecipeError:
        name = model.bert
    return load_features(name, tuned=model.bert_tuned)


def find_file(path: str, data_dir: str | Path | None = None) -> Path:
    """A path of a recipe: as it is if absolute, else in `data_dir` (or $CIGE_DATA), else from the working folder."""
    folders = [Path(data_dir)] if data_dir is not None else []
    if not folders and os.environ.get("CIGE_DATA"):
        folders.append(Path(os.environ["CIGE_DATA"]))
    candidates = [folder / path for folder in [*folders, Path()]]
    for candidate in candidates:
        if candidate.exists():
            return candidate
    raise RecipeError(
        f"{path}: no such file; looked for {' and '.join(str(c) for c in dict.fromkeys(candidates))}. "
        "Paths in a recipe are relative to --data-dir, to CIGE_DATA or to the working folder"
    )
