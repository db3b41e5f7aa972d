"""Recipe: everything that decides a training run except the seed and the output folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from cige.data.mentions import MentionRegime
from cige.data.user_words import UserWordRegime
from cige.engine.schedule import warmup_problems
from cige.engine.settings import BatchConfig, CheckpointConfig, OptimizerConfig, ScheduleConfig, TrainingConfig
from cige.errors import ModelError, RecipeError
from cige.folders.hub import model_folder
from cige.folders.kinds import TAGGER
from cige.folders.manifest import read_manifest
from cige.lexicon.gazetteers import MAX_GAZETTEERS
from cige.lexicon.vectors import VectorLength
from cige.models.config import ModelConfig
from cige.models.flat import FlatConfig
from cige.models.model import BERT, FORMAT_VERSION
from cige.models.registry import architecture
from cige.recipes.ranges import within
from cige.recipes.recipe_file import Overrides, default_name, dump_yaml, read_recipe_file
from cige.recipes.shipped import TAGGING
from cige.recipes.strict import build_strictly

StartParts = Literal["all", "vectors"]


@dataclass(frozen=True)
class SourceConfig:
    """One of several corpora to learn from."""

    train: str | None = None
    """Training file, in any format that cige reads. Without one, the corpus is the public data set of its name if there
    is one, else `ner/<name>/train.bmes` (or .bmes.xz) in the data folder."""
    dev: str | None = None
    """Development file; a public data set has its own."""
    n_held_out: int = within(0, min=0)
    """How many of the last training sentences to hold out for development, where there is no development file."""
    weight: float = within(1.0, min=0)
    """How often an epoch reads each of its sentences; 0.25 reads a quarter of them, another one in each epoch, and 0
    leaves the corpus out."""


@dataclass(frozen=True)
class DataConfig:
    """Which labelled sentences to learn from: one of `dataset`, `train` and `sources`."""

    dataset: str | None = None
    """A public data set by name (weibo, resume, msra, ecommerce, cluener)."""
    sources: dict[str, SourceConfig] = field(default_factory=dict)
    """Several corpora, which may annotate different types, by their names in the types file."""
    types: str | None = None
    """Types file for `sources`: what each of their labels means and which types each annotates (see
    data/source_types.py); a path, or "names", which ships and is what the bundled model learns from."""
    labels: tuple[str, ...] = ()
    """With `sources`: the types that the model shall find. Without, all that the types file speaks of."""
    hidden_odds: float = within(1.0, above=0, max=1)
    """With `sources`: the weight of an entity under the O's of a source that does not annotate its type, beside 1 of
    none. At 1 nothing contradicts what a model believes of a type in text like that source's."""
    silent: tuple[str, ...] = ()
    """With `sources`: types that the model learns and does not report unless they are asked for by name, such as
    nominal mentions; a kind of another label is reported as that. They do not count in development scores."""
    coarse: tuple[str, ...] = ()
    """With `sources`: the types that the model reports with types="coarse". Without, the topmost kinds of all."""
    train: str | None = None
    """Training file, in any format that cige reads; used when `dataset` is not given."""
    dev: str | None = None
    """Development file; the best epoch is chosen on it."""
    test: str | None = None
    """Test file; training never reads it."""
    n_held_out: int = within(0, min=0)
    """Where there is no development file: how many of the last training sentences to hold out as one."""
    n_train: int | None = None
    """Learn from the first n training sentences only (for trials); held-out sentences are taken away before."""
    scheme: Literal["BMES", "BIOES", "BIO"] = "BMES"
    """Tag scheme of the model, whatever the file's."""


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
    """"own" takes vectors as they are, "unit" scales each to length 1 (released FLAT)."""


@dataclass(frozen=True)
class LexiconConfig:
    """The words that may be lattice nodes."""

    path: str | None = None
    """A word list; without it, every word of the word vectors with two or more characters."""
    gazetteers: tuple[str, ...] = ()
    """More word lists, names of one kind each; the lexicon is the union. Some models ask which list a word is in."""


