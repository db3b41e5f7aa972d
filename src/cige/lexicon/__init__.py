"""The words that may occur in a text: word lists, matching, a user's own words, and vectors of words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cige.public_names import imported_on_use

if TYPE_CHECKING:
    from cige.lexicon.report import LoadReport

__all__ = ["LoadReport"]

# Signatures name it from here, so that type hints can be resolved, and reading a text need not load it.
__getattr__ = imported_on_use(__name__, report=__all__)
