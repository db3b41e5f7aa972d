"""Parse lines of `word number ... number`, in C if the package was built with a compiler, else with float()."""

from __future__ import annotations

import numpy as np

from cige.lexicon.words_file import NO_VECTOR

NOT_NUMBERS = "not finite numbers"

Rows = tuple[list[bytes], dict[int, str]]  # the word of every line; the problem of each line that has one, by row


def python_row(line: bytes, numbers: np.ndarray) -> tuple[bytes, str | None]:
    """Parse one line into `numbers` (float32[width]); returns the word, and the problem of the line or None.

    Lines that the C code does not parse are parsed by this function, and its results must be the same.
    """
    # Split from the right, and only at spaces: a word may contain other white space, or be a space itself.
    fields = line.rstrip().replace(b"\t", b" ").rsplit(b" ", len(numbers))
    if len(fields) != len(numbers) + 1:
        return fields[0], NO_VECTOR
    try:
        with np.errstate(over="ignore"):  # a number that is too large becomes infinite, which the caller refuses
            numbers[:] = list(map(float, fields[1:]))
    except ValueError:
        return fields[0], NOT_NUMBERS
    return fields[0], None


def python_rows(block: bytes, numbers: np.ndarray) -> Rows:
    """Parse n lines, each of which ends with a newline, into float32[n, width]."""
    parsed = [python_row(line, row) for line, row in zip(block.split(b"\n"), numbers, strict=False)]
    return [word for word, _ in parsed], {k: problem for k, (_, problem) in enumerate(parsed) if problem is not None}


def native_rows(block: bytes, numbers: np.ndarray) -> Rows:
    """Like `python_rows`, but twenty times as fast."""
    n_rows, width = numbers.shape
    spans = np.empty((n_rows, 3), dtype=np.int64)
    _parse_rows(block, width, n_rows, numbers.ctypes.data, spans.ctypes.data)
    begins, word_ends, ends = spans.T
    words = [block[begin:end] for begin, end in zip(begins.tolist(), word_ends.tolist(), strict=True)]
    problems = {}
    for row in np.flatnonzero(word_ends < 0).tolist():
        words[row], problem = python_row(block[begins[row] : ends[row]], numbers[row])
        if problem is not None:
            problems[row] = problem
    return words, problems


try:
    from cige.lexicon._parse import parse_rows as _parse_rows  # type: ignore[import-not-found,unused-ignore]

    parse_rows = native_rows
except ImportError:  # built without a compiler
    parse_rows = python_rows
