"""Prepare a training run from a recipe: sentences, lexicon, lattices, vocabulary and an untrained network."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np
import torch

from cige.data.components import ComponentTable, read_components
from cige.data.gold_spans import GoldRelations, GoldSpans
from cige.data.sentence import Sentence
from cige.data.vocabulary import Vocabulary, char_codes
from cige.errors import RecipeError
from cige.lattice.lattice import Lattice, build_lattice
from cige.lexicon.lexicon import Lexicon
from cige.lexicon.names_list import NamesList, with_gazetteers, with_lists
from cige.lexicon.user_word import UNKNOWN_TYPE
from cige.lexicon.vectors import VectorTable
from cige.models.build import InputTables, Vectors, build_tagger, input_tables
from cige.models.config import ModelConfig
from cige.models.model import LatticeModel
from cige.models.pair_grid_config import PairGridConfig
from cige.models.registry import architecture
from cige.models.start import copy_weights, tables_of
from cige.models.tagger import Tagger
from cige.nn.bert import load_features
from cige.nn.char_features import CharFeatures
from cige.text.counted import counted
from cige.training.files import find_file
from cige.training.recipe import LexiconConfig, Recipe, start_folder
from cige.training.sources import Source, add_sentences, read_sources

FEATURE_BYTES = 1 << 30  # of the vectors of a BERT that is not fine-tuned, which are kept from epoch to epoch


@dataclass(frozen=True)
class TrainingSetup:
    """The initial state of a run.

    Attributes:
        sources: the corpora; train, dev: their labelled sentences, in the order of sources, with their lattices.
        lexicon: the words of the lattices; vocabulary: rows of the tagger's tables.
        labels: entity labels that the tagger finds, sorted.
        tagger: the network, whose tables contain the pre-trained vectors.
        names: version and date of the list of names, for the manifest; empty if there is no list.
        head: the settings of the pair grid of `tagger`; None if it has a CRF.
    """

    sources: list[Source]
    train: list[Sentence]
    dev: list[Sentence]
    train_lattices: list[Lattice]
    dev_lattices: list[Lattice]
    lexicon: Lexicon
    vocabulary: Vocabulary
    labels: list[str]
    tagger: Tagger
    names: Mapping[str, str] = field(default_factory=dict)
    head: PairGridConfig | None = None

    def fingerprint(self) -> str:
        """sha256 (hex) of the sentences, the words, their gazetteers, the components of characters, and the initial
        weights (vectors and seed)."""
        digest = hashlib.sha256(self.lexicon.fingerprint.encode())
        if self.vocabulary.word_groups is not None:
            digest.update(self.vocabulary.word_groups.tobytes())
        if any(source.types is not None for source in self.sources):
            digest.update(repr([(s.name, len(s.train), s.weight, s.types) for s in self.sources]).encode())
        if self.vocabulary.components is not None:
            for array in self.vocabulary.components.arrays().values():
                digest.update(array.tobytes())
        add_sentences(digest, (*self.train, *self.dev))
        for tensor in self.tagger.state_dict().values():
            digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
        return digest.hexdigest()


def set_up(recipe: Recipe, *, seed: int, data_dir: str | Path | None = None) -> TrainingSetup:
    """Read data, vectors and words, and build the network; the same recipe and seed give the same initial weights."""
    sources, labels = read_sources(recipe.data, data_dir, nested=recipe.head == "pair_grid")
    if not labels:
        raise RecipeError(f"{recipe.name}: the training sentences have no entities; there is nothing to learn")
    train, dev = [x for source in sources for x in source.train], [x for source in sources for x in source.dev]
    source = None if recipe.start_from is None else LatticeModel.load(start_folder(recipe.start_from))
    if source is None:
        lexicon, tables_for = _words_of_files(recipe, seed, data_dir)
    else:
        lexicon, tables_for = source.lexicon, partial(tables_of, source)
    snapshot = lexicon.snapshot()
    train_lattices, dev_lattices = ([build_lattice(x.text, snapshot) for x in split] for split in (train, dev))
    tables = tables_for(train_lattices).with_word_labels(labels if recipe.model.reads_word_labels else ())
    tables = tables.with_components(_components(recipe, source, train_lattices, data_dir))
    features = load_bert(recipe.model, data_dir) if recipe.model.bert is not None else None
    if features is not None and not features.tuned:
        features.remember((sentence.text for sentence in (*train, *dev)), n_bytes=FEATURE_BYTES)
    head = head_of(recipe, train, dev)
    copied = source if recipe.start_parts == "all" else None
    torch.manual_seed(seed)
    tagger = build_tagger(
        recipe.model,
        tables,
        [*labels, UNKNOWN_TYPE] if recipe.user_words.unknown_label_prob > 0 else labels,
        architecture=recipe.architecture,
        scheme=recipe.data.scheme,
        features=features,
        head=head,
        fit_backoff=copied is None,
    )
    if copied is not None:
        copy_weights(tagger, copied, word_labels=tables.vocabulary.word_labels)
    names = {} if source is None else dict(source.facts.get("names", {}))
    if recipe.lexicon.names is not None:
        names = NamesList.read(find_file(recipe.lexicon.names, data_dir)).about
    return TrainingSetup(
        sources, train, dev, train_lattices, dev_lattices, lexicon, tables.vocabulary, labels, tagger, names, head
    )


def _components(
    recipe: Recipe, source: LatticeModel | None, lattices: Sequence[Lattice], data_dir: str | Path | None
) -> ComponentTable | None:
    """The components of characters that a network reads; one that starts from a trained network reads those of it."""
    if recipe.model.components is None:
        return None
    if source is not None and recipe.start_parts == "all":
        return source.vocabulary.components
    file = find_file(recipe.model.components.table, data_dir)
    table = ComponentTable.of(read_components(file), char_codes("".join({char for x in lattices for char in x.text})))
    if not len(table.codes):
        raise RecipeError(
            f"{file}: none of its characters is in the training text, in which traditional characters are simplified; "
            "name another file in model.components.table"
        )
    return table


def _words_of_files(
    recipe: Recipe, seed: int, data_dir: str | Path | None
) -> tuple[Lexicon, Callable[[Sequence[Lattice]], InputTables]]:
    """The lexicon of a recipe, and a function of the training lattices for the tables from its vector files."""
    names = ("char", "bigram", "word")
    tables = {name: VectorTable.load(find_file(getattr(recipe.vectors, name), data_dir)) for name in names}
    vectors = Vectors(**tables, length=recipe.vectors.length)
    lexicon, word_groups, gazetteers = read_lexicon(recipe.lexicon, vectors, data_dir)
    return lexicon, partial(
        input_tables,
        lexicon=lexicon,
        vectors=vectors,
        seed=seed,
        count=architecture(recipe.architecture).reads_counts,
        word_groups=word_groups,
        gazetteers=gazetteers,
    )


def read_lexicon(
    words: LexiconConfig, vectors: Vectors, data_dir: str | Path | None = None
) -> tuple[Lexicon, np.ndarray | None, tuple[str, ...]]:
    """The lexicon of a recipe, the gazetteers of each word if there are any (`with_gazetteers`), and their names."""
    if words.path is None:
        lexicon = Lexicon.from_words(word for word in vectors.word.words if len(word) >= 2)
    else:
        lexicon = Lexicon.from_file(find_file(words.path, data_dir))
    if words.names is not None:
        by_kind = NamesList.read(find_file(words.names, data_dir)).words_by_kind()
        return *with_lists(lexicon, list(by_kind.values())), tuple(by_kind)
    if not words.gazetteers:
        return lexicon, None, ()
    files = [find_file(path, data_dir) for path in words.gazetteers]
    return *with_gazetteers(lexicon, files), tuple(file.name.partition(".")[0] for file in files)


def load_bert(model: ModelConfig, data_dir: str | Path | None = None) -> CharFeatures:
    """The BERT or Lattice-BERT of a recipe, which is a folder (see `find_file`) or a hub id."""
    assert model.bert is not None
    try:
        name = str(find_file(model.bert, data_dir))
    except RecipeError:
        name = model.bert
    return load_features(name, tuned=model.bert_tuned)


class TooLongWarning(UserWarning):
    """Some labelled entities are longer than the entities that a model can find."""


def head_of(recipe: Recipe, train: Sequence[Sentence], dev: Sequence[Sentence]) -> PairGridConfig | None:
    """The settings of the pair grid with the length of the longest entity it finds; None for a CRF.

    A TooLongWarning tells how many labelled entities are longer.
    """
    if recipe.head == "crf":
        return None
    head = recipe.pair_grid
    if head.max_length is None:
        longest = max((span.end - span.start for sentence in train for span in sentence.spans), default=1)
        head = replace(head, max_length=longest)
    assert head.max_length is not None
    for what, sentences in (("training", train), ("development", dev)):
        n_lost = sum(span.end - span.start > head.max_length for sentence in sentences for span in sentence.spans)
        if n_lost:
            warnings.warn(
                f"{recipe.name}: {counted(n_lost, f'{what} entity', f'{what} entities')} longer than "
                f"{counted(head.max_length, 'character')} cannot be found; pair_grid.max_length is the limit",
                TooLongWarning,
                stacklevel=2,
            )
    return head


def gold_of(head: PairGridConfig, labels: Sequence[str]) -> GoldSpans:
    """The conversion of gold annotations to the cells of a pair grid."""
    assert head.max_length is not None
    return (GoldSpans if head.scores == "spans" else GoldRelations)(labels, head.max_length)
