"""finetune: a task, its data and a pre-trained model become a tuned model, its scores and its answers.

    cige finetune tnews --model runs/lattice_tiny/model --data data --output runs/tnews

The output folder holds recipe.yaml (every setting), checkpoint-N (where to go on after a kill), model/ with the weights
of the best epoch, answers/ (dev and test, in CLUE's formats) and result.json.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from cige.errors import CigeError, DataError
from cige.folders.atomic import atomic_file
from cige.folders.hub import model_folder
from cige.folders.manifest import MANIFEST, sha256
from cige.json_text import to_json
from cige.models.lattice_bert.pretrained import PretrainedLatticeBert
from cige.nn.memory import keep_freed_memory
from cige.recipes.recipe_file import read_recipe_file
from cige.recipes.strict import build_strictly
from cige.tasks.config import TuningConfig
from cige.tasks.history import TunedEpoch
from cige.tasks.items import Room
from cige.tasks.kinds import KINDS
from cige.tasks.loop import TuningLoop
from cige.tasks.registry import Task
from cige.tasks.tagging import TaggingHead
from cige.tasks.task_data import TaskData
from cige.tasks.tuned import TunedModel, TunedNetwork
from cige.tasks.used_rows import UsedRows
from cige.training.checkpoint import discard_checkpoints, last_checkpoint, load_weights, says_what_survives
from cige.training.run_folder import BEST, MODEL, RESULT, claim

ANSWERS = "answers"


@dataclass(frozen=True)
class RunSettings:
    """Everything that decides a run besides its seed; a folder with another one is refused."""

    task: str
    """Name of the task."""
    model: str
    """Fingerprint of the pre-trained model."""
    data: str
    """Fingerprint of the examples."""
    config: TuningConfig
    """How the task is learnt."""


@dataclass(frozen=True)
class TuningResult:
    """What a run gave.

    Attributes:
        task: its name; seed: of the run; learning_rate: the highest.
        data: what the data is: full, partial or a stand-in.
        best_epoch: from 1.
        dev, test: scores of the best epoch, 0..1, the deciding one first; `test` is empty without labelled examples.
        n_parameters: weights that were trained.
        seconds: of training and answering the development examples.
        facts: about the data: how many examples of each split, how many nothing can be learnt from.
        history: the epochs.
        folder: the run's; model: its model folder.
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
    history: tuple[TunedEpoch, ...]
    folder: Path
    model: Path

    @property
    def deciding(self) -> float:
        """The development score that chooses epochs and learning rates, 0..1."""
        return next(iter(self.dev.values()))

    @classmethod
    def read(cls, folder: str | Path) -> TuningResult:
        """The result of a finished run; raises CigeError where there is none."""
        folder = Path(folder)
        try:
            values = json.loads((folder / RESULT).read_text(encoding="utf-8"))
            history = tuple(TunedEpoch(**record) for record in values.pop("history"))
            return cls(**values, history=history, folder=folder, model=folder / MODEL)
        except (OSError, ValueError, TypeError, KeyError) as reason:
            raise CigeError(f"{folder / RESULT}: not the result of a finished run ({reason})") from reason


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
    """Tune a pre-trained model on a task and keep the weights of the epoch that is best on the development examples.

    With `resume`, a run that was cut off goes on from its last epoch and ends with the weights that it would have had
    (to the bit on one machine with one thread); a finished run is not repeated.

    Args:
        model: folder or hub id of a PretrainedLatticeBert.
        config: default: the task's, which is the paper's.
        seed: decides the head's initial weights, the order of examples and dropout.
        device: "auto" (a GPU where there is one), "cpu" or "cuda".
        keep_model: write the model folder; without it, answers and scores are all that stays.

    Raises:
        CigeError: see the subclasses; RecipeError where `output_dir` holds another run.
    """
    task, folder, source = data.task, Path(output_dir), model_folder(model)
    config = config or task.config
    where = _device(device)
    settings = RunSettings(task.name, model_fingerprint(source), data.fingerprint, config)
    claim(folder, settings, seed=seed, resume=resume, load=_load_settings)
    if (folder / RESULT).is_file():
        return TuningResult.read(folder)
    keep_freed_memory()
    train, dev, test = data.train[: config.n_train], data.dev[: config.n_dev], data.test[: config.n_dev]
    tuned = _new_model(task, PretrainedLatticeBert.from_pretrained(source), [*data.train, *data.dev], config, seed)
    learnt = [item for item in tuned.items(train) if item.target is not None]
    dev_items = tuned.items(dev)
    if not learnt:
        raise DataError(f"{data.folder}: none of the {len(train):,} training examples has anything to learn")
    n_parameters = sum(p.numel() for p in tuned.network.parameters() if p.requires_grad)
    used = UsedRows(tuned.pretrained.bert, [*learnt, *dev_items])
    tuned.network.to(where)
    loop = TuningLoop(
        model=tuned,
        items=used.renumber(learnt),
        dev=dev,
        dev_items=used.renumber(dev_items),
        config=config,
        folder=folder,
        origin=hashlib.sha256(repr((settings, seed)).encode()).hexdigest(),
        seed=seed,
        show_progress=show_progress,
    )
    found = last_checkpoint(folder, origin=loop.origin)
    if found is not None:
        loop.load(found)
    best = loop.run()
    load_weights(tuned.network, folder / BEST)
    used.put_back()
    tuned.network.to(where)
    facts = {"n_train": len(train), "n_dev": len(dev), "n_test": len(test), "n_items": len(learnt)}
    values: dict[str, Any] = {
        "task": task.name,
        "seed": seed,
        "learning_rate": config.learning_rate,
        "data": data.state + (f", the first {len(train):,} learnt" if len(train) < len(data.train) else ""),
        "best_epoch": best.epoch,
        "dev": best.scores,
        "test": _answer(tuned, {"dev": dev, "test": test}, task, config, folder)["test"],
        "n_parameters": n_parameters,
        "seconds": sum(record.seconds + record.dev_seconds for record in loop.history.epochs),
        "facts": facts | tuned.kind.count(train) | {"n_not_learnt": len(train) - len({i.example for i in learnt})},
        "history": [asdict(record) for record in loop.history.epochs],
    }
    _finish(tuned, values, folder, keep_model=keep_model)
    return TuningResult.read(folder)


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


