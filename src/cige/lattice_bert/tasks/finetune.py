"""finetune: fine-tune a pre-trained model on a task, score it, and write its answers.

    cige lattice-bert finetune tnews --model runs/lattice_tiny/model --data data --output runs/tnews

The output folder contains recipe.yaml (every setting), checkpoint-N (from which an interrupted run resumes), model/
with the weights of the best epoch, answers/ (dev and test, in CLUE's formats) and result.json.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from cige.engine.checkpoint import reporting_write_errors
from cige.engine.run import RunKind, Training, run
from cige.engine.run_config import RunConfig
from cige.engine.run_folder import RunResult, result_values
from cige.engine.settings import TrainingConfig
from cige.engine.trainer import Trainer
from cige.errors import DataError
from cige.folders.atomic import atomic_file
from cige.folders.hub import model_folder
from cige.folders.manifest import MANIFEST, sha256
from cige.lattice_bert.encoder.pretrained import PretrainedLatticeBert
from cige.lattice_bert.tasks.config import TuningConfig
from cige.lattice_bert.tasks.items import Room, max_pairs_on
from cige.lattice_bert.tasks.kinds import KINDS, Scores
from cige.lattice_bert.tasks.objective import TuningObjective
from cige.lattice_bert.tasks.registry import Task
from cige.lattice_bert.tasks.tagging import TaggingHead
from cige.lattice_bert.tasks.task_data import TaskData
from cige.lattice_bert.tasks.tuned import TunedModel, TunedNetwork
from cige.lattice_bert.tasks.used_rows import UsedRows
from cige.recipes.recipe_file import read_recipe_file
from cige.recipes.strict import build_strictly

if TYPE_CHECKING:
    from accelerate import Accelerator

ANSWERS = "answers"


@dataclass(frozen=True)
class RunSettings:
    """Everything that determines a run except its seed; an output folder with other settings raises an error."""

    task: str
    """Name of the task."""
    model: str
    """Fingerprint of the pre-trained model."""
    data: str
    """Fingerprint of the examples."""
    config: TuningConfig
    """The settings of fine-tuning."""

    @property
    def training(self) -> TrainingConfig:
        """Its section `training`."""
        return self.config.training


@dataclass(frozen=True, kw_only=True)
class TuningResult(RunResult):
    """The result of a run.

    Attributes:
        data: whether the data is the full data set, a part of it or a stand-in.
        best_epoch: from 1; dev, test: its scores, 0..1, the deciding one first; {} without labelled examples.
        n_parameters: number of trained weights; seconds: time of training and of answering the development examples.
        facts: the number of examples per split, and how many cannot be used for training.
    """

    task: str
    seed: int
    learning_rate: float
    data: str
    best_epoch: int
    dev: dict[str, float]
    test: dict[str, float]
    n_parameters: int
    seconds: float
    facts: dict[str, int]

    @property
    def deciding(self) -> float:
        """The development score that chooses epochs and learning rates, 0..1."""
        return next(iter(self.dev.values()))


def finetune(
    data: TaskData,
    model: str | Path,
    output_dir: str | Path,
    *,
    config: TuningConfig | None = None,
    seed: int = 1,
    device: str = "auto",
    resume: bool = True,
    keep_model: bool = True,
    show_progress: bool = True,
) -> TuningResult:
    """Fine-tune a pre-trained model on a task, and keep the weights of the best epoch on the development examples.

    With `resume`, an interrupted run continues from its last epoch and ends with the same weights as an uninterrupted
    one (identical to the bit on one machine with one thread); a finished run is not repeated.

    Args:
        model: folder or hub id of a PretrainedLatticeBert.
        config: settings; None uses those of the task's recipe, which are the paper's.
        seed: determines the initial weights of the head, the order of examples, and dropout.
        device: "auto" (a GPU if there is one), "cpu" or "cuda".
        keep_model: whether to write the model folder; otherwise only answers and scores are kept.

    Raises:
        CigeError: see its subclasses; RecipeError if `output_dir` holds another run.
    """
    config = config or data.task.config
    folder, source = Path(output_dir), model_folder(model)
    settings = RunSettings(data.task.name, model_fingerprint(source), data.fingerprint, config)
    begin = partial(_begin, data, source, settings, folder, seed, keep_model)
    kind = RunKind(TuningResult, _load_settings)
    result = run(kind, begin, folder, settings, seed=seed, device=device, resume=resume, show_progress=show_progress)
    assert result is not None  # no time to stop was given
    return result


def _begin(
    data: TaskData,
    source: Path,
    settings: RunSettings,
    folder: Path,
    seed: int,
    keep_model: bool,
    accelerator: Accelerator,
) -> Training[TuningResult]:
    task, config = data.task, settings.config
    train, dev, test = data.train[: config.n_train], data.dev[: config.n_dev], data.test[: config.n_dev]
    _check_labels(data, test)
    tuned = _new_model(task, PretrainedLatticeBert.from_pretrained(source), [*data.train, *data.dev], config, seed)
    learnt = [item for item in tuned.items(train) if item.target is not None]
    dev_items = tuned.items(dev)
    if not learnt:
        raise DataError(f"{data.folder}: none of the {len(train):,} training examples can be used for training")
    n_parameters = sum(p.numel() for p in tuned.network.parameters() if p.requires_grad)
    used = UsedRows(tuned.pretrained.bert, [*learnt, *dev_items])
    objective = TuningObjective(
        tuned,
        used.renumber(learnt),
        dev=dev,
        dev_items=used.renumber(dev_items),
        config=config,
        seed=seed,
        max_pairs=max_pairs_on(accelerator.device),
    )
    tuned.network.bert.recomputes_layers = config.gradient_checkpointing

    def finish(trainer: Trainer) -> TuningResult:
        best = trainer.load_best()
        used.put_back()
        test_scores: dict[str, float] = {}
        if accelerator.is_main_process:
            tuned.network.to(accelerator.device)
            _answer(tuned, dev, config, folder / ANSWERS / "dev.json")
            test_scores = _answer(tuned, test, config, folder / ANSWERS / (task.submission or "test.json"))
        facts = {"n_train": len(train), "n_dev": len(dev), "n_test": len(test), "n_items": len(learnt)}
        result = TuningResult(
            task=task.name,
            seed=seed,
            learning_rate=config.optimizer.learning_rate,
            data=data.state + (f", the first {len(train):,} learnt" if len(train) < len(data.train) else ""),
            best_epoch=best.epoch,
            dev=dict(best.scores),
            test=test_scores,
            n_parameters=n_parameters,
            seconds=trainer.state.total_seconds,
            facts=facts | tuned.kind.count(train) | {"n_not_learnt": len(train) - len({i.example for i in learnt})},
            history=tuple(trainer.state.records),
            folder=folder,
        )
        if keep_model and accelerator.is_main_process:
            tuned.network.to("cpu").eval()
            tuned.facts = result_values(result)
            with reporting_write_errors(folder):
                tuned.save(result.model)
        return result

    name = f"{task.name} {config.optimizer.learning_rate:g} seed {seed}"
    origin = hashlib.sha256(repr((settings, seed)).encode()).hexdigest()
    run_config = RunConfig.in_epochs(config, name=name, n_steps=objective.n_steps)
    return Training(tuned.network, run_config, origin, [objective], finish)


def _check_labels(data: TaskData, test: list[Any]) -> None:
    """Raise a DataError if a label occurs in test only, which would otherwise stop the run after training."""
    settings_of = KINDS[data.task.kind].settings
    known, tested = (settings_of(part).get("labels", []) for part in ([*data.train, *data.dev], test))
    if unknown := sorted(set(tested) - set(known)):
        raise DataError(
            f"{data.folder}: test has the label {', '.join(unknown[:5])}, which no example of train or dev has "
            f"({', '.join(known[:20])}); correct the test file, or leave these examples or their labels out"
        )


def _new_model(
    task: Task, pretrained: PretrainedLatticeBert, examples: list[Any], config: TuningConfig, seed: int
) -> TunedModel:
    pretrained = PretrainedLatticeBert(pretrained.bert, pretrained.vocabulary, pretrained.facts)  # without its heads
    kind = KINDS[task.kind]
    torch.manual_seed(seed)
    settings = kind.settings(examples) | ({"crf": config.crf} if kind.head is TaggingHead else {})
    head = kind.head(width=pretrained.config.width, dropout_prob=config.dropout_prob, **settings)
    room = Room(config.max_tokens, min(config.max_pieces, pretrained.config.max_positions))
    return TunedModel(TunedNetwork(pretrained.bert, head), pretrained, task.name, task.kind, room=room)


def _answer(tuned: TunedModel, examples: list[Any], config: TuningConfig, path: Path) -> Scores:
    """Write the answers to the examples of a split, if there are any; returns their scores, {} without labels."""
    if not examples:
        return {}
    answers = tuned.predict(examples, precision=config.training.precision)
    with reporting_write_errors(path), atomic_file(path) as aside:
        aside.write_text(tuned.kind.write(examples, answers), encoding="utf-8", errors="backslashreplace")
    return tuned.score(examples, answers) if all(map(tuned.kind.is_labelled, examples)) else {}


def model_fingerprint(model: Path) -> str:
    """The fingerprint of all files of a model folder, from its manifest; "" if there is none (loading reports that)."""
    manifest = model / MANIFEST
    return sha256(manifest) if manifest.is_file() else ""


def _load_settings(path: Path) -> RunSettings:
    values, origins = read_recipe_file(path, None)
    return build_strictly(RunSettings, values, origins)
