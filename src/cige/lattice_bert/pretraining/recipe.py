"""PretrainRecipe: all settings of a pre-training run except the data, the seed and the output folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

from cige.engine.settings import CheckpointConfig, OptimizerConfig, Precision, ScheduleConfig, Sharding, warmup_problems
from cige.errors import RecipeError
from cige.lattice_bert.encoder.network_config import SIZES, LatticeBertConfig
from cige.lattice_bert.kinds import PRETRAIN
from cige.lattice_bert.pretraining.dataset import InstanceConfig
from cige.lattice_bert.pretraining.packing import N_SPECIAL, Room
from cige.lattice_bert.pretraining.start import settings_of
from cige.recipes.ranges import within
from cige.recipes.recipe_file import Overrides, default_name, override_pairs, read_recipe_file
from cige.recipes.strict import build_strictly


@dataclass(frozen=True)
class PhaseConfig:
    """A phase of steps on instances of one size."""

    n_steps: int = within(0, min=0)
    """Optimiser steps; 0 leaves the phase out."""
    n_characters: int = 128
    """Maximum number of pieces per instance, including [CLS] and both [SEP]."""
    max_tokens: int = 256
    """Maximum number of lattice tokens per instance. With twice the number of characters, `n_characters` is in effect
    the only limit; the 173 and 692 of appendix C.1 are the averages for 128 and 512 characters. Models without words
    use the same limits, so that they read the same instances."""
    batch_size: int = within(256, min=1)
    """Instances per step, over all processes."""
    micro_batch_size: int = within(32, min=1)
    """Maximum number of instances per forward pass; the gradient of a step is summed over several passes."""

    @property
    def room(self) -> Room:
        return Room(self.n_characters, self.max_tokens)


@dataclass(frozen=True)
class PretrainingConfig:
    """Precision, logging, evaluation and data loading."""

    precision: Precision = "fp32"
    """bf16 runs matrix products in bfloat16; weights stay float32."""
    log_every: str = within("50 steps", span=("steps",))
    """How often losses and accuracies are logged."""
    eval_every: str = within("1000 steps", span=("steps",))
    """How often the model is evaluated on held-out text, in addition to the end of each phase."""
    n_eval_instances: int = within(1000, min=0)
    """Maximum number of held-out instances to evaluate on."""
    sharding: Sharding = "ddp"
    """How several processes share the model. ddp: each has all of it. fsdp: each has a part of every weight, gradient
    and moment, for models that do not fit otherwise."""
    gradient_checkpointing: bool = False
    """Keep only the input of each layer and compute the rest again for the gradient, which saves memory."""
    window_shards: int | None = within(None, min=1)
    """Number of shards whose instances are shuffled together, one such window of the corpus after the other; null
    shuffles the whole corpus, which must then fit into memory. The windows are drawn anew in each epoch."""
    n_workers: int = within(0, min=0)
    """Number of processes that prepare batches for each training process; 0 prepares them in the training process."""


@dataclass(frozen=True)
class PretrainRecipe:
    """All settings of a run except its data and seed."""

    name: str
    """Name of the run."""
    size: Literal["tiny", "lite", "base"] = "tiny"
    """The size that provides the settings of `model` that are not given."""
    start_from: str | None = None
    """A pre-trained model to start from (folder or hub id), which also provides the settings of `model` that are not
    given. Its vocabulary may differ from that of the data: see lattice_bert/pretraining/start.py."""
    model: LatticeBertConfig = SIZES["tiny"]
    """The network; `n_tokens` is always that of the data's vocabulary."""
    instances: InstanceConfig = field(default_factory=InstanceConfig)
    """The instances: input and masking."""
    short: PhaseConfig = field(default_factory=PhaseConfig)
    """The first phase."""
    long: PhaseConfig = field(default_factory=lambda: PhaseConfig(n_characters=512, max_tokens=1024))
    """The second phase, which has a tenth of all steps in appendix C.1."""
    training: PretrainingConfig = field(default_factory=PretrainingConfig)
    """Precision, logging, evaluation and data loading."""
    optimizer: OptimizerConfig = field(default_factory=lambda: OptimizerConfig(learning_rate=6e-4, epsilon=1e-6))
    """Optimiser, with the settings of Table 4 of the paper."""
    schedule: ScheduleConfig = field(default_factory=lambda: ScheduleConfig(warmup="5000 steps"))
    """The learning rate over all phases."""
    checkpoints: CheckpointConfig = field(default_factory=lambda: CheckpointConfig(every="500 steps", keep=2))
    """Checkpoints, from which an interrupted run resumes."""

    @property
    def phases(self) -> list[PhaseConfig]:
        """The phases that have steps."""
        return [phase for phase in (self.short, self.long) if phase.n_steps]

    @property
    def n_steps(self) -> int:
        """The number of steps of all phases."""
        return sum(phase.n_steps for phase in self.phases)


