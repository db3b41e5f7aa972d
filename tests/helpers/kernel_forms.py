"""The forms that the CPU kernels have here: PyTorch operations, and each compiled level that this processor can run."""

import pytest

from cige.nn import native

LEVELS = native.levels()  # none where cige was installed without a C compiler
FORMS = ("torch", *LEVELS)


def use(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let models compute with this form until the patch is undone."""
    monkeypatch.setattr(native, "load", lambda: None if form == "torch" else native.library(form))
