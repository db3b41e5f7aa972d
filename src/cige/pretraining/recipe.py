"""PretrainRecipe: everything that decides a pre-training run except the data, the seed and the output folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from cige.errors import RecipeError
from cige.models.lattice_bert.network import SIZES, LatticeBertConfig
from cige.pretraining.dataset import InstanceConfig
from cige.pretraining.packing import N_SPECIAL, Room
from cige.pretraining.start import settings_of
from cige.training.recipe_file import read_recipe_file
from cige.training.strict import build_strictly


@dataclass(frozen=True)
class PhaseConfig:
    """A stretch of steps on instances of one size."""

    n_steps: int = 0
    """Optimiser steps; 0 leaves the phase out."""
    n_characters: int = 128
    """Pieces an instance holds at most, [CLS] and both [SEP] included."""
    max_tokens: int = 173
    """Lattice tokens it holds at most: 35% more, appendix C.1. Characters alone are packed by the same rule, so that
    models with and without words read the same instances."""
    batch_size: int = 256
    """Instances a step, of all processes together."""
    micro_batch_size: int = 32
    """Instances a forward pass, at most; the gradient of a step is summed over as many passes as it takes."""

    @property
    def room(self) -> Room:
        return Room(self.n_characters, self.max_tokens)


@dataclass(frozen=True)
class OptimizerConfig:
    """Table 4 of the paper."""

    learning_rate: float = 6e-4
    """Highest learning rate."""
    n_warmup_steps: int = 5000
    """Steps in which it rises from zero; after them it falls linearly to zero at the end of the last phase."""
    weight_decay: float = 0.01
    """Decoupled weight decay of matrices and tables; biases and normalisations have none."""
    beta1: float = 0.9
    """Decay of the mean of gradients."""
    beta2: float = 0.999
    """Decay of the mean of their squares."""
    epsilon: float = 1e-6
    """Added to the root of that mean."""
    clip_norm: float = 1.0
    """Clip the gradient of a step to this norm."""
    precision: Literal["fp32", "bf16"] = "fp32"
    """bf16 runs matrix products in bfloat16; weights stay float32."""


@dataclass(frozen=True)
class RhythmConfig:
    """What happens every so many steps."""

    log_steps: int = 50
    """Steps a line of losses and accuracies."""
    eval_steps: int = 1000
    """Steps between measurements on held-out text; one is made at the end of each phase too."""
    n_eval_instances: int = 1000
    """Held-out instances to measure on, at most."""
    checkpoint_steps: int = 500
    """Steps between checkpoints; one is written at the end of each phase too."""
    n_checkpoints: int = 2
    """How many to keep."""
    n_workers: int = 0
    """Processes that make batches beside each training process; 0 makes them in it."""


@dataclass(frozen=True)
class PretrainRecipe:
    """Everything that decides a run, besides its data and seed."""

    name: str
    """What the run is called."""
    size: Literal["tiny", "lite", "base"] = "tiny"
    """Where the settings of `model` come from that are not given."""
    start_from: str | None = None
    """A pre-trained model to go on from, its folder or hub id; settings of `model` that are not given are then its own.
    Its vocabulary may be another than the data's: see pretraining/start.py."""
    model: LatticeBertConfig = SIZES["tiny"]
    """The network; `n_tokens` is that of the data's vocabulary, whatever is said here."""
    instances: InstanceConfig = field(default_factory=InstanceConfig)
    """What is read and what is asked."""
    short: PhaseConfig = field(default_factory=PhaseConfig)
    """The first phase."""
    long: PhaseConfig = field(default_factory=lambda: PhaseConfig(n_characters=512, max_tokens=692))
    """The second phase; appendix C.1 gives it a tenth of all steps."""
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    """How to optimise."""
    rhythm: RhythmConfig = field(default_factory=RhythmConfig)
    """When to log, measure and save."""

    @property
    def phases(self) -> list[PhaseConfig]:
        """The phases that have steps."""
        return [phase for phase in (self.short, self.long) if phase.n_steps]

    @property
    def n_steps(self) -> int:
        """Steps of all phases."""
        return sum(phase.n_steps for phase in self.phases)


