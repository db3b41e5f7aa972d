"""Every error that cige raises on purpose, and a warning; each message says what was given and what to do."""

from __future__ import annotations

import sys
import warnings
from typing import TextIO


class CigeError(ValueError):
    """Base class of all errors that a user of cige can cause and fix.

    A command in its message that installs an extra has the form that works in this installation.
    """

    def __str__(self) -> str:
        message = super().__str__()
        if "cige[" not in message:
            return message
        from cige.extras import as_installed  # imported only where it is needed: it reads metadata of packages

        return as_installed(message)


class DataError(CigeError):
    """A data file cannot be read; the message names the file and the line."""


class LexiconError(CigeError):
    """A word list, lexicon folder, vector file or table of components cannot be used."""


class ModelError(CigeError):
    """A model folder is missing or damaged, is not a model, or does not match its lexicon."""


class RecipeError(CigeError):
    """A recipe has an unknown key, a wrong type or contradictory settings."""


class WordListWarning(UserWarning):
    """Words or lines of a list were not taken, or probably mean something else."""


def show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Print a warning as commands do: those of cige as one line of a user's, without a place in its code.

    It takes the place of `warnings.showwarning`.
    """
    ours = category.__module__.startswith("cige")
    text = f"cige: {message}\n" if ours else warnings.formatwarning(message, category, filename, lineno, line)
    (file or sys.stderr).write(text)
