"""EntityFinder: how a model that finds entities is called, on a text, on a list of them or on a stream."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Protocol, overload

from cige.entities.entity import Entity
from cige.lexicon.lexicon import Lexicon


class EntityFinder(ABC):
    """Finds entities in texts of any length; what `NER` and `TunedNER` have in common.

    A model has to say how it answers a stream of texts. The rest follows from that.
    """

    @property
    @abstractmethod
    def labels(self) -> list[str]:
        """The types of entity that the model knows."""

    @abstractmethod
    def _stream(self, texts: Iterable[str], batch_size: int) -> Iterator[list[Entity]]:
        """The entities of each text, in order; raises TypeError at a text that is no str."""

    @overload
    def __call__(self, text: str) -> list[Entity]: ...
    @overload
    def __call__(self, text: list[str] | tuple[str, ...]) -> list[list[Entity]]: ...
    def __call__(self, text: str | list[str] | tuple[str, ...]) -> list[Entity] | list[list[Entity]]:
        """The entities of a text, or of each text of a list; sorted, not overlapping.

        Raises:
            TypeError: neither a str nor a list of str.
        """
        if isinstance(text, str):
            return next(iter(self.pipe([text])))
        if not isinstance(text, list | tuple):
            raise TypeError(f"given {type(text).__name__}; expected a str or a list of str; ner.pipe takes others")
        return list(self.pipe(text))

    def pipe(self, texts: Iterable[str], *, batch_size: int = 16) -> Iterator[list[Entity]]:
        """The entities of each text, in order, while texts keep coming; memory does not grow with their number.

        Texts are read ahead to make batches of like length. With `batch_size=1` each text is answered before the
        next is asked for. Where the model has a lexicon, all texts are read with it as it is when `pipe` is called.

        Raises:
            TypeError: `texts` is itself a string, or one of them is none.
            ValueError: `batch_size` is below 1.
        """
        if isinstance(texts, str | bytes):
            raise TypeError(f"given one {type(texts).__name__}; expected an iterable of str, such as [text]")
        if batch_size < 1:
            raise ValueError(f"given batch_size={batch_size}; expected 1 or more")
        return self._stream(texts, batch_size)


class Finder(Protocol):
    """Whatever finds entities: an EntityFinder, or an object of a user's own with these two members."""

    @property
    def labels(self) -> list[str]: ...

    def pipe(self, texts: Iterable[str], *, batch_size: int = 16) -> Iterator[list[Entity]]: ...


class LexiconFinder(Finder, Protocol):
    """A finder that reads the words of a lexicon, which its user may change or replace."""

    @property
    def lexicon(self) -> Lexicon: ...

    def with_lexicon(self, lexicon: Lexicon) -> LexiconFinder:
        """A finder with the same weights and another lexicon."""
        ...
