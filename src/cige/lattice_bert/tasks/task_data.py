"""TaskData: the examples of a task, and how they compare with the published data."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from cige.errors import DataError
from cige.lattice_bert.tasks.registry import SPLITS, Task

PLACES = ("", "clue", "cws", "ner")  # subfolders of a data folder that may contain the folders of tasks
NEARLY_ALL = 0.98  # share of the published examples that counts as the full data set
PUBLIC = "_public"  # the suffix that CLUE's archives add to folder names
STAND_INS = {"ocnli": "OCNLI"}  # folder -> data set that replaces that of the task


@dataclass(frozen=True)
class TaskData:
    """The examples of a task."""

    task: Task
    train: list[Any]
    dev: list[Any]
    test: list[Any]  # labelled or unlabelled; empty if there is no file
    folder: Path  # from which they were read

    def split(self, name: str) -> list[Any]:
        return {"train": self.train, "dev": self.dev, "test": self.test}[name]

    @cached_property
    def fingerprint(self) -> str:
        """A hash that changes with any example."""
        digest = hashlib.sha256()
        for split in SPLITS:
            for example in self.split(split):
                digest.update(repr(example).encode("utf-8", "surrogatepass"))
            digest.update(split.encode())
        return digest.hexdigest()

    @property
    def state(self) -> str:
        """A description for results: "full", "partial (train 3,100 of 53,360)", "stand-in: OCNLI for CMNLI, .."."""
        counts = {split: len(self.split(split)) for split in SPLITS}
        sizes = ", ".join(f"{split} {count:,}" for split, count in counts.items() if count)
        if self.task.note:
            return f"home-made: {self.task.note} ({sizes})"
        stand_in = STAND_INS.get(self.folder.name.removesuffix(PUBLIC))
        if stand_in:
            return f"stand-in: {stand_in} for {self.task.title} ({sizes})"
        parts = [
            f"{split} {counts[split]:,} of {size:,}" if counts[split] else f"no {split}"
            for split, size in zip(SPLITS, self.task.sizes, strict=True)
            if counts[split] < NEARLY_ALL * size
        ]
        return f"partial ({', '.join(parts)})" if parts else "full"


def load_task_data(task: Task, data_dir: str | Path) -> TaskData:
    """Read a task's files.

    Args:
        data_dir: the task's own folder, or one that contains it (as NAME, clue/NAME, cws/NAME or ner/NAME).

    Raises:
        DataError: there is no such folder, no training or development file, or a file cannot be read.
    """
    folder = _existing_folder(task, data_dir)
    splits = {split: task.read(folder, split) for split in SPLITS}
    missing = [split for split in ("train", "dev") if not splits[split]]
    if missing:
        raise _no_examples(folder, missing)
    return TaskData(task=task, folder=folder, **splits)


def load_split(task: Task, data_dir: str | Path, split: str) -> list[Any]:
    """Read the examples of one split like `load_task_data`, with the same errors."""
    folder = _existing_folder(task, data_dir)
    examples = task.read(folder, split)
    if not examples:
        raise _no_examples(folder, [split])
    return examples


def find_folder(task: Task, data_dir: str | Path) -> Path | None:
    """The folder of a task's files, or None if there is none."""
    data_dir = Path(data_dir)
    names = [f"{name}{suffix}" for name in task.folders for suffix in ("", PUBLIC)]
    if data_dir.name in names and data_dir.is_dir():
        return data_dir
    folders = (data_dir / place / name for name in names for place in PLACES)
    return next((folder for folder in folders if folder.is_dir()), None)


def _existing_folder(task: Task, data_dir: str | Path) -> Path:
    folder = find_folder(task, data_dir)
    if folder is None:
        wanted = " or ".join(str(Path(data_dir) / name) for name in task.folders)
        raise DataError(f"no data of {task.name}: expected a folder {wanted}, or one within clue, cws or ner there")
    return folder


def _no_examples(folder: Path, splits: list[str]) -> DataError:
    return DataError(
        f"{folder}: no examples for {' and '.join(splits)}; expected files such as {splits[0]}.jsonl or "
        f"{splits[0]}.json (plain, .gz or .xz)"
    )
