"""The words of a UserStore as sequences, which read a word when it is asked for."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, Generic, TypeVar, overload

from cige.lexicon.user_store import UserStore
from cige.lexicon.user_word import UserWord

T = TypeVar("T")


class _Lazy(Sequence[T], Generic[T]):
    """Equal to a tuple or another sequence of the same values."""

    def __init__(self, store: UserStore) -> None:
        self._store = store

    @abstractmethod
    def _item(self, number: int) -> T: ...

    def __len__(self) -> int:
        return len(self._store)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[T, ...]: ...
    def __getitem__(self, index: int | slice) -> T | tuple[T, ...]:
        if isinstance(index, slice):
            return tuple(self._item(k) for k in range(*index.indices(len(self))))
        number = index + len(self) if index < 0 else index
        if not 0 <= number < len(self):
            raise IndexError(f"word {index} of {len(self)}")
        return self._item(number)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str):
            return NotImplemented
        return len(self) == len(other) and all(item == theirs for item, theirs in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]  # as of a list: it may be long

    def __add__(self, other: Sequence[T]) -> tuple[T, ...]:
        return (*self, *other)

    def __radd__(self, other: Sequence[T]) -> tuple[T, ...]:
        return (*other, *self)

    def __repr__(self) -> str:
        shown = tuple(self[:20])
        return repr(shown) if len(self) <= len(shown) else f"{repr(shown)[:-1]}, ...{len(self):,} in all)"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._store,)


class UserEntries(_Lazy[UserWord]):
    """The words with labels and modes, in the order in which they were added."""

    def _item(self, number: int) -> UserWord:
        return self._store.word(number)

    def __iter__(self) -> Iterator[UserWord]:
        return iter(self._store)


class UserTexts(_Lazy[str]):
    """The words, in the order in which they were added; `in` takes the same time for any number of words."""

    def _item(self, number: int) -> str:
        return self._store.word(number).text

    def __iter__(self) -> Iterator[str]:
        return self._store.texts()

    def __contains__(self, word: object) -> bool:
        return word in self._store


class UserLabels(_Lazy[str | None]):
    """The label of each word."""

    def _item(self, number: int) -> str | None:
        return self._store.label(number)

    def __iter__(self) -> Iterator[str | None]:
        return (word.label for word in self._store)
