"""ModulesOf: a list of modules of one class, whose type checkers know."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar, cast

from torch import nn

Kind = TypeVar("Kind", bound=nn.Module)


class ModulesOf(nn.ModuleList, Generic[Kind]):
    """An `nn.ModuleList` whose modules have the type `Kind`; names and order of weights are the same."""

    def __iter__(self) -> Iterator[Kind]:
        return cast("Iterator[Kind]", super().__iter__())

    def at(self, number: int) -> Kind:
        """The module with this number, from 0."""
        return cast("Kind", self[number])
