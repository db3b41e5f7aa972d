"""ComponentTable: the components of characters, such as radicals, as numbers in a few flat arrays.

Wu, Song, Feng: "MECT: Multi-Metadata Embedding based Cross-Transformer for Chinese Named Entity Recognition", ACL 2021.

A character is looked up by its code point, whether or not it has a row in the table of character vectors. Characters
with the same components have the same sequence, which is stored once.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cige.errors import LexiconError

PAD, UNKNOWN = 0, 1  # numbers of components; a character without components has the one component UNKNOWN
NO_SEQUENCE = 0  # number of the sequence of such a character
_FIRST = 2
MAX_COMPONENTS = 64  # of a character; the longest decomposition into strokes has about as many
_FORM = "expected a character, a tab and its components, separated by spaces (河<TAB>氵 可)"


def looked_up(codes: np.ndarray, known: np.ndarray, numbers: np.ndarray, *, missing: int) -> np.ndarray:
    """int64[n]: the number in `numbers`, int[K], of each of the codes int64[n] in `known`, int64[K] ascending, or
    `missing`."""
    if not len(known):
        return np.full(len(codes), missing, np.int64)
    place = np.searchsorted(known, codes)
    place[place == len(known)] = 0
    return np.where(known[place] == codes, numbers[place], missing).astype(np.int64)


@dataclass(frozen=True)
class ComponentTable:
    """An immutable map from code points to sequences of components.

    Attributes:
        codes: int64[K], ascending code points of the characters with components.
        sequences: int32[K], the number of the sequence of each; other characters have NO_SEQUENCE, which is (UNKNOWN,).
        parts: int32[P], the components of all sequences, one sequence after the other.
        ends: int32[S], where each sequence ends in `parts`.
        n_components: number of distinct components, including PAD and UNKNOWN.
    """

    codes: np.ndarray
    sequences: np.ndarray
    parts: np.ndarray
    ends: np.ndarray
    n_components: int

    @classmethod
    def of(cls, components: Mapping[str, Sequence[str]], seen: np.ndarray) -> ComponentTable:
        """The table for a model.

        A component that no character of the training text has is UNKNOWN, since training cannot change its vector. A
        character that has no other components is like one that is not in `components`.

        Args:
            components: the components of each character (one code point), as `read_components` returns them.
            seen: int64[n], the code points of the training text.
        """
        of_code = {ord(char): tuple(parts) for char, parts in components.items()}
        trained = sorted({part for code in seen.tolist() for part in of_code.get(code, ())})
        number = {part: _FIRST + k for k, part in enumerate(trained)}
        sequence_of: dict[tuple[int, ...], int] = {(UNKNOWN,): NO_SEQUENCE}
        codes, sequences = [], []
        for code in sorted(of_code):
            sequence = tuple(number.get(part, UNKNOWN) for part in of_code[code])
            if any(part != UNKNOWN for part in sequence):
                codes.append(code)
                sequences.append(sequence_of.setdefault(sequence, len(sequence_of)))
        return cls(
            codes=np.array(codes, np.int64),
            sequences=np.array(sequences, np.int32),
            parts=np.array([part for sequence in sequence_of for part in sequence], np.int32),
            ends=np.cumsum([len(sequence) for sequence in sequence_of], dtype=np.int32),
            n_components=_FIRST + len(trained),
        )

    def __len__(self) -> int:
        """The number of distinct sequences, including NO_SEQUENCE."""
        return len(self.ends)

    @property
    def lengths(self) -> np.ndarray:
        """int32[S]: the number of components of each sequence."""
        return np.diff(self.ends, prepend=np.int32(0))

    def look_up(self, codes: np.ndarray) -> np.ndarray:
        """int64[n] numbers of sequences of int64[n] code points."""
        return looked_up(codes, self.codes, self.sequences, missing=NO_SEQUENCE)

    def padded(self, sequences: np.ndarray) -> np.ndarray:
        """int64[n, M]: the components of some sequences int64[n], where M is the largest number of them."""
        lengths = self.lengths[sequences]
        place = np.arange(max(1, lengths.max(initial=0)))
        is_real = place < lengths[:, None]
        out = np.full(is_real.shape, PAD, np.int64)
        out[is_real] = self.parts[((self.ends[sequences] - lengths)[:, None] + place)[is_real]]
        return out

    def same_as(self, other: ComponentTable) -> bool:
        """Whether two tables are equal."""
        pairs = zip(self.arrays().values(), other.arrays().values(), strict=True)
        return self.n_components == other.n_components and all(np.array_equal(a, b) for a, b in pairs)

    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays by name."""
        return {name: getattr(self, name) for name in ("codes", "sequences", "parts", "ends")}

    def check(self) -> None:
        """Check a table that was read from a folder. Raises a ValueError if a number refers to nothing, or an array has
        another shape or type; the message names it."""
        for name, array in self.arrays().items():
            expected = np.int64 if name == "codes" else np.int32
            if array.ndim != 1 or array.dtype != expected:
                raise ValueError(f"components.{name} is {array.dtype}{list(array.shape)}; expected a list of integers")
        if self.codes.shape != self.sequences.shape or (self.codes[1:] <= self.codes[:-1]).any():
            raise ValueError("components.codes is not ascending, or has not as many numbers as components.sequences")
        if not len(self.ends) or (self.lengths < 1).any() or self.ends[-1] != len(self.parts):
            raise ValueError("components.ends does not divide components.parts into sequences")
        if len(self.sequences) and not 0 <= self.sequences.min() <= self.sequences.max() < len(self):
            raise ValueError(f"components.sequences has a number that is none of {len(self)} sequences")
        if type(self.n_components) is not int or not _FIRST <= self.n_components < 1 << 31:
            raise ValueError(f"n_components is {self.n_components!r}; expected a whole number of at least {_FIRST}")
        if not PAD < self.parts.min() <= self.parts.max() < self.n_components:
            raise ValueError(f"components.parts has a number that is none of {self.n_components} components")
        if self.ends[NO_SEQUENCE] != 1 or self.parts[0] != UNKNOWN:
            raise ValueError("components.parts does not begin with the unknown component")


