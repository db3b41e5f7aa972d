"""LabelledFile: the sentences of one file, and the repairs that were needed to read them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

from cige.data.sentence import Sentence


class RepairWarning(UserWarning):
    """A file was read with repair=True, and parts of it were repaired."""


@dataclass(frozen=True)
class Repair:
    """One repair: the `line` of the file, from 1, and `what` was wrong."""

    line: int
    what: str


@dataclass(frozen=True)
class LabelledFile:
    """The content of a file of labelled sentences.

    Attributes:
        sentences: the sentences, in file order.
        format: bmes, bioes, bio, jsonl or cluener, as detected or as requested.
        repairs: every repair of repair=True, in file order; empty for a file without errors.
    """

    sentences: tuple[Sentence, ...]
    format: str
    repairs: tuple[Repair, ...] = ()


def warn_of_repairs(name: str, repairs: Sequence[Repair], *, stacklevel: int = 1) -> None:
    """Warn with the number of repairs in a file and the first of them, if there are any.

    Args:
        name: the name of the file.
        stacklevel: 1 for the caller of this function, 2 for its caller, and so on.
    """
    if repairs:
        warnings.warn(
            f"{name}: {len(repairs)} place(s) repaired, the first on line {repairs[0].line}: {repairs[0].what}",
            RepairWarning,
            stacklevel=stacklevel + 1,
        )
