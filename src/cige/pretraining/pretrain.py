"""pretrain: a recipe and a data folder become a pre-trained model.

    cige pretrain run pretrain/tiny --data data/ --output runs/tiny
    accelerate launch -m cige.cli pretrain run ...                         # the same on several GPUs or processes

The output folder holds recipe.yaml (every setting), checkpoint-N (where to go on after a kill), tensorboard/,
model-short/ (the model after the first phase, when there are two), model/ and result.json.
"""

from __future__ import annotations

import hashlib
import json
import math
import shutil
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState

from cige.errors import CigeError, RecipeError
from cige.folders.atomic import atomic_file
from cige.json_text import to_json
from cige.lexicon.joint_vocabulary import JointVocabulary
from cige.models.lattice_bert.heads import LatticeBertForPreTraining
from cige.models.lattice_bert.pretrained import PretrainedLatticeBert
from cige.nn.memory import keep_freed_memory
from cige.pretraining.curves import FOLDER as CURVES
from cige.pretraining.data import PretrainingData, open_data
from cige.pretraining.history import EvalRecord, LogRecord
from cige.pretraining.instances import N_SENTENCE_CLASSES
from cige.pretraining.loop import PretrainLoop
from cige.pretraining.recipe import PretrainRecipe, load_pretrain_recipe
from cige.pretraining.start import Origins, go_on_from
from cige.training.checkpoint import discard_checkpoints, last_checkpoint, says_what_survives
from cige.training.run_folder import MODEL, RESULT, claim


@dataclass(frozen=True)
class PretrainResult:
    """What a run gave.

    Attributes:
        name: the recipe's name; seed: of the run.
        n_steps: optimiser steps; n_parameters: weights that were trained.
        n_tokens: tokens read, padding not counted; seconds: of training, over all sittings.
        logs, evaluations: how it went.
        folder: the run's; model: its model folder.
        origins: where the tokens come from in a run that went on from another model, else None.
    """

    name: str
    seed: int
    n_steps: int
    n_parameters: int
    n_tokens: int
    seconds: float
    logs: tuple[LogRecord, ...]
    evaluations: tuple[EvalRecord, ...]
    folder: Path
    model: Path
    origins: Origins | None = None

    @classmethod
    def read(cls, folder: str | Path) -> PretrainResult:
        """The result of a finished run; raises CigeError where there is none."""
        folder = Path(folder)
        try:
            values = json.loads((folder / RESULT).read_text(encoding="utf-8"))
            logs = tuple(LogRecord.from_dict(record) for record in values.pop("logs"))
            evaluations = tuple(EvalRecord.from_dict(record) for record in values.pop("evaluations"))
            found = values.pop("origins", None)
            origins = None if found is None else Origins(**found)
            return cls(
                **values, logs=logs, evaluations=evaluations, folder=folder, model=folder / MODEL, origins=origins
            )
        except (OSError, ValueError, TypeError, KeyError) as reason:
            raise CigeError(f"{folder / RESULT}: not the result of a finished run ({reason})") from reason


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
    """Pre-train by a recipe, alone or as one of several processes (`accelerate launch`, `torchrun`).

    With `resume`, a run that was cut off goes on from its last checkpoint and ends with the weights that it would have
    had (to the bit on one machine with one thread); a finished run is not repeated.

    Args:
        data_dir: what `make_data` wrote.
        seed: decides initial weights, instances, masks and dropout.
        device: "auto" (a GPU where there is one), "cpu" or "cuda".
        stop_after: seconds after which to write a checkpoint and stop.

    Returns:
        The result, or None where time was up before the last step.

    Raises:
        CigeError: see the subclasses; RecipeError where `output_dir` holds a run of another recipe or seed.
    """
    stop_at = math.inf if stop_after is None else time.monotonic() + stop_after
    folder = Path(output_dir)
    accelerator = _accelerator(recipe, device)
    _check_batches(recipe, accelerator)
    if accelerator.is_main_process:
        claim(folder, recipe, seed=seed, resume=resume, load=load_pretrain_recipe)
    accelerator.wait_for_everyone()
    if (folder / RESULT).is_file():
        return PretrainResult.read(folder)
    keep_freed_memory()
    data = open_data(data_dir, check_contents=accelerator.is_main_process)
    _check_data(recipe, data)
    model, origins = _make_model(recipe, data, seed)
    loop = PretrainLoop(
        model=model,
        recipe=recipe,
        data=data,
        accelerator=accelerator,
        folder=folder,
        origin=_origin(model, data),
        seed=seed,
        show_progress=show_progress,
    )
    found = last_checkpoint(folder, origin=loop.origin)
    if found is not None:
        loop.load(found)
    elif accelerator.is_main_process:
        shutil.rmtree(folder / CURVES, ignore_errors=True)
    end = 0
    for phase in recipe.phases:
        end += phase.n_steps
        if loop.history.step < end and not loop.run(phase, end, stop_at=stop_at):
            return None
        if accelerator.is_main_process and end < recipe.n_steps and loop.history.step == end:
            _save_model(model, data, folder / f"{MODEL}-short", recipe, loop)
    if accelerator.is_main_process:
        _finish(recipe, model, data, loop, folder, seed, origins)
    accelerator.wait_for_everyone()
    return PretrainResult.read(folder)


