"""The labelled sentences of a recipe, from one corpus or from several corpora that annotate different types."""

from __future__ import annotations

import hashlib
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from cige.data.reading import read_sentences
from cige.data.registry import DATASETS, load_split
from cige.data.sentence import EITHER, OPEN, Sentence, Span
from cige.data.source_types import SourceTypes, TypeTree, default_labels, read_types
from cige.data.tag_sets import GoldTags, TagSets
from cige.errors import DataError, RecipeError
from cige.lexicon.user_word import RESERVED_LABELS
from cige.text.counted import counted
from cige.training.dataset import SourceMix
from cige.training.files import find_file
from cige.training.recipe import DataConfig, SourceConfig

_SHIPPED = Path(__file__).parents[1] / "recipes" / "types"
MIN_EXPECTED = 5.0  # entities of a label in the development sentences; that there are none is no chance then (e^-5)
REPEATED_SHARE = 0.01  # of the development sentences; a few short ones are the same in any two files


class UnlearnedLabelWarning(UserWarning):
    """Development sentences have labels that no training sentence has."""


class UnmeasuredLabelWarning(UserWarning):
    """Development sentences lack a label that many training sentences have."""


class NoDevelopmentEntityWarning(UserWarning):
    """Development sentences have no entities, so that F1 is 0 after every epoch."""


class RepeatedSentenceWarning(UserWarning):
    """Many development sentences are also in the training data."""


@dataclass(frozen=True)
class Source:
    """A corpus; the labels of its sentences are types if it has `types`."""

    name: str  # in the recipe
    train: list[Sentence]
    dev: list[Sentence]
    types: SourceTypes | None = None  # that it annotates; None if its labels are those of the model
    tree: TypeTree = field(default_factory=lambda: TypeTree({}))
    weight: float = 1.0  # how often each training sentence is read per epoch


def read_sources(
    data: DataConfig, data_dir: str | Path | None = None, *, nested: bool = False
) -> tuple[list[Source], list[str]]:
    """The corpora of a recipe, and the sorted labels of a model trained on them; `nested` as in `read_data`."""
    if not data.sources:
        train, dev = read_data(data, data_dir, nested=nested)
        parts = {label for written in labels_of(train) for label in written.split(EITHER)}
        return [Source(data.dataset or "dev", train, dev)], _learnable(parts - {OPEN})
    assert data.types is not None
    shipped = _SHIPPED / f"{data.types}.yaml"
    types, tree = read_types(shipped if shipped.is_file() else find_file(data.types, data_dir))
    used = {name: config for name, config in data.sources.items() if config.weight}
    unknown = [name for name in used if name not in types]
    if unknown:
        raise RecipeError(f"data.types: {data.types} does not describe {', '.join(unknown)}; it has {', '.join(types)}")
    sources = [_read_source(name, config, types[name], tree, data_dir) for name, config in used.items()]
    labels = list(data.labels) or default_labels([types[name] for name in used], tree)
    return sources, _learnable(labels)


def _learnable(labels: Iterable[str]) -> list[str]:
    """The labels, sorted. Raises a DataError if one of them means something else to a tagger."""
    if reserved := sorted(set(labels).intersection(RESERVED_LABELS)):
        raise DataError(
            f"the training sentences have the label {reserved[0]!r}, which cannot be learned: '*' stands for types "
            f"that a model does not know, and 'O' for text outside of entities; rename it (--labels "
            f"'{reserved[0]}=NAME')"
        )
    return sorted(labels)


def warn_of_misleading_scores(sources: Sequence[Source]) -> None:
    """Warn of development sentences that no model can score well on, or that say little of new text."""
    for warning in _misleading(sources):
        warnings.warn(warning, stacklevel=2)


