"""train: a recipe becomes a model folder.

    cige train weibo/flat --seed 1 --output runs/weibo/flat

The output folder holds recipe.yaml (every setting), checkpoint-N (where to go on after a kill), best.safetensors,
result.json (dev scores by epoch) and model/ (what `cige.load` reads).
"""

from __future__ import annotations

import json
import platform
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

from cige.errors import CigeError
from cige.folders.atomic import atomic_file
from cige.json_text import to_json
from cige.models.model import LatticeModel
from cige.nn.memory import keep_freed_memory
from cige.training.checkpoint import (
    discard_checkpoints,
    last_checkpoint,
    load_weights,
    read_history,
    says_what_survives,
)
from cige.training.dataset import TrainingSet
from cige.training.dev_scores import EvaluationSet
from cige.training.history import EpochRecord
from cige.training.plan import BatchPlan
from cige.training.progress import Progress
from cige.training.recipe import Recipe
from cige.training.run_folder import BEST, MODEL, RESULT, claim
from cige.training.setup import TrainingSetup, set_up
from cige.training.trainer import LatticeTrainer, TrainingArguments


@dataclass(frozen=True)
class TrainResult:
    """What a run gave.

    Attributes:
        name: the recipe's name; seed: of the run.
        dev_f1: strict F1 on dev of the weights kept, 0..1; best_epoch: when that was, from 1.
        minutes: training and scoring, over all sittings.
        n_parameters: weights that were trained.
        padding_share: share of node pairs computed on padding, 0..1.
        folder: the run's; model: its model folder.
        history: a record for each epoch.
        machine: what it ran on.
    """

    name: str
    seed: int
    dev_f1: float
    best_epoch: int
    minutes: float
    n_parameters: int
    padding_share: float
    folder: Path
    model: Path
    history: tuple[EpochRecord, ...]
    machine: dict[str, Any]


def train(
    recipe: Recipe,
    output_dir: str | Path,
    *,
    seed: int = 1,
    data_dir: str | Path | None = None,
    device: str = "auto",
    resume: bool = True,
    show_progress: bool = True,
) -> TrainResult:
    """Train by a recipe and write the model folder `output_dir/model`.

    With `resume`, a run that was cut off goes on from its last checkpoint and ends with the weights it would have had
    (to the bit on one machine with one thread); a finished run is not repeated, its result is returned.

    Args:
        seed: decides initial weights, order of sentences, dropout and simulated user words.
        data_dir: folder of data sets and vectors; default $CIGE_DATA and the cache.
        device: "auto" (a GPU where there is one), "cpu" or "cuda".

    Raises:
        CigeError: see the subclasses; RecipeError where `output_dir` holds a run of another recipe or seed.
    """
    folder = Path(output_dir)
    claim(folder, recipe, seed=seed, resume=resume)
    if (folder / RESULT).is_file():
        return read_result(folder)
    keep_freed_memory()
    setup = set_up(recipe, seed=seed, data_dir=data_dir)
    trainer = _make_trainer(recipe, setup, folder, seed=seed, device=device, show_progress=show_progress)
    found = last_checkpoint(folder, origin=trainer.origin)
    if found is not None:
        trainer.history = read_history(found)
    if not trainer.is_finished():
        trainer.train(resume_from_checkpoint=str(found) if found else None)
    return _finish(recipe, setup, trainer, folder, seed)


def read_result(folder: str | Path) -> TrainResult:
    """The result of a finished run."""
    folder = Path(folder)
    try:
        values = json.loads((folder / RESULT).read_text(encoding="utf-8"))
        history = tuple(EpochRecord(**record) for record in values.pop("history"))
        return TrainResult(**values, folder=folder, model=folder / MODEL, history=history)
    except (OSError, ValueError, TypeError, KeyError) as reason:
        raise CigeError(f"{folder / RESULT}: not the result of a finished run ({reason})") from reason


