"""LabelledFile: the sentences of one file, and what had to be mended to read them."""

from __future__ import annotations

from dataclasses import dataclass

from cige.data.sentence import Sentence


class RepairWarning(UserWarning):
    """A file was read with repair=True and something in it was mended."""


@dataclass(frozen=True)
class Repair:
    """One mended place: the 1-based `line` of the file, and `what` was wrong there."""

    line: int
    what: str


@dataclass(frozen=True)
class LabelledFile:
    """What a file of labelled sentences holds.

    `sentences`: in file order. `format`: bmes, bioes, bio, jsonl or cluener, as found or as asked for.
    `repairs`: every place that repair=True mended, in file order; empty for a file in good order.
    """

    sentences: tuple[Sentence, ...]
    format: str
    repairs: tuple[Repair, ...] = ()