def load_pretrain_recipe(
    path: str | Path, overrides: Mapping[str, Any] | Sequence[str] | None = None
) -> PretrainRecipe:
    """Read a recipe.

    Args:
        path: a YAML file; with `extends: other.yaml` it states only what differs from that file.
        overrides: {"short.n_steps": 100} or ["short.n_steps=100"]; win over the file.

    Raises:
        RecipeError: no such file, bad YAML, an unknown key, a wrong type, or settings that contradict each other.
    """
    values, origins = read_recipe_file(Path(path), overrides)
    values.setdefault("name", Path(path).stem)
    size = values.get("size", "tiny")
    if isinstance(values.get("model", {}), Mapping) and size in SIZES:
        start_from = values.get("start_from")
        own = settings_of(start_from) if isinstance(start_from, str) else asdict(SIZES[size])
        values["model"] = own | values.get("model", {})
    recipe = build_strictly(PretrainRecipe, values, origins)
    for problem in _problems(recipe):
        raise RecipeError(f"{path}: {problem}")
    return recipe


def _problems(recipe: PretrainRecipe) -> Iterator[str]:
    instances, optimizer, rhythm = recipe.instances, recipe.optimizer, recipe.rhythm
    yield from (f"model.{problem}" for problem in recipe.model.problems())
    if not recipe.n_steps or min(recipe.short.n_steps, recipe.long.n_steps) < 0:
        yield "short.n_steps and long.n_steps are the steps of the two phases; at least one must be more than 0"
    for name, phase in (("short", recipe.short), ("long", recipe.long)):
        if min(phase.n_characters, phase.max_tokens) <= N_SPECIAL + 1 or phase.max_tokens < phase.n_characters:
            yield f"{name}: n_characters must be more than {N_SPECIAL + 1}, max_tokens no less than n_characters"
        if min(phase.batch_size, phase.micro_batch_size) < 1:
            yield f"{name}: batch_size and micro_batch_size must be 1 or more"
        if phase.n_steps and phase.n_characters > recipe.model.max_positions:
            yield f"{name}.n_characters is {phase.n_characters}, but model.max_positions {recipe.model.max_positions}"
    if instances.masking == "words" and instances.use_words:
        yield (
            "instances.masking is 'words', which hides characters and leaves lattice words over them in sight; "
            "use 'segments', or read characters alone with instances.use_words=false"
        )
    if not 0 < instances.mask_prob < 1 or not 0 <= instances.short_prob <= 1:
        yield "instances.mask_prob must be between 0 and 1, instances.short_prob from 0 to 1"
    if min(optimizer.learning_rate, optimizer.clip_norm, optimizer.epsilon) <= 0 or optimizer.weight_decay < 0:
        yield "optimizer.learning_rate, clip_norm and epsilon must be more than 0, weight_decay 0 or more"
    if not (0 <= optimizer.beta1 < 1 and 0 <= optimizer.beta2 < 1):
        yield "optimizer.beta1 and beta2 must be from 0 to below 1"
    if not 0 <= optimizer.n_warmup_steps <= recipe.n_steps:
        yield f"optimizer.n_warmup_steps is {optimizer.n_warmup_steps}, expected 0 to {recipe.n_steps} (all steps)"
    if min(rhythm.log_steps, rhythm.eval_steps, rhythm.checkpoint_steps, rhythm.n_checkpoints) < 1:
        yield "rhythm.log_steps, eval_steps, checkpoint_steps and n_checkpoints must be 1 or more"
    if min(rhythm.n_eval_instances, rhythm.n_workers) < 0:
        yield "rhythm.n_eval_instances and n_workers must be 0 or more"
