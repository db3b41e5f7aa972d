"""Active learning: choose the sentences to label next, by the model's uncertainty and by coverage.

from cige.suggest import Selector, Settings
selector = Selector(Settings(n=200), finder=cige.load(), labelled=known)
selector.read(open("unlabelled.txt", encoding="utf-8"))
chosen = selector.chosen()
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cige.public_names import imported_on_use

if TYPE_CHECKING:
    from cige.suggest.selecting import Selector, Settings, Suggestion

__all__ = ["Selector", "Settings", "Suggestion"]

__getattr__ = imported_on_use(__name__, selecting=["Selector", "Settings", "Suggestion"])
