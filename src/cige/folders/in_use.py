"""in_use: keep a second process out of a folder that one process writes to."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cige.errors import CigeError


@contextmanager
def in_use(folder: Path, *, by: str, error: type[CigeError]) -> Iterator[None]:
    """Make the folder if needed, and hold it until the block ends or the process dies.

    Of the processes that torchrun starts for one run, the first one holds it for all. Where the operating system or the
    storage has no locks (Windows, some network drives), nothing is held.

    Args:
        by: what writes there, for the message, such as "another `cige annotate`".

    Raises:
        CigeError: of the class `error`; another process holds the folder, or it cannot be made.
    """
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    if not is_main_process():
        yield
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder, os.O_RDONLY)
    except FileExistsError:
        raise error(f"{folder} is a file; expected a folder, give a new name") from None
    except OSError as reason:
        raise error(f"{folder}: cannot be written to ({reason.strerror or reason}); expected a folder") from None
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise error(f"{folder}: {by} is writing there; wait for it, or stop it") from None
        except OSError:  # storage without locks
            pass
        yield
    finally:
        os.close(handle)


def is_main_process() -> bool:
    """Whether this is the only process of a run, or the one of several that reports."""
    return os.environ.get("RANK", "0") == "0"
