"""Batched: what a request provides to be read in batches with others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from cige.api import NER
from cige.lattice.lattice import Lattice
from cige.tagging.prediction import ScoredSpan
from cige.tagging.selection import Selection


class Work(Protocol):
    """The task of one request.

    Attributes:
        n_chars: number of characters of its texts.
        n_passes: how often they are processed at most; each pass takes as much time and space in the queue as its
            characters.
    """

    @property
    def n_chars(self) -> int: ...

    @property
    def n_passes(self) -> int: ...

    def prepare(self, check: Callable[[], None]) -> Reading:
        """Prepare the request; called once. An exception becomes the result of the request.

        Args:
            check: raises OutOfTime if nobody waits for the request any more; to be called often.
        """
        ...


class Reading(Protocol):
    """A request that is being processed.

    Attributes:
        ner: the model.
        weights: identifies the weights of the model; windows are batched together only if it is the same object.
        selection: which entities are reported.
        lattices: the lattices of all windows of its texts.
    """

    @property
    def ner(self) -> NER: ...

    @property
    def weights(self) -> object: ...

    @property
    def selection(self) -> Selection: ...

    @property
    def lattices(self) -> Sequence[Lattice]: ...

    def further(self, spans: list[list[ScoredSpan]], check: Callable[[], None]) -> Reading | None:
        """The next pass, which depends on the spans found in each lattice; None if the result is complete.

        Like the first pass, it waits for its turns in the queue, and it has the same deadline.
        """
        ...

    def answer(self, spans: list[list[ScoredSpan]], check: Callable[[], None]) -> Any:
        """The result, from the spans found in each lattice."""
        ...