def load_pretrain_recipe(recipe: str | Path, overrides: Overrides = None) -> PretrainRecipe:
    """Read a recipe.

    Args:
        recipe: the name of a recipe that ships with cige (`pretrain/tiny`) or a YAML file. With `extends:` and the name
            or path of another recipe, a file states only what differs from that recipe.
        overrides: {"short.n_steps": 100} or ["short.n_steps=100"]; they take precedence over the file.

    Raises:
        RecipeError: no such recipe, bad YAML, an unknown key, a wrong type, settings that contradict each other, or an
            override of `model.n_tokens`, which the data decides.
    """
    return resolve_pretrain_recipe(recipe, overrides)[0]


def resolve_pretrain_recipe(recipe: str | Path, overrides: Overrides = None) -> tuple[PretrainRecipe, dict[str, str]]:
    """Like `load_pretrain_recipe`, and also returns where each value that is not a default comes from, by key."""
    if "model.n_tokens" in dict(override_pairs(overrides)):
        raise RecipeError(
            "override model.n_tokens: this is always the size of the data's vocabulary; make another one with "
            "`cige lattice-bert pretrain vocab`, and data with it"
        )
    values, origins = read_recipe_file(recipe, overrides, kind=PRETRAIN)
    if "name" not in values:
        values["name"], origins["name"] = default_name(recipe), "from the recipe's own name"
    size = values.get("size", "tiny")
    if isinstance(values.get("model", {}), Mapping) and isinstance(size, str) and size in SIZES:
        start_from = values.get("start_from")
        settings = settings_of(start_from) if isinstance(start_from, str) else asdict(SIZES[size])
        values["model"] = settings | values.get("model", {})
        for key in settings:
            origins.setdefault(f"model.{key}", f"start_from {start_from}" if start_from else f"size {size}")
    built = build_strictly(PretrainRecipe, values, origins)
    for problem in _problems(built):
        raise RecipeError(f"{recipe}: {problem}")
    return built, origins


def _problems(recipe: PretrainRecipe) -> Iterator[str]:
    instances = recipe.instances
    yield from (f"model.{problem}" for problem in recipe.model.problems())
    if recipe.model.n_types < 2:
        yield f"model.n_types is {recipe.model.n_types}, expected 2 or more: an instance has two parts"
    if not recipe.n_steps:
        yield "short.n_steps and long.n_steps are the steps of the two phases; at least one must be more than 0"
    for name, phase in (("short", recipe.short), ("long", recipe.long)):
        if min(phase.n_characters, phase.max_tokens) <= N_SPECIAL + 1 or phase.max_tokens < phase.n_characters:
            yield f"{name}: n_characters must be more than {N_SPECIAL + 1}, max_tokens no less than n_characters"
        if phase.n_steps and phase.n_characters > recipe.model.max_positions:
            yield f"{name}.n_characters is {phase.n_characters}, but model.max_positions {recipe.model.max_positions}"
    if instances.masking == "words" and instances.use_words:
        yield (
            "instances.masking is 'words', which masks characters but not the lattice words over them; "
            "use 'segments', or read characters alone with instances.use_words=false"
        )
    yield from warmup_problems(recipe.schedule, n_steps=recipe.n_steps)