def _misleading(sources: Sequence[Source]) -> Iterator[Warning]:
    for source in sources:
        unlearned = {} if source.types is not None else _unlearned(source)
        if unlearned:  # no model can find them: they lower the scores of all epochs alike
            entities = counted(sum(unlearned.values()), "development entity", "development entities")
            listed = ", ".join(f"{label} ({n:,})" for label, n in unlearned.items())
            yield UnlearnedLabelWarning(
                f"{entities} cannot be found, because no training sentence has such a label: {listed}"
            )
        unmeasured = {} if source.types is not None else _unmeasured(source)
        if unmeasured:
            listed = ", ".join(f"{label} ({n:,} in the training data)" for label, n in unmeasured.items())
            yield UnmeasuredLabelWarning(
                f"no development entity has the label {listed}: dev F1 counts all that are found as errors, and the "
                "best epoch is chosen by it"
            )
        if source.dev and not any(sentence.spans for sentence in source.dev):
            yield NoDevelopmentEntityWarning(
                f"{source.name}: {counted(len(source.dev), 'development sentence')} without any entity: F1 is 0 "
                "whatever the model finds, and cannot tell which epoch is best; give development sentences that have "
                "entities"
            )
    read = {sentence.text for source in sources for sentence in source.train}
    sentences = [sentence for source in sources for sentence in source.dev]
    repeated = [sentence for sentence in sentences if sentence.text in read]
    if len(repeated) > max(1, REPEATED_SHARE * len(sentences)):  # their scores say little of new text
        n_repeated, n_entities = (sum(len(sentence.spans) for sentence in group) for group in (repeated, sentences))
        yield RepeatedSentenceWarning(
            f"{len(repeated):,} of {counted(len(sentences), 'development sentence')}, with {n_repeated:,} of "
            f"{counted(n_entities, 'entity', 'entities')}, are in the training data too: scores will be higher than on "
            "new text, and `cige evaluate --train` tells how much"
        )


def _unlearned(source: Source) -> dict[str, int]:
    """The labels of development entities of which no training sentence has any part, and how often they occur."""
    learned = {OPEN, *(part for written in labels_of(source.train) for part in written.split(EITHER))}
    counts = Counter(span.label for sentence in source.dev for span in sentence.spans)
    return {label: n for label, n in sorted(counts.items()) if learned.isdisjoint(label.split(EITHER))}


def _unmeasured(source: Source) -> dict[str, int]:
    """The labels of training entities that no development entity has, although chance cannot be the reason, and how
    often they occur; none if no development sentence has an entity."""
    there = {OPEN, *(part for written in labels_of(source.dev) for part in written.split(EITHER))}
    if there == {OPEN}:
        return {}
    counts = Counter(span.label for sentence in source.train for span in sentence.spans)
    n_least = MIN_EXPECTED * len(source.train)
    return {
        label: n
        for label, n in sorted(counts.items())
        if n * len(source.dev) >= n_least and there.isdisjoint(label.split(EITHER))
    }


def golds_of(
    sources: list[Source], tags: list[str], scheme: str, labels: list[str], *, hidden_odds: float = 1.0
) -> list[GoldTags]:
    """The GoldTags of each source, which convert its gold spans to tag sets."""
    sets = TagSets(tags)
    return [
        GoldTags(sets, scheme, allowed={x: sets.tags if x == OPEN else x.split(EITHER) for x in labels_of(s.train)})
        if s.types is None
        else s.types.gold(sets, scheme, labels, s.tree, hidden_odds=hidden_odds, written=labels_of(s.train))
        for s in sources
    ]


def digest_of(sources: Iterable[Source]) -> str:
    """sha256 (hex) of the training and the development sentences of the sources."""
    digest = hashlib.sha256()
    for source in sources:
        for split in (source.train, source.dev):
            digest.update(f"{len(split)}\n".encode())
            add_sentences(digest, split)
    return digest.hexdigest()


def digest_of_sentences(sentences: Iterable[Sentence]) -> str:
    """sha256 (hex) of labelled sentences."""
    return add_sentences(hashlib.sha256(), sentences).hexdigest()


def add_sentences(digest: hashlib._Hash, sentences: Iterable[Sentence]) -> hashlib._Hash:
    """Add labelled sentences to a digest, and return it."""
    for sentence in sentences:
        digest.update(repr((sentence.text, sentence.spans)).encode("utf-8", "backslashreplace"))
    return digest


