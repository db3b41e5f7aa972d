"""The paper's tasks by name: where their files are, how they are read, and how large they were."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from cige.errors import DataError
from cige.recipes.shipped import FINETUNE
from cige.tasks import choice_data, labelling_data, reading_data, text_data
from cige.tasks.config import TuningConfig, load_tuning_config
from cige.tasks.records import find_file, split_names

SPLITS = ("train", "dev", "test")
Reader = Callable[[Path, str], list[Any]]  # (folder, split) -> examples, [] where there is no such file


@dataclass(frozen=True)
class Task:
    """A task.

    Attributes:
        name: on the command line. title: in the paper's tables.
        kind: a key of `kinds.KINDS`.
        read: reads a split.
        sizes: published examples of train, dev and test (Table 5), questions or blanks where a file nests them.
        folders: names that its folder may have, best first; another than the first holds a stand-in.
        submission: name of CLUE's file of test answers; "" where CLUE has none.
        n_runs: how often the paper trains with the best learning rate.
        reads_long: whether the paper tunes the model of the second phase of pre-training, not that of the first.
        note: what is home-made about its splits; "" for the paper's eleven tasks.
    """

    name: str
    title: str
    kind: str
    read: Reader
    sizes: tuple[int, int, int]
    folders: tuple[str, ...]
    submission: str = ""
    n_runs: int = 5
    reads_long: bool = False
    note: str = ""

    @property
    def recipe(self) -> str:
        """The name of its recipe."""
        return f"{FINETUNE}/{self.name}"

    @property
    def config(self) -> TuningConfig:
        """The settings of its recipe, which are those of the paper's Table 5."""
        return load_tuning_config(self.recipe)


def _texts(make: Callable[..., Any]) -> Reader:
    def read(folder: Path, split: str) -> list[Any]:
        path = find_file(folder, *split_names(split))
        return [] if path is None else text_data.read_text_examples(path, make, is_labelled=split != "test")

    return read


def _read_csl_cut(folder: Path, split: str) -> list[Any]:
    """The official dev file is train up to line 1,998 and dev after it: no abstract is on both sides of that cut."""
    read = _texts(text_data.keywords_of_abstract)
    official = read(folder, "dev")
    return {"train": [*read(folder, "train"), *official[:1998]], "dev": official[1998:], "test": []}[split]


def _read_tnews_toutiao(folder: Path, split: str) -> list[Any]:
    """Train is TNEWS's and a noisier sample of the corpus that TNEWS was filtered from."""
    more = find_file(folder, "train_toutiao_full", "train_toutiao") if split == "train" else None
    found = _texts(text_data.news_title)(folder, split)
    return found if more is None else found + text_data.read_text_examples(more, text_data.news_title, is_labelled=True)


_classification = partial(Task, kind="classification")

TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        _classification(
            name="cmnli",
            title="CMNLI",
            read=_texts(text_data.sentence_pair),
            sizes=(391_783, 12_241, 13_880),
            folders=("cmnli", "ocnli"),
            submission="cmnli_predict.json",
        ),
        _classification(
            name="tnews",
            title="TNEWS",
            read=_texts(text_data.news_title),
            sizes=(53_360, 10_000, 10_000),
            folders=("tnews",),
            submission="tnews_predict.json",
        ),
        _classification(
            name="iflytek",
            title="IFLY.",
            read=_texts(text_data.description),
            sizes=(12_133, 2_599, 2_600),
            folders=("iflytek",),
            submission="iflytek_predict.json",
        ),
        _classification(
            name="afqmc",
            title="AFQMC",
            read=_texts(text_data.sentence_pair),
            sizes=(34_334, 4_316, 3_861),
            folders=("afqmc",),
            submission="afqmc_predict.json",
        ),
        _classification(
            name="wsc",
            title="WSC.",
            read=_texts(text_data.pronoun),
            sizes=(1_244, 304, 290),
            folders=("wsc", "cluewsc2020", "cluewsc"),
            submission="cluewsc_predict.json",
        ),
        _classification(
            name="csl",
            title="CSL",
            read=_texts(text_data.keywords_of_abstract),
            sizes=(20_000, 3_000, 3_000),
            folders=("csl",),
            submission="csl_predict.json",
        ),
        Task(
            name="cmrc",
            title="CMRC",
            kind="reading",
            read=reading_data.read_questions,
            sizes=(10_142, 1_002, 3_219),
            folders=("cmrc", "cmrc2018"),
            submission="cmrc2018_predict.json",
            reads_long=True,
        ),
        Task(
            name="chid",
            title="ChID",
            kind="choice",
            read=choice_data.read_idioms,
            sizes=(577_157, 23_011, 23_011),
            folders=("chid",),
            submission="chid_predict.json",
            n_runs=1,
        ),
        Task(
            name="c3",
            title="C3",
            kind="choice",
            read=choice_data.read_dialogues_and_texts,
            sizes=(11_869, 3_816, 3_892),
            folders=("c3",),
            submission="c3_predict.json",
            reads_long=True,
        ),
        Task(
            name="msr",
            title="MSR-CWS",
            kind="segmentation",
            read=labelling_data.read_segmented,
            sizes=(86_924, 0, 3_985),
            folders=("msr",),
        ),
        Task(
            name="msra",
            title="MSRA-NER",
            kind="entities",
            read=labelling_data.read_entities,
            sizes=(44_364, 2_000, 4_365),
            folders=("msra",),
        ),
        _classification(
            name="csl_cut",
            title="CSL (cut)",
            read=_read_csl_cut,
            sizes=(0, 0, 0),
            folders=("csl",),
            note="train is the few-shot file and dev lines 1-1998, dev lines 1999-3000",
        ),
        _classification(
            name="tnews_toutiao",
            title="TNEWS (+Toutiao)",
            read=_read_tnews_toutiao,
            sizes=(0, 0, 0),
            folders=("tnews",),
            note="train has titles of the Toutiao corpus too, without keywords",
        ),
    )
}

PAPER_TASKS = [name for name, task in TASKS.items() if not task.note]


def get_task(name: str) -> Task:
    """The task called `name`; raises DataError with the nearest known name."""
    if name in TASKS:
        return TASKS[name]
    near = difflib.get_close_matches(name, TASKS, n=1, cutoff=0.5)
    raise DataError(
        f"unknown task {name!r}; known are {', '.join(TASKS)}{f'; did you mean {near[0]}?' if near else ''}"
    )