@dataclass(frozen=True)
class TaggerOptimizerConfig(OptimizerConfig):
    """What the optimiser of a tagger has in addition."""

    clip_norm: float | None = within(5.0, above=0)
    """Scale the gradient of a step down to this norm; null leaves it as it is."""
    embedding_learning_rate_scale: float = within(1.0, min=0)
    """Learning rate of the embedding tables, as a multiple of the others'."""
    bert_learning_rate_scale: float = within(0.03, min=0)
    """Learning rate of a BERT that is tuned, as a multiple of the others': 3e-5 beside 1e-3."""


@dataclass(frozen=True)
class Recipe:
    """Everything that decides a run, besides its seed."""

    name: str
    """What the run is called in results."""
    data: DataConfig
    """Labelled sentences."""
    vectors: VectorsConfig = field(default_factory=VectorsConfig)
    """Pre-trained vectors."""
    lexicon: LexiconConfig = field(default_factory=LexiconConfig)
    """Words."""
    start_from: str | None = None
    """A trained model to go on from: "bundled", a model's or a run's folder, or a hub id. Its words, vectors and
    encoder take the place of `vectors` and `lexicon`; `architecture` and `model` are its own where the recipe does not
    say otherwise."""
    start_parts: StartParts = "all"
    """What is taken of that model: "all", or "vectors", its words and their vectors alone, under a network that begins
    anew and may have another shape."""
    architecture: str = "flat"
    """Which model: a name of models/registry.py."""
    model: ModelConfig = field(default_factory=FlatConfig)
    """Its settings: the fields of its config."""
    user_words: UserWordRegime = field(default_factory=UserWordRegime)
    """How user words are simulated."""
    mentions: MentionRegime = field(default_factory=MentionRegime)
    """How entities are replaced by others."""
    training: TrainingConfig = field(default_factory=TrainingConfig)
    """How long to train, and what to keep."""
    optimizer: TaggerOptimizerConfig = field(default_factory=TaggerOptimizerConfig)
    """How to optimise; Table 5 of the paper where it says something, else what dev F1 preferred."""
    schedule: ScheduleConfig = field(default_factory=ScheduleConfig)
    """The learning rate over the run; "inverse_epoch" and a warm-up of 10 epochs are the paper's."""
    batches: BatchConfig = field(default_factory=lambda: BatchConfig(max_pairs=1_000_000))
    """What a step reads; a node pair takes about 0.25 kB of memory."""
    checkpoints: CheckpointConfig = field(default_factory=CheckpointConfig)
    """What a run that is cut off continues from."""


def load_recipe(recipe: str | Path, overrides: Overrides = None) -> Recipe:
    """Read a recipe.

    Args:
        recipe: a name that ships (`weibo/flat`) or a YAML file; with `extends:` and another recipe's name or path a
            file states only what differs from that one.
        overrides: {"training.n_epochs": 2} or ["training.n_epochs=2"]; win over the file.

    Raises:
        RecipeError: no such recipe, bad YAML, an unknown key (the nearest known one is named), a wrong type, or
            settings that contradict each other; with file and line.
    """
    return resolve_recipe(recipe, overrides)[0]


def resolve_recipe(recipe: str | Path, overrides: Overrides = None) -> tuple[Recipe, dict[str, str]]:
    """As `load_recipe`; and key path -> where its value stands, for those that are not defaults."""
    values, origins = read_recipe_file(recipe, overrides, kind=TAGGING)
    if "name" not in values:
        values["name"], origins["name"] = default_name(recipe), "from the recipe's own name"
    if isinstance(values.get("start_from"), str) and values.get("start_parts") != "vectors":
        _take_settings(values, origins, start_folder(values["start_from"]))
    built = _build(values, origins)
    _check(built, str(recipe))
    return built, origins


def recipe_from_dict(values: Mapping[str, Any]) -> Recipe:
    """The recipe that `recipe_to_yaml` (or `asdict`) wrote; same errors as `load_recipe`."""
    recipe = _build(dict(values), {})
    _check(recipe, recipe.name)
    return recipe


def start_folder(start_from: str) -> Path:
    """The folder of the model that a recipe starts from; RecipeError if there is none."""
    try:
        return model_folder(start_from)
    except ModelError as reason:
        raise RecipeError(f"start_from: {reason}") from reason


