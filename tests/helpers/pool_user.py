"""A program with a pool of processes: it says what they begin, and waits for them until it is stopped."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from cige.folders.processes import process_pool


def begin(folder: Path, number: int) -> None:
    """Tell which process does the task, and do not end it."""
    (folder / f"task-{number}").write_text(str(os.getpid()), encoding="utf-8")
    time.sleep(600)


if __name__ == "__main__":
    with process_pool(2) as pool:
        for number in range(9):
            pool.submit(begin, Path(sys.argv[1]), number)
