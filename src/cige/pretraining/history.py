"""What a pre-training run has done so far, and where it stands."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cige.pretraining.plan import Place
from cige.pretraining.sums import Sums


def per_cent(share: float) -> str:
    """0.123 as "12.3%", or "-" where nothing was asked (nan)."""
    return "-" if math.isnan(share) else f"{100 * share:.1f}%"


def _read(values: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a record from JSON, which has null where a mean over nothing is NaN here."""
    return {name: math.nan if value is None else value for name, value in values.items()}


@dataclass(frozen=True)
class LogRecord:
    """Some steps of training.

    Attributes:
        step: optimiser steps done at their end.
        mlm_loss, mlm_accuracy: mean over the tokens to predict, in nats and 0..1.
        sentence_loss, sentence_accuracy: mean over the instances of two parts.
        learning_rate: of the last of the steps.
        n_tokens: tokens read, padding not counted.
        seconds: they took, measuring and saving not counted.
    """

    step: int
    mlm_loss: float
    mlm_accuracy: float
    sentence_loss: float
    sentence_accuracy: float
    learning_rate: float
    n_tokens: int
    seconds: float

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> LogRecord:
        """What `dataclasses.asdict` gave, also after it went through JSON."""
        return cls(**_read(values))

    @property
    def loss(self) -> float:
        return self.mlm_loss + self.sentence_loss


@dataclass(frozen=True)
class EvalRecord:
    """Held-out text at one step; accuracies 0..1.

    Attributes:
        step: optimiser steps done.
        n_instances: measured on.
        mlm_loss, mlm_accuracy: over tokens selected and replaced as in training.
        sentence_loss, sentence_accuracy: over the instances of two parts.
        segment_accuracy: over all tokens of whole lattice segments that are all [MASK], however training masks.
        segment_char_accuracy: over the characters among them, which models with and without words share.
    """

    step: int
    n_instances: int
    mlm_loss: float
    mlm_accuracy: float
    sentence_loss: float
    sentence_accuracy: float
    segment_accuracy: float
    segment_char_accuracy: float

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> EvalRecord:
        """What `dataclasses.asdict` gave, also after it went through JSON."""
        return cls(**_read(values))


@dataclass
class PretrainHistory:
    """A run so far.

    Attributes:
        step: optimiser steps done, over all phases.
        place: where the run stands in the data of its phase.
        logs, evaluations: in order.
        sums: of the steps since the last log.
        seconds: that they took.
    """

    step: int = 0
    place: Place = field(default_factory=Place)
    logs: list[LogRecord] = field(default_factory=list)
    evaluations: list[EvalRecord] = field(default_factory=list)
    sums: Sums = field(default_factory=Sums)
    seconds: float = 0.0

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> PretrainHistory:
        """What `dataclasses.asdict` gave, also after it went through JSON."""
        return cls(
            step=values["step"],
            place=Place(**values["place"]),
            logs=[LogRecord.from_dict(record) for record in values["logs"]],
            evaluations=[EvalRecord.from_dict(record) for record in values["evaluations"]],
            sums=Sums(**values["sums"]),
            seconds=values["seconds"],
        )
