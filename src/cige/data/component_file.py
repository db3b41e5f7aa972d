"""Read a table of the components of characters: `character<TAB>component component ...`, such as `河<TAB>氵 可`.

The file is UTF-8, plain or compressed. Blank lines are skipped, and so are comments, which begin with `# `.
"""

from __future__ import annotations

import os

from cige.errors import LexiconError
from cige.lexicon.text_file import read_text_lines

MAX_COMPONENTS = 64  # of a character; the longest decomposition into strokes has about as many
_FORM = "expected a character, a tab and its components, separated by spaces (河<TAB>氵 可)"


def read_components(path: str | os.PathLike[str]) -> dict[str, tuple[str, ...]]:
    """The components of each character, in the order of the file.

    A component is any text without spaces: a character, a radical or a name such as `85`.

    Raises:
        LexiconError: the file cannot be read, has no usable line, or a line is not of this form; the message names the
            line and what is wrong with it.
    """
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