def _take_settings(values: dict[str, Any], origins: dict[str, str], folder: Path) -> None:
    """Fill in what a recipe does not say of its network with the settings of the model in `folder`."""
    try:
        facts = read_manifest(folder, kind=TAGGER, version=FORMAT_VERSION, error=ModelError)
    except ModelError as reason:
        raise RecipeError(f"start_from: {reason}") from reason
    own = facts["architecture"]
    if values.setdefault("architecture", own) != own:
        given = values["architecture"]
        raise RecipeError(f"start_from: {folder} holds a {own}, but the recipe's architecture is {given}")
    settings = facts["config"]
    if settings.get("bert") is not None:
        settings["bert"] = str(folder / BERT)  # as that model tuned it, and not what it once began with
    given = values.get("model") or {}
    values["model"] = settings | given
    for name in ("architecture", *(f"model.{key}" for key in settings)):
        origins.setdefault(name, f"start_from {values['start_from']}")


def _build(values: dict[str, Any], origins: Mapping[str, str]) -> Recipe:
    name = values.get("architecture", "flat")
    try:
        model_config = architecture(str(name)).config_class()
    except ModelError as reason:
        where = f"{origins['architecture']}: " if "architecture" in origins else ""
        raise RecipeError(f"{where}{reason}") from None
    values.setdefault("model", {})
    return build_strictly(Recipe, values, origins, types={"model": model_config})


def recipe_to_yaml(recipe: Recipe) -> str:
    """All settings, defaults included; `load_recipe` reads it back to an equal recipe."""
    return dump_yaml(recipe)


def _check(recipe: Recipe, source: str) -> None:
    """Raise RecipeError, beginning with `source`, for settings that contradict each other."""
    for message in _contradictions(recipe):
        raise RecipeError(f"{source}: {message}")


def _contradictions(recipe: Recipe) -> list[str]:
    data, model = recipe.data, recipe.model
    found = []
    if (data.dataset is not None) + (data.train is not None) + bool(data.sources) != 1:
        found.append("give one of data.dataset, data.train (a file) and data.sources (several corpora)")
    if bool(data.sources) != (data.types is not None):
        found.append("data.sources and data.types go together: the types file says what the labels of a source mean")
    if not data.sources and (data.labels or data.silent or data.coarse):
        found.append("data.labels, data.silent and data.coarse go with data.sources")
    if data.sources and (data.dev or data.test or data.n_held_out or data.n_train):
        found.append(
            "data.dev, data.test, data.n_held_out and data.n_train do not go with data.sources, which have theirs"
        )
    if data.sources and data.scheme == "BIO":
        found.append(
            "data.scheme is BIO, which cannot tell hidden entities apart; expected BMES or BIOES with data.sources"
        )
    if data.sources and not any(source.weight for source in data.sources.values()):
        found.append("data.sources: every weight is 0, expected at least one above")
    if data.dataset is not None and (data.dev or data.test):
        found.append("data.dev and data.test go with data.train; with data.dataset the files are known")
    if data.train is not None and not data.dev and not data.n_held_out:
        found.append("data.dev is missing: give a file, or data.n_held_out to hold out training sentences")
    if data.dev is not None and data.n_held_out:
        found.append("data.dev and data.n_held_out are both given: dev is a file or held out, not both")
    found += model.problems() + warmup_problems(recipe.schedule, n_epochs=recipe.training.n_epochs)
    if len(recipe.lexicon.gazetteers) > MAX_GAZETTEERS:
        found.append(
            f"lexicon.gazetteers has {len(recipe.lexicon.gazetteers)} lists, expected {MAX_GAZETTEERS} or less"
        )
    if model.bert_tuned and model.bert is None:
        found.append("model.bert_tuned is true, but model.bert names no BERT to tune")
    for name in ("label_prob", "unknown_label_prob"):
        if getattr(recipe.user_words, name) > 0 and not model.reads_word_labels:
            found.append(
                f"user_words.{name} is {getattr(recipe.user_words, name)}, but the network reads no labels of words: "
                "set model.word_labels to true (architecture flat with use_words), or leave it out"
            )
    if recipe.start_from is None and recipe.start_parts != "all":
        found.append(f"start_parts is {recipe.start_parts}, but start_from names no model to take them of")
    if recipe.start_from is not None:
        found += [
            f"{section} is given, but words and vectors are those of start_from ({recipe.start_from}); leave it out"
            for section in ("vectors", "lexicon")
            if getattr(recipe, section) != type(getattr(recipe, section))()
        ]
    return found