def labels_of(sentences: Iterable[Sentence]) -> set[str]:
    """The labels that occur, including OPEN and labels that are joined by EITHER."""
    return {span.label for sentence in sentences for span in sentence.spans}


def mix_of(sources: list[Source], seed: int) -> tuple[SourceMix | None, np.ndarray]:
    """How often each source is read per epoch (None: once), and int64[n], the source of each sentence."""
    source_of = np.repeat(np.arange(len(sources)), [len(source.train) for source in sources])
    if all(source.weight == 1 for source in sources):
        return None, source_of
    mix = SourceMix([len(source.train) for source in sources], [source.weight for source in sources], seed=seed)
    return mix, source_of


def comparable_in(
    source: Source, labels: list[str], silent: tuple[str, ...]
) -> Callable[[Sequence[Span]], Sequence[Span]] | None:
    """A function that selects the spans to compare in development scores of a source (see EvaluationSet), or None."""
    if source.types is None:
        return None
    return partial(source.types.comparable, labels=labels, tree=source.tree, but=silent)


def check_one_corpus(data: DataConfig) -> None:
    """Raise a RecipeError if a recipe has several corpora, whose sentences cannot be scored together."""
    if data.sources:
        raise RecipeError(
            f"the recipe has several corpora ({', '.join(data.sources)}), whose labels differ; "
            "expected one with data.dataset or data.train"
        )


def read_data(
    data: DataConfig, data_dir: str | Path | None = None, *, nested: bool = False
) -> tuple[list[Sentence], list[Sentence]]:
    """The training and the development sentences of a recipe with one corpus.

    Args:
        nested: whether entities may be nested or overlap; otherwise, this is an error.

    Raises:
        RecipeError: the recipe has several corpora, whose labels differ.
    """
    check_one_corpus(data)
    if data.dataset is not None:
        train = load_split(data.dataset, "train", data_dir=data_dir)
        dev = [] if data.n_held_out else load_split(data.dataset, "dev", data_dir=data_dir)
    else:
        assert data.train is not None
        train = read_sentences(find_file(data.train, data_dir), nested=nested)
        dev = read_sentences(find_file(data.dev, data_dir), nested=nested) if data.dev is not None else []
    train, held_out = _hold_out(train, data.n_held_out, "data.n_held_out")
    return train[: data.n_train], dev or held_out


def _read_source(
    name: str, config: SourceConfig, types: SourceTypes, tree: TypeTree, data_dir: str | Path | None
) -> Source:
    dev: list[Sentence] = []
    if config.train is None and name in DATASETS:
        train = load_split(name, "train", data_dir=data_dir)
        if config.dev is None and not config.n_held_out:
            dev = load_split(name, "dev", data_dir=data_dir)
    else:
        train = read_sentences(_train_file(name, config, data_dir), repair=True)
    if config.dev is not None:
        dev = read_sentences(find_file(config.dev, data_dir), repair=True)
    train, held_out = _hold_out(train, config.n_held_out, f"data.sources: {name}: n_held_out")
    try:
        train = [types.read(sentence) for sentence in train]
        dev = [types.read(sentence) for sentence in dev or held_out]
    except DataError as reason:
        raise DataError(f"data.sources: {name}: {reason}") from None
    return Source(name, train, dev, types=types, tree=tree, weight=config.weight)


def _train_file(name: str, config: SourceConfig, data_dir: str | Path | None) -> Path:
    if config.train is not None:
        return find_file(config.train, data_dir)
    try:
        return find_file(f"ner/{name}/train.bmes", data_dir)
    except RecipeError:
        return find_file(f"ner/{name}/train.bmes.xz", data_dir)


def _hold_out(sentences: list[Sentence], n: int, setting: str) -> tuple[list[Sentence], list[Sentence]]:
    """Split off the last `n` sentences; returns the other sentences and these."""
    if n >= len(sentences):
        raise RecipeError(f"{setting} is {n}, but there are {len(sentences)} training sentences")
    return (sentences[:-n], sentences[-n:]) if n else (sentences, [])