def _answer(
    tuned: TunedModel, splits: dict[str, list[Any]], task: Task, config: TuningConfig, folder: Path
) -> dict[str, dict[str, float]]:
    """Write the answers to each split; returns the scores of each, {} without labels."""
    scores: dict[str, dict[str, float]] = {}
    for split, examples in splits.items():
        answers = tuned.predict(examples, precision=config.precision)
        is_labelled = bool(examples) and all(map(tuned.kind.is_labelled, examples))
        scores[split] = tuned.score(examples, answers) if is_labelled else {}
        if examples:
            name = task.submission if split == "test" and task.submission else f"{split}.json"
            with says_what_survives(folder), atomic_file(folder / ANSWERS / name) as aside:
                aside.write_text(tuned.kind.write(examples, answers), encoding="utf-8", errors="backslashreplace")
    return scores


def _finish(tuned: TunedModel, values: Mapping[str, Any], folder: Path, *, keep_model: bool) -> None:
    tuned.network.to("cpu").eval()
    tuned.facts = {name: value for name, value in values.items() if name != "history"}
    with says_what_survives(folder):
        if keep_model:
            tuned.save(folder / MODEL)
        with atomic_file(folder / RESULT) as aside:
            aside.write_text(to_json(values, indent=1), encoding="utf-8")
    discard_checkpoints(folder)
    (folder / BEST).unlink()


def _device(name: str) -> str:
    if name not in ("auto", "cpu", "cuda"):
        raise CigeError(f"device {name!r}: expected auto, cpu or cuda")
    if name == "cuda" and not torch.cuda.is_available():
        raise CigeError("device cuda: this machine's PyTorch sees no GPU; use auto or cpu")
    return "cuda" if name != "cpu" and torch.cuda.is_available() else "cpu"


def model_fingerprint(model: Path) -> str:
    """Of all files of a model folder, by its manifest; "" where there is none, which loading will tell."""
    manifest = model / MANIFEST
    return sha256(manifest) if manifest.is_file() else ""


def _load_settings(path: Path) -> RunSettings:
    values, origins = read_recipe_file(path, None)
    return build_strictly(RunSettings, values, origins)
