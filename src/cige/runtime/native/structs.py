"""Structs of the compiled runtime, filled by the names of their fields.

The library itself says which structs its headers have, and where each field is (layout.c); nothing is said again here.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import count, groupby
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from cige.errors import ModelError

_NUMBERS = {"int32": ctypes.c_int32, "int64": ctypes.c_int64, "float64": ctypes.c_double, "text": ctypes.c_char_p}
_NOTHING = ctypes.c_char * 0


class Field(ctypes.Structure):
    """A row of the table; see native/layout.h."""

    _fields_ = (
        *((name, ctypes.c_char_p) for name in ("of", "name", "type")),
        *((name, ctypes.c_int32) for name in ("offset", "size")),
    )


class Struct(ctypes.Structure):
    """A struct of the headers; each has a class of its own.

    Args:
        values: a value for every field. A number; an array whose dtype is that of the field, C-contiguous; a struct, or
            an array of them (ctypes); an array of addresses (np.uintp). None is a pointer that is NULL, or a struct of
            zeros. Arrays and structs that it points to live as long as it does.

    Raises:
        ModelError: there are other fields than the library has.
        TypeError: an array has another dtype or is not contiguous, or a struct is of another kind.
    """

    fields: frozenset[str]
    pointers: dict[str, Callable[[Any], int]]  # what makes an address of a value

    def __init__(self, **values: Any):
        if values.keys() != self.fields:
            missing, unknown = self.fields - values.keys(), values.keys() - self.fields
            raise ModelError(
                f"struct {type(self).__name__}: not filled: {sorted(missing)}, not there: {sorted(unknown)}; "
                f"{_rebuild()}"
            )
        self.values = values  # which keeps them alive
        pointers, given = self.pointers, {}
        for name, value in values.items():
            if value is not None:
                given[name] = pointers[name](value) if name in pointers else value
        super().__init__(**given)

    @classmethod
    def zeros(cls) -> Struct:
        """One that the library fills."""
        return cls(**dict.fromkeys(cls.fields))


def _rebuild() -> str:
    from cige.extras import install_command  # not needed at each start

    return f"the compiled runtime is older or newer than the Python code beside it; build it again: {install_command()}"


def read_layout(first: Any) -> tuple[dict[str, type[Struct]], dict[str, int]]:
    """The classes and the constants of a library by name, from the rows of its table.

    Args:
        first: a ctypes pointer to the first Field.

    Raises:
        ModelError: a field is not where ctypes places it, or its type is not known.
    """
    structs: dict[str, type[Struct]] = {}
    constants: dict[str, int] = {}
    for of, own in groupby(_rows(first), attrgetter("of")):
        row, *fields = own
        if row.type:
            structs[of] = _class(row, fields, structs)
        else:
            constants[of] = row.offset
    return structs, constants


class _Row(NamedTuple):
    """A Field; what it lacks is an empty string."""

    of: str
    name: str
    type: str
    offset: int
    size: int


def _rows(first: Any) -> Iterator[_Row]:
    for k in count():
        field = first[k]
        if field.of is None:
            return
        of, name, kind = ((text or b"").decode() for text in (field.of, field.name, field.type))
        yield _Row(of, name, kind, field.offset, field.size)


def _class(struct: _Row, fields: Sequence[_Row], known: Mapping[str, type[Struct]]) -> type[Struct]:
    types = [(x.name, _NUMBERS.get(x.type) or known.get(x.type) or ctypes.c_void_p) for x in fields]
    pointers = {x.name: _address_of(x, known) for x in fields if x.type.endswith("*")}
    about = {"_fields_": types, "fields": frozenset(x.name for x in fields), "pointers": pointers}
    made: type[Struct] = type(struct.of, (Struct,), about)
    places = [(getattr(made, x.name).offset, getattr(made, x.name).size) for x in fields]
    if places != [(x.offset, x.size) for x in fields] or ctypes.sizeof(made) != struct.size:
        raise ModelError(f"struct {struct.of}: its fields are not where ctypes places them; {_rebuild()}")
    return made


def _address_of(row: _Row, known: Mapping[str, type[Struct]]) -> Callable[[Any], int]:
    path, pointed = f"{row.of}.{row.name}", row.type.removesuffix("*")
    if pointed[0].isupper() and pointed != "ScoredSpan":
        return partial(_address_of_struct, path, pointed)
    dtype = None if pointed == "void" else np.dtype(np.uintp if pointed == "pointer" else known.get(pointed, pointed))

    def of_array(array: np.ndarray) -> int:
        if (dtype is not None and array.dtype != dtype) or not array.flags.c_contiguous:
            form = "" if array.flags.c_contiguous else ", not contiguous"
            raise TypeError(f"{path}: given {array.dtype}{list(array.shape)}{form}; expected {dtype or 'an array'}")
        return address(array)

    return of_array


def _address_of_struct(path: str, expected: str, value: Any) -> int:
    kind = value._type_ if isinstance(value, ctypes.Array) else type(value)
    if kind.__name__ != expected:
        raise TypeError(f"{path}: given {kind.__name__}; expected {expected}")
    return ctypes.addressof(value)


def address(array: np.ndarray) -> int:
    """The memory address of a contiguous array, which must be kept alive while the address is used."""
    if array.flags.writeable:
        return ctypes.addressof(_NOTHING.from_buffer(array))  # type: ignore[arg-type]  # takes a fifth of the time
    return array.__array_interface__["data"][0]


def described(problem: Struct) -> str:
    """What a Problem of native/model.h says: the field, what was given and what was expected."""
    names = [problem.part.decode() + (f"[{problem.number}]" if problem.number >= 0 else "")]
    names += [name.decode() for name in (problem.inner, problem.field) if name]
    if np.isnan(problem.given):
        return f"{'.'.join(names)} is missing"
    least, most = problem.least, problem.most
    return f"{'.'.join(names)} is {problem.given:.15g}; expected {least:.15g}" + (
        f" to {most:.15g}" if most > least else ""
    )
