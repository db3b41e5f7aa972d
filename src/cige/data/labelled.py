"""LabelledFile: the sentences of one file, and the repairs that were needed to read them."""

from __future__ import annotations

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
