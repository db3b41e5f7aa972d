"""Recipe: all settings of a training run except the seed and the output folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from cige.data.gazetteer_regime import GazetteerRegime
from cige.data.mentions import MentionRegime
from cige.data.tags import Scheme
from cige.data.user_words import UserWordRegime
from cige.engine.settings import (
    BatchConfig,
    CheckpointConfig,
    OptimizerConfig,
    ScheduleConfig,
    TrainingConfig,
    warmup_problems,
)
from cige.errors import ModelError, RecipeError
from cige.folders.hub import model_folder
from cige.folders.kinds import TAGGER
from cige.folders.manifest import read_manifest
from cige.lexicon.names_list import MAX_GAZETTEERS
from cige.lexicon.vectors import VectorLength
from cige.models.config import ModelConfig
from cige.models.flat import FlatConfig
from cige.models.model import BERT, FORMAT_VERSION
from cige.models.pair_grid_config import PairGridConfig
from cige.models.registry import architecture
from cige.recipes.ranges import within
from cige.recipes.recipe_file import Overrides, default_name, dump_yaml, read_recipe_file
from cige.recipes.settings import Settings
from cige.recipes.shipped import TAGGING
from cige.recipes.strict import build_strictly

StartParts = Literal["all", "vectors"]


@dataclass(frozen=True)
class SourceConfig:
    """One of several corpora to train on."""

    train: str | None = None
    """Training file, in any format that cige reads. By default, the corpus is the public data set of this name if there
    is one, and otherwise `ner/<name>/train.bmes` (or .bmes.xz) in the data folder."""
    dev: str | None = None
    """Development file; public data sets have their own."""
    n_held_out: int = within(0, min=0)
    """Number of sentences at the end of the training file to hold out if there is no development file."""
    weight: float = within(1.0, min=0)
    """How often each sentence is read per epoch; with 0.25, each epoch reads a different quarter of the sentences, and
    0 leaves the corpus out."""


@dataclass(frozen=True)
class DataConfig:
    """The labelled sentences to train on: one of `dataset`, `train` and `sources`."""

    dataset: str | None = None
    """Name of a public data set (weibo, resume, msra, ecommerce, cluener)."""
    sources: dict[str, SourceConfig] = field(default_factory=dict)
    """Several corpora, which may annotate different types; keys are their names in the types file."""
    types: str | None = None
    """Types file for `sources`, which describes the labels of each corpus and the types that it annotates (see
    data/source_types.py); a path or a built-in file: "today" (bundled model) or "names" (research model)."""
    labels: tuple[str, ...] = ()
    """With `sources`: the types that the model should find; by default, all types of the types file."""
    hidden_odds: float = within(1.0, above=0, max=1)
    """With `sources`: the weight, relative to 1 for no entity, of the reading that text tagged O is an entity of a type
    that this source does not annotate. With 1, training on the source never contradicts predictions of such types."""
    silent: tuple[str, ...] = ()
    """With `sources`: types that the model learns but only reports on request, such as nominal mentions; those with a
    parent label are reported as the parent. They are ignored in development scores."""
    coarse: tuple[str, ...] = ()
    """With `sources`: the types that the model reports with types="coarse"; by default, the topmost ancestors."""
    train: str | None = None
    """Training file, in any format that cige reads; used when `dataset` is not given."""
    dev: str | None = None
    """Development file, which is used to choose the best epoch."""
    test: str | None = None
    """Test file; training never reads it."""
    n_held_out: int = within(0, min=0)
    """Without a development file: number of sentences at the end of the training file to hold out."""
    n_train: int | None = None
    """Train on the first n training sentences only (for trials), after removing held-out sentences."""
    scheme: Scheme = "BMES"
    """Tag scheme of the model, which may differ from that of the file."""


@dataclass(frozen=True)
class VectorsConfig:
    """Pre-trained vectors: .npz, word2vec text or binary, or a converted folder; paths relative to the data folder."""

    char: str = "vectors/char.npz"
    """Vectors of characters."""
    bigram: str = "vectors/bichar.min20.npz"
    """Vectors of character bigrams."""
    word: str = "vectors/word.npz"
    """Vectors of words."""
    length: VectorLength = "own"
    """"own" uses vectors unchanged, and "unit" scales each to length 1 (released FLAT)."""


@dataclass(frozen=True)
class LexiconConfig:
    """The words that may be lattice nodes."""

    path: str | None = None
    """A word list; by default, all words of the word vectors with two or more characters."""
    gazetteers: tuple[str, ...] = ()
    """Further word lists, each with names of one kind; the lexicon is the union. Some models use the list of a word."""
    names: str | None = None
    """Instead of `gazetteers`: one list of names with their kinds (see lexicon/names_list.py)."""


@dataclass(frozen=True)
class TaggerOptimizerConfig(OptimizerConfig):
    """Additional optimiser settings of taggers."""

    clip_norm: float | None = within(5.0, above=0)
    """Maximum norm of the gradient of a step (gradient clipping); null means no clipping."""
    embedding_learning_rate_scale: float = within(1.0, min=0)
    """Factor of the learning rate of the embedding tables."""
    bert_learning_rate_scale: float = within(0.03, min=0)
    """Factor of the learning rate of a fine-tuned BERT; the default gives 3e-5 for a learning rate of 1e-3."""


@dataclass(frozen=True)
class Recipe:
    """All settings of a run except its seed."""

    name: str
    """Name of the run in results."""
    data: DataConfig
    """Labelled sentences."""
    vectors: VectorsConfig = field(default_factory=VectorsConfig)
    """Pre-trained vectors."""
    lexicon: LexiconConfig = field(default_factory=LexiconConfig)
    """Words."""
    start_from: str | None = None
    """A trained model to start from: "bundled", the folder of a model or a run, or a hub id. Its words, vectors and
    encoder replace `vectors` and `lexicon`, and its settings are the defaults of `architecture` and `model`."""
    start_parts: StartParts = "all"
    """The parts of that model to use: "all", or "vectors" for only its words and vectors, with a newly initialised
    network that may have another shape."""
    architecture: str = "flat"
    """The network: a name in models/registry.py."""
    model: ModelConfig = field(default_factory=FlatConfig)
    """The settings of the network: the fields of its config class."""
    head: Literal["crf", "pair_grid"] = "crf"
    """What reads the features of characters: "crf" gives each character one tag, and "pair_grid" scores spans, so that
    entities may be nested."""
    pair_grid: PairGridConfig = field(default_factory=PairGridConfig)
    """The settings of the head "pair_grid"."""
    user_words: UserWordRegime = field(default_factory=UserWordRegime)
    """Simulation of user words."""
    gazetteers: GazetteerRegime = field(default_factory=GazetteerRegime)
    """Hiding of gazetteers."""
    mentions: MentionRegime = field(default_factory=MentionRegime)
    """Replacement of entities by others."""
    training: TrainingConfig = field(default_factory=TrainingConfig)
    """Length of training, evaluation and checkpoints."""
    optimizer: TaggerOptimizerConfig = field(default_factory=TaggerOptimizerConfig)
    """Optimiser; values are from Table 5 of the paper or, if it has none, were chosen by development F1."""
    schedule: ScheduleConfig = field(default_factory=ScheduleConfig)
    """Learning rate schedule; the paper uses "inverse_epoch" and a warm-up of 10 epochs."""
    batches: BatchConfig = field(default_factory=lambda: BatchConfig(max_pairs=1_000_000))
    """Batch sizes; a pair of nodes takes about 0.25 kB of memory."""
    checkpoints: CheckpointConfig = field(default_factory=CheckpointConfig)
    """Checkpoints for resuming interrupted runs."""


def load_recipe(recipe: str | Path, overrides: Overrides = None) -> Recipe:
    """Read a recipe.

    Args:
        recipe: the name of a built-in recipe (`weibo/flat`) or a YAML file; with `extends:` and the name or path of
            another recipe, a file needs only the settings that differ.
        overrides: {"training.n_epochs": 2} or ["training.n_epochs=2"]; these take precedence over the file.

    Raises:
        RecipeError: there is no such recipe, the YAML is invalid, a key is unknown (the message suggests the nearest
            known one), a value has the wrong type, or settings contradict each other. The message contains file and
            line.
    """
    return resolve_recipe(recipe, overrides)[0]


def resolve_recipe(recipe: str | Path, overrides: Overrides = None) -> tuple[Recipe, dict[str, str]]:
    """Like `load_recipe`; also returns key path -> origin of the value, for values that are not defaults."""
    values, origins = read_recipe_file(recipe, overrides, kind=TAGGING)
    if "name" not in values:
        values["name"], origins["name"] = default_name(recipe), "from the recipe's own name"
    if isinstance(values.get("start_from"), str) and values.get("start_parts") != "vectors":
        _take_settings(values, origins, start_folder(values["start_from"]))
    built = _build(values, origins)
    _check(built, str(recipe))
    return built, origins


def recipe_from_dict(values: Mapping[str, Any]) -> Recipe:
    """The recipe with the values that `recipe_to_yaml` or `asdict` returned; raises the errors of `load_recipe`."""
    recipe = _build(dict(values), {})
    _check(recipe, recipe.name)
    return recipe


def start_folder(start_from: str) -> Path:
    """The folder of the model that a recipe starts from; raises a RecipeError if there is none."""
    try:
        return model_folder(start_from)
    except ModelError as reason:
        raise RecipeError(f"start_from: {reason}") from reason


def _take_settings(values: Settings, origins: dict[str, str], folder: Path) -> None:
    """Use the settings of the model in `folder` for network settings that the recipe does not have."""
    try:
        facts = read_manifest(folder, kind=TAGGER, version=FORMAT_VERSION, error=ModelError)
    except ModelError as reason:
        raise RecipeError(f"start_from: {reason}") from reason
    architecture = facts["architecture"]
    if values.setdefault("architecture", architecture) != architecture:
        given = values["architecture"]
        raise RecipeError(f"start_from: {folder} holds a {architecture}, but the recipe's architecture is {given}")
    settings = facts["config"]
    if settings.get("bert") is not None:
        settings["bert"] = str(folder / BERT)  # the BERT as fine-tuned by that model, not the original one
    given = values.get("model") or {}
    if not isinstance(given, dict):  # `_build` says what is wrong with it
        return
    components = given.get("components", settings.get("components"))
    if components is not None and components != settings.get("components"):
        raise RecipeError(
            f"start_from: model.components is given, but components are those of {values['start_from']}; leave it out, "
            "or set start_parts to vectors"
        )
    values["model"] = settings | given
    for name in ("architecture", *(f"model.{key}" for key in settings)):
        origins.setdefault(name, f"start_from {values['start_from']}")


def _build(values: Settings, origins: Mapping[str, str]) -> Recipe:
    name = values.get("architecture", "flat")
    try:
        model_config = architecture(str(name)).config_class()
    except ModelError as reason:
        where = f"{origins['architecture']}: " if "architecture" in origins else ""
        raise RecipeError(f"{where}{reason}") from None
    values.setdefault("model", {})
    return build_strictly(Recipe, values, origins, types={"model": model_config})


def recipe_to_yaml(recipe: Recipe) -> str:
    """All settings, including defaults, as YAML, from which `load_recipe` reads an equal recipe."""
    return dump_yaml(recipe)


def _check(recipe: Recipe, source: str) -> None:
    """Raise RecipeError, beginning with `source`, for settings that contradict each other."""
    for message in _contradictions(recipe):
        raise RecipeError(f"{source}: {message}")


def _contradictions(recipe: Recipe) -> Iterator[str]:
    data, model = recipe.data, recipe.model
    if (data.dataset is not None) + (data.train is not None) + bool(data.sources) != 1:
        yield "give one of data.dataset, data.train (a file) and data.sources (several corpora)"
    if bool(data.sources) != (data.types is not None):
        yield "data.sources requires data.types and vice versa: the types file describes the labels of each source"
    if not data.sources and (data.labels or data.silent or data.coarse):
        yield "data.labels, data.silent and data.coarse require data.sources"
    if data.sources and (data.dev or data.test or data.n_held_out or data.n_train):
        yield "data.dev, data.test, data.n_held_out and data.n_train cannot be combined with data.sources"
    if data.sources and data.scheme == "BIO":
        yield "data.scheme is BIO, which cannot separate unannotated entities; expected BMES or BIOES with data.sources"
    if data.sources and not any(source.weight for source in data.sources.values()):
        yield "data.sources: all weights are 0, expected at least one greater than 0"
    if data.dataset is not None and (data.dev or data.test):
        yield "data.dev and data.test require data.train; with data.dataset, the files are known"
    if data.train is not None and not data.dev and not data.n_held_out:
        yield "data.dev is missing: give a file, or data.n_held_out to hold out training sentences"
    if data.dev is not None and data.n_held_out:
        yield "data.dev and data.n_held_out are both given; expected only one of them"
    yield from model.problems()
    yield from warmup_problems(recipe.schedule, n_epochs=recipe.training.n_epochs)
    if len(recipe.lexicon.gazetteers) > MAX_GAZETTEERS:
        yield f"lexicon.gazetteers has {len(recipe.lexicon.gazetteers)} lists, expected {MAX_GAZETTEERS} or less"
    if recipe.lexicon.names is not None and recipe.lexicon.gazetteers:
        yield "lexicon.names and lexicon.gazetteers are both given; expected only one of them"
    has_gazetteers = recipe.start_from or recipe.lexicon.names or recipe.lexicon.gazetteers
    if model.reads_gazetteers and not has_gazetteers:
        yield "model.gazetteers is true, but there are none: give lexicon.names or lexicon.gazetteers"
    if model.bert_tuned and model.bert is None:
        yield "model.bert_tuned is true, but model.bert names no BERT to tune"
    for name in ("label_prob", "unknown_label_prob"):
        if getattr(recipe.user_words, name) > 0 and not model.reads_word_labels:
            yield (
                f"user_words.{name} is {getattr(recipe.user_words, name)}, but the network ignores labels of words: "
                "set model.word_labels to true (architecture flat with use_words), or leave it out"
            )
    yield from _grid_problems(recipe)
    if recipe.start_from is None and recipe.start_parts != "all":
        yield f"start_parts is {recipe.start_parts}, but start_from names no model to take them from"
    if recipe.start_from is not None:
        for section in ("vectors", "lexicon"):
            if getattr(recipe, section) != type(getattr(recipe, section))():
                start = f"start_from ({recipe.start_from})"
                yield f"{section} is given, but words and vectors are those of {start}; leave it out"


def _grid_problems(recipe: Recipe) -> Iterator[str]:
    """What contradicts the head of a recipe."""
    if recipe.head == "crf":
        if recipe.pair_grid != PairGridConfig():
            yield "pair_grid has settings, but head is crf: set head to pair_grid, or leave them out"
        return
    yield from recipe.pair_grid.problems()
    if recipe.data.sources:
        yield f"data.sources needs head: crf, and head is {recipe.head}"
    if recipe.user_words.unknown_label_prob > 0:
        yield f"user_words.unknown_label_prob needs head: crf, and head is {recipe.head}"