def _accelerator(recipe: PretrainRecipe, device: str) -> Accelerator:
    if device not in ("auto", "cpu", "cuda"):
        raise CigeError(f"device {device!r}: expected auto, cpu or cuda")
    if device == "cuda" and not torch.cuda.is_available():
        raise CigeError("device cuda: this machine's PyTorch sees no GPU; use auto or cpu")
    AcceleratorState._reset_state()  # another run in this process may have had another precision
    precision = "bf16" if recipe.optimizer.precision == "bf16" else "no"
    return Accelerator(mixed_precision=precision, cpu=device == "cpu")


def _check_batches(recipe: PretrainRecipe, accelerator: Accelerator) -> None:
    for phase in recipe.phases:
        if phase.batch_size < accelerator.num_processes:
            raise RecipeError(
                f"{recipe.name}: batch_size {phase.batch_size} is less than the {accelerator.num_processes} processes; "
                "each needs an instance a step"
            )


def _check_data(recipe: PretrainRecipe, data: PretrainingData) -> None:
    if recipe.instances.masking == "words" and not data.has_words:
        raise RecipeError(f"{data.folder}: made without words, which instances.masking=words needs; make it with them")


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
    return model, go_on_from(model, PretrainedLatticeBert.from_pretrained(recipe.start_from), vocabulary)


def _origin(model: torch.nn.Module, data: PretrainingData) -> str:
    digest = hashlib.sha256(data.fingerprint.encode())
    for parameter in model.parameters():
        digest.update(parameter.detach().contiguous().numpy().tobytes())
    return digest.hexdigest()


def _save_model(
    model: LatticeBertForPreTraining, data: PretrainingData, folder: Path, recipe: PretrainRecipe, loop: PretrainLoop
) -> None:
    vocabulary = data.vocabulary
    if not recipe.instances.use_words:
        vocabulary = JointVocabulary(pieces=vocabulary.pieces, words=[])
    evaluations = loop.history.evaluations
    facts = {
        "recipe": asdict(recipe),
        "n_steps": loop.history.step,
        "data_fingerprint": data.fingerprint,
        "held_out": asdict(evaluations[-1]) if evaluations else None,
    }
    PretrainedLatticeBert(network=model, vocabulary=vocabulary, facts=facts).save(folder)


def _finish(
    recipe: PretrainRecipe,
    model: LatticeBertForPreTraining,
    data: PretrainingData,
    loop: PretrainLoop,
    folder: Path,
    seed: int,
    origins: Origins | None,
) -> None:
    logs = loop.history.logs
    values: Mapping[str, Any] = {
        "name": recipe.name,
        "seed": seed,
        "n_steps": loop.history.step,
        "n_parameters": sum(p.numel() for p in model.parameters()),
        "n_tokens": sum(record.n_tokens for record in logs),
        "seconds": sum(record.seconds for record in logs),
        "logs": [asdict(record) for record in logs],
        "evaluations": [asdict(record) for record in loop.history.evaluations],
        "origins": None if origins is None else asdict(origins),
    }
    _save_model(model, data, folder / MODEL, recipe, loop)
    with says_what_survives(folder), atomic_file(folder / RESULT) as aside:
        aside.write_text(to_json(values, indent=1), encoding="utf-8")
    discard_checkpoints(folder)