def _make_trainer(
    recipe: Recipe, setup: TrainingSetup, folder: Path, *, seed: int, device: str, show_progress: bool
) -> LatticeTrainer:
    config, scheme = recipe.training, recipe.data.scheme
    train_set = TrainingSet(
        setup.train,
        setup.train_lattices,
        vocabulary=setup.vocabulary,
        tags=setup.tagger.tags,
        scheme=scheme,
        regime=recipe.user_words,
        seed=seed,
        mentions=recipe.mentions,
        snapshot=setup.lexicon.snapshot(),
    )
    dev_set = EvaluationSet(
        setup.dev, setup.dev_lattices, vocabulary=setup.vocabulary, scheme=scheme, max_pairs=config.max_pairs
    )
    plan = BatchPlan(
        train_set.n_nodes,
        n_epochs=config.n_epochs,
        batch_size=config.batch_size,
        max_pairs=config.max_pairs,
        pool_batches=config.pool_batches,
        seed=seed,
    )
    args = TrainingArguments(
        output_dir=str(folder),
        num_train_epochs=1,  # the plan holds all epochs
        per_device_train_batch_size=config.batch_size,
        max_grad_norm=0.0,  # LatticeTrainer clips
        bf16=config.precision == "bf16",
        use_cpu=_use_cpu(device),
        seed=seed,
        eval_strategy="no",
        save_strategy="no",
        logging_strategy="no",
        logging_nan_inf_filter=False,
        disable_tqdm=True,
        report_to=["tensorboard"] if find_spec("tensorboard") else [],
        remove_unused_columns=False,
        dataloader_pin_memory=False,
        accelerator_config={"even_batches": False},
    )
    args._n_gpu = min(args.n_gpu, 1)  # several GPUs would mean DataParallel, which cannot split a LatticeBatch
    progress = [Progress(recipe.name, plan)] if show_progress else []
    return LatticeTrainer(
        tagger=setup.tagger,
        train_set=train_set,
        dev_set=dev_set,
        plan=plan,
        config=config,
        origin=setup.fingerprint(),
        args=args,
        callbacks=progress,
    )


def _finish(recipe: Recipe, setup: TrainingSetup, trainer: LatticeTrainer, folder: Path, seed: int) -> TrainResult:
    best = trainer.history.best
    assert best is not None and best.dev_f1 is not None
    load_weights(setup.tagger, folder / BEST)
    facts = {
        "name": recipe.name,
        "seed": seed,
        "dev_f1": best.dev_f1,
        "best_epoch": best.epoch,
        "minutes": trainer.history.minutes,
        "n_parameters": sum(p.numel() for p in setup.tagger.parameters() if p.requires_grad),
        "padding_share": trainer.plan.padding_share(),
        "machine": {
            "processor": platform.machine(),
            "n_threads": torch.get_num_threads(),
            "device": str(trainer.args.device),
            "torch": torch.__version__,
        },
    }
    model = LatticeModel(
        tagger=setup.tagger.eval(),
        vocabulary=setup.vocabulary,
        lexicon=setup.lexicon,
        config=recipe.model,
        labels=setup.labels,
        architecture=recipe.architecture,
        scheme=recipe.data.scheme,
        facts=facts | {"recipe": asdict(recipe)},
    )
    values = facts | {"history": [asdict(record) for record in trainer.history.epochs]}
    with says_what_survives(folder):
        model.save(folder / MODEL)
        with atomic_file(folder / RESULT) as aside:
            aside.write_text(to_json(values, indent=1), encoding="utf-8")
    discard_checkpoints(folder)
    (folder / BEST).unlink()
    return read_result(folder)


def _use_cpu(device: str) -> bool:
    if device not in ("auto", "cpu", "cuda"):
        raise CigeError(f"device {device!r}: expected auto, cpu or cuda")
    if device == "cuda" and not torch.cuda.is_available():
        raise CigeError("device cuda: this machine's PyTorch sees no GPU; use auto or cpu")
    return device == "cpu" or not torch.cuda.is_available()


if __name__ == "__main__":
    raise SystemExit("training is a command: cige train RECIPE --output FOLDER")
