"""A disk that is full."""

from __future__ import annotations

import errno
from typing import NoReturn


def full_disk(*args: object, **kwargs: object) -> NoReturn:
    """In place of a function that writes."""
    raise OSError(errno.ENOSPC, "No space left on device")
