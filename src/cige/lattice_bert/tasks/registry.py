"""The paper's tasks by name: where their files are, how they are read, and how large the published data are."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cige.errors import DataError
from cige.lattice_bert.kinds import FINETUNE
from cige.lattice_bert.tasks import readers
from cige.lattice_bert.tasks.config import TuningConfig, load_tuning_config
from cige.lattice_bert.tasks.records import find_file, split_names

Sizes = tuple[int, int, int]
SPLITS = ("train", "dev", "test")
Reader = Callable[[Path, str], list[Any]]  # (folder, split) -> examples, [] if there is no such file


@dataclass(frozen=True)
class Task:
    """A task.

    Attributes:
        name: name on the command line; title: name in the paper's tables.
        kind: a key of `kinds.KINDS`.
        read: reads a split.
        sizes: numbers of published examples in train, dev and test (Table 5), counted in questions or blanks where a
            file nests them.
        folders: possible names of its folder, in order of preference (its own name by default); a folder other than the
            first is a stand-in.
        submission: name of CLUE's file of test answers; "" if CLUE has none.
        n_runs: number of runs with the best learning rate in the paper.
        reads_long: whether the paper fine-tunes the model of the second phase of pre-training rather than the first.
        note: how its splits differ from the published ones; "" for the paper's eleven tasks.
    """

    name: str
    title: str
    kind: str
    read: Reader
    sizes: Sizes = (0, 0, 0)
    folders: tuple[str, ...] = ()
    submission: str = ""
    n_runs: int = 5
    reads_long: bool = False
    note: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "folders", self.folders or (self.name,))

    @property
    def recipe(self) -> str:
        return f"{FINETUNE}/{self.name}"

    @property
    def config(self) -> TuningConfig:
        """The settings of its recipe, which are those of the paper's Table 5."""
        return load_tuning_config(self.recipe)


def _texts(make: Callable[..., Any]) -> Reader:
    def read(folder: Path, split: str) -> list[Any]:
        path = find_file(folder, *split_names(split))
        return [] if path is None else readers.read_text_examples(path, make, is_labelled=split != "test")

    return read


def _read_csl_cut(folder: Path, split: str) -> list[Any]:
    """Use the official dev file as train up to line 1,998 and as dev after it; no abstract is in both parts."""
    read = _texts(readers.keywords_of_abstract)
    official = read(folder, "dev")
    return {"train": [*read(folder, "train"), *official[:1998]], "dev": official[1998:], "test": []}[split]


def _read_tnews_toutiao(folder: Path, split: str) -> list[Any]:
    """Extend TNEWS's train with a noisier sample of the corpus from which TNEWS was filtered."""
    more = find_file(folder, "train_toutiao_full", "train_toutiao") if split == "train" else None
    noisier = [] if more is None else readers.read_text_examples(more, readers.news_title, is_labelled=True)
    return _texts(readers.news_title)(folder, split) + noisier


def _classification(name: str, title: str, make: Callable[..., Any], sizes: Sizes, **facts: Any) -> Task:
    facts.setdefault("submission", f"{name}_predict.json")
    return Task(name, title, "classification", _texts(make), sizes, **facts)


TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        _classification("cmnli", "CMNLI", readers.sentence_pair, (391_783, 12_241, 13_880), folders=("cmnli", "ocnli")),
        _classification("tnews", "TNEWS", readers.news_title, (53_360, 10_000, 10_000)),
        _classification("iflytek", "IFLY.", readers.description, (12_133, 2_599, 2_600)),
        _classification("afqmc", "AFQMC", readers.sentence_pair, (34_334, 4_316, 3_861)),
        _classification(
            "wsc",
            "WSC.",
            readers.pronoun,
            (1_244, 304, 290),
            folders=("wsc", "cluewsc2020", "cluewsc"),
            submission="cluewsc_predict.json",
        ),
        _classification("csl", "CSL", readers.keywords_of_abstract, (20_000, 3_000, 3_000)),
        Task(
            "cmrc",
            "CMRC",
            "reading",
            readers.read_questions,
            (10_142, 1_002, 3_219),
            folders=("cmrc", "cmrc2018"),
            submission="cmrc2018_predict.json",
            reads_long=True,
        ),
        Task(
            "chid",
            "ChID",
            "choice",
            readers.read_idioms,
            (577_157, 23_011, 23_011),
            submission="chid_predict.json",
            n_runs=1,
        ),
        Task(
            "c3",
            "C3",
            "choice",
            readers.read_dialogues_and_texts,
            (11_869, 3_816, 3_892),
            submission="c3_predict.json",
            reads_long=True,
        ),
        Task("msr", "MSR-CWS", "segmentation", readers.read_segmented, (86_924, 0, 3_985)),
        Task("msra", "MSRA-NER", "entities", readers.read_entities, (44_364, 2_000, 4_365)),
        Task(
            "csl_cut",
            "CSL (cut)",
            "classification",
            _read_csl_cut,
            folders=("csl",),
            note="train is the few-shot file and dev lines 1-1998, dev lines 1999-3000",
        ),
        Task(
            "tnews_toutiao",
            "TNEWS (+Toutiao)",
            "classification",
            _read_tnews_toutiao,
            folders=("tnews",),
            note="train has titles of the Toutiao corpus too, without keywords",
        ),
    )
}

PAPER_TASKS = [name for name, task in TASKS.items() if not task.note]


def get_task(name: str) -> Task:
    """The task with this name; otherwise raises a DataError with the nearest known name."""
    if name in TASKS:
        return TASKS[name]
    near = difflib.get_close_matches(name, TASKS, n=1, cutoff=0.5)
    raise DataError(
        f"unknown task {name!r}; known are {', '.join(TASKS)}{f'; did you mean {near[0]}?' if near else ''}"
    )
