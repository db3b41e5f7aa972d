"""The forms that the compiled runtime has here: NumPy alone, and each level that this processor can run."""

from __future__ import annotations

from cige.runtime import native

LEVELS = [level for level in native.levels() if native.load(level) is not None]  # none without a C compiler
FORMS = ["off", *LEVELS]
