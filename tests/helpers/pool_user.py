"""A program with a pool of processes: it says what they begin, and waits for them until it is stopped.

pool_user.py FOLDER [within]      within the block of the pool, else at its end
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from cige.folders.atomic import atomic_file, atomic_folder
from cige.folders.processes import process_pool


def begin(folder: Path, number: int, content: bytes = b"") -> None:
    """Tell which process does the task, and do not end it; `content` is what is sent to the process with it.

    It holds a file and a folder that are not finished.
    """
    with atomic_file(folder / "file") as file, atomic_folder(folder / "folder") as unfinished:
        for path in (file, unfinished / "file"):
            path.write_text("half", encoding="utf-8")
        (folder / f"task-{number}").write_text(str(os.getpid()), encoding="utf-8")
        time.sleep(600)


if __name__ == "__main__":
    folder, *words = sys.argv[1:]
    with process_pool(2) as pool:
        tasks = [pool.submit(begin, Path(folder), number, bytes(1_000_000)) for number in range(9)]  # fill a pipe
        if "within" in words:
            tasks[0].result()
