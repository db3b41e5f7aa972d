"""Explanations of predictions: the words that entities attended to, and what changes without a word."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cige.public_names import imported_on_use

if TYPE_CHECKING:
    from cige.explain.explanation import Explanation

__all__ = ["Explanation"]

# Signatures name it from here, so that type hints can be resolved, and reading a text need not load it.
__getattr__ = imported_on_use(__name__, explanation=__all__)