def read_components(path: str | os.PathLike[str]) -> dict[str, tuple[str, ...]]:
    """The components of each character in a file of `character<TAB>component component ...`, such as `河<TAB>氵 可`.

    The file is UTF-8, plain or compressed. Blank lines and comments, which begin with `# `, are skipped. A component is
    any text without spaces: a character, a radical or a name such as `85`. Raises a LexiconError if the file cannot be
    read, has no usable line, or a line is not of this form; the message names the line and what is wrong with it.
    """
    from cige.lexicon.text_file import read_text_lines

    components: dict[str, tuple[str, ...]] = {}
    line_of: dict[str, int] = {}
    for number, line in read_text_lines(path):
        if not line.strip() or line.startswith("# ") or line.strip() == "#":
            continue
        char, tab, written = line.partition("\t")
        given = tuple(written.split())
        if problem := _problem(char, tab, written, given):
            raise LexiconError(f"{path}, line {number}: {line[:40]!r}: {problem}; {_FORM}")
        if char in line_of:
            raise LexiconError(
                f"{path}, line {number}: {char!r} is given again, after line {line_of[char]}; expected one line for "
                "each character, so remove one of the two"
            )
        components[char], line_of[char] = given, number
    if not components:
        raise LexiconError(f"{path}: no character with components; {_FORM}")
    return components


def _problem(char: str, tab: str, written: str, given: tuple[str, ...]) -> str | None:
    """What is wrong with a line, or None."""
    if not tab:
        return "no tab"
    if len(char) != 1 or char.isspace():
        return f"{len(char)} characters before the tab, expected one"
    if "\t" in written.strip("\t"):
        return "more than two columns; a table has one decomposition of a character (cut -f1,2 keeps the first)"
    if not given:
        return "no component after the tab"
    if len(given) > MAX_COMPONENTS:
        return f"{len(given)} components, expected at most {MAX_COMPONENTS}"
    return None
