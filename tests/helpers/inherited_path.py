"""The environment in which a process that a test starts imports what the test itself imports."""

from __future__ import annotations

import os
import sys


def environment(**more: str) -> dict[str, str]:
    """The variables of this process and `more`, with its own path of modules."""
    return os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)} | more
