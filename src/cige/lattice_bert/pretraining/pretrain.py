"""pretrain: pre-train a model with a recipe on a data folder.

    cige lattice-bert pretrain run pretrain/tiny --data data/ --output runs/tiny
    accelerate launch -m cige.cli lattice-bert pretrain run ...           # the same on several GPUs or processes

The output folder contains recipe.yaml (every setting), checkpoint-N (from which an interrupted run resumes),
tensorboard/, model-short/ (the model after the first phase, if there are two), model/ and result.json.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from cige.engine.checkpoint import reporting_write_errors
from cige.engine.history import Record, RunState
from cige.engine.parallel import is_sharded, whole_weights
from cige.engine.run import RunKind, Training, run
from cige.engine.run_config import RunConfig
from cige.engine.run_folder import MODEL, SHORT_MODEL, RunResult
from cige.engine.trainer import Trainer
from cige.errors import CigeError, RecipeError
from cige.lattice_bert.encoder.heads import LatticeBertForPreTraining
from cige.lattice_bert.encoder.joint_vocabulary import JointVocabulary
from cige.lattice_bert.encoder.pretrained import PretrainedLatticeBert
from cige.lattice_bert.pretraining.data import PretrainingData, open_data
from cige.lattice_bert.pretraining.instances import N_SENTENCE_CLASSES
from cige.lattice_bert.pretraining.objective import PretrainingObjective
from cige.lattice_bert.pretraining.recipe import PretrainRecipe, load_pretrain_recipe
from cige.lattice_bert.pretraining.start import Origins, initialise_from

if TYPE_CHECKING:
    from accelerate import Accelerator


@dataclass(frozen=True, kw_only=True)
class PretrainResult(RunResult):
    """The result of a run.

    Attributes:
        name: of the recipe; n_steps: number of optimiser steps; n_parameters: number of trained parameters.
        n_tokens: tokens read, without padding; seconds: time of training, also of earlier sessions of a resumed run.
        origins: the origin of the tokens in a run that was initialised with another model, else None.
        data: the fingerprint of the data; "" in results of earlier versions.
    """

    name: str
    seed: int
    n_steps: int
    n_parameters: int
    n_tokens: int
    seconds: float
    origins: Origins | None = None
    data: str = ""

    def __post_init__(self) -> None:
        if isinstance(self.origins, Mapping):  # read from a file
            object.__setattr__(self, "origins", Origins(**self.origins))

    @property
    def logs(self) -> tuple[Record, ...]:
        """The records of training."""
        return tuple(record for record in self.history if record.train)

    @property
    def evaluations(self) -> tuple[Record, ...]:
        """The records of held-out text."""
        return tuple(record for record in self.history if record.scores)


def pretrain(
    recipe: PretrainRecipe,
    data_dir: str | Path,
    output_dir: str | Path,
    *,
    seed: int = 1,
    device: str = "auto",
    resume: bool = True,
    stop_after: float | None = None,
    show_progress: bool = True,
) -> PretrainResult | None:
    """Pre-train with a recipe, in one process or as one of several (`accelerate launch`, `torchrun`).

    With `resume`, an interrupted run continues from its last checkpoint and ends with the same weights as an
    uninterrupted one (identical to the bit on one machine with one thread); a finished run is not repeated.

    Args:
        data_dir: a folder that `make_data` wrote.
        seed: determines the initial weights, instances, masks and dropout.
        device: "auto" (a GPU if there is one), "cpu" or "cuda".
        stop_after: number of seconds after which to write a checkpoint and stop; the result is None then.

    Raises:
        CigeError: see its subclasses; RecipeError if `output_dir` holds a run of another recipe or seed, or a finished
            one on other data.
    """
    folder = Path(output_dir)
    kind = RunKind(
        PretrainResult,
        load_pretrain_recipe,
        check=_check_batches,
        check_finished=partial(_check_same_data, data_dir),
        may_skip_weights=False,
    )
    return run(
        kind,
        partial(_begin, recipe, folder, seed, data_dir),
        folder,
        recipe,
        seed=seed,
        device=device,
        resume=resume,
        show_progress=show_progress,
        stop_at=math.inf if stop_after is None else time.monotonic() + stop_after,
    )


def _begin(
    recipe: PretrainRecipe, folder: Path, seed: int, data_dir: str | Path, accelerator: Accelerator
) -> Training[PretrainResult]:
    data = open_data(data_dir, check_contents=False, check_as_opened=accelerator.is_main_process)
    if recipe.instances.masking == "words" and not data.has_words:
        raise RecipeError(
            f"{data.folder}: made without words, which instances.masking=words needs; make the data with words"
        )
    model, origins = _make_model(recipe, data, seed)
    model.bert.recomputes_layers = recipe.training.gradient_checkpointing
    ends = list(accumulate(phase.n_steps for phase in recipe.phases))

    def save_short(trainer: Trainer, number: int) -> None:
        if trainer.state.step == ends[number] < recipe.n_steps:
            _save_model(model, data, folder / SHORT_MODEL, recipe, trainer.state, accelerator)

    def finish(trainer: Trainer) -> PretrainResult:
        _save_model(model, data, folder / MODEL, recipe, trainer.state, accelerator)
        logs = [record for record in trainer.state.records if record.train]
        return PretrainResult(
            name=recipe.name,
            seed=seed,
            n_steps=trainer.state.step,
            n_parameters=sum(p.numel() for p in model.parameters()),
            n_tokens=int(sum(record.train["n_tokens"] for record in logs)),
            seconds=sum(record.seconds for record in logs),
            history=tuple(trainer.state.records),
            folder=folder,
            origins=origins,
            data=data.fingerprint,
        )

    return Training(
        model,
        RunConfig(
            name=recipe.name,
            n_steps=recipe.n_steps,
            optimizer=recipe.optimizer,
            schedule=recipe.schedule,
            checkpoints=recipe.checkpoints,
            log_every=recipe.training.log_every,
            eval_every=recipe.training.eval_every,
            n_workers=recipe.training.n_workers,
            sharding=recipe.training.sharding,
            shards=list(model.bert.layers),
        ),
        _origin(model, data),
        [PretrainingObjective(phase, recipe, data, seed=seed) for phase in recipe.phases],
        finish,
        after=save_short,
    )


def _check_batches(recipe: PretrainRecipe, n_processes: int) -> None:
    for phase in recipe.phases:
        n_passes = -(-phase.batch_size // (n_processes * phase.micro_batch_size))  # of each process
        if phase.batch_size < n_processes * n_passes:
            raise RecipeError(
                f"{recipe.name}: a batch of {phase.batch_size} instances cannot be shared by {n_processes} processes; "
                f"each needs {n_passes} per step, so choose a batch_size of at least {n_processes * n_passes}"
            )


def _check_same_data(data_dir: str | Path, result: PretrainResult) -> None:
    """Raise a RecipeError if a finished run was on other data; its result can still be read if the data are gone."""
    try:
        fingerprint = open_data(data_dir, check_contents=False).fingerprint
    except CigeError:
        return
    if result.data not in ("", fingerprint):
        raise RecipeError(
            f"{result.folder} holds a finished run on other data than {data_dir}; choose another output folder, or "
            "start over with resume=False (--no-resume)"
        )


def _make_model(
    recipe: PretrainRecipe, data: PretrainingData, seed: int
) -> tuple[LatticeBertForPreTraining, Origins | None]:
    vocabulary = data.vocabulary
    n_tokens = len(vocabulary) if recipe.instances.use_words else vocabulary.n_pieces
    torch.manual_seed(seed)
    n_classes = N_SENTENCE_CLASSES[recipe.instances.sentence_task]
    model = LatticeBertForPreTraining(replace(recipe.model, n_tokens=n_tokens), n_classes)
    if recipe.start_from is None:
        return model, None
    return model, initialise_from(model, PretrainedLatticeBert.from_pretrained(recipe.start_from), vocabulary)


def _origin(model: torch.nn.Module, data: PretrainingData) -> str:
    digest = hashlib.sha256(data.fingerprint.encode())
    for parameter in model.parameters():
        digest.update(parameter.detach().contiguous().numpy().tobytes())
    return digest.hexdigest()


def _save_model(
    model: LatticeBertForPreTraining,
    data: PretrainingData,
    folder: Path,
    recipe: PretrainRecipe,
    state: RunState,
    accelerator: Accelerator,
) -> None:
    """Save the model; all processes call this together, since each may have a part of it, and the first one writes."""
    weights = whole_weights(model)
    if not accelerator.is_main_process:
        return
    if any(map(is_sharded, model.parameters())):
        model = LatticeBertForPreTraining(model.config, model.sentence.out_features)
        model.load_state_dict(model.state_dict() | weights)
    vocabulary = data.vocabulary
    if not recipe.instances.use_words:
        vocabulary = JointVocabulary(pieces=vocabulary.pieces, words=[])
    facts = {
        "recipe": asdict(recipe),
        "n_steps": state.step,
        "data_fingerprint": data.fingerprint,
        "held_out": {"step": state.scored[-1].step, **state.scored[-1].scores} if state.scored else None,
    }
    with reporting_write_errors(folder):
        PretrainedLatticeBert(network=model, vocabulary=vocabulary, facts=facts).save(folder)
