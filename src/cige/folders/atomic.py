"""Atomic writes: a file or a folder appears whole or not at all, whatever stops the writing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def atomic_file(path: Path | str) -> Iterator[Path]:
    """Yield a path to write to; when the block ends well it becomes `path` in one step, else `path` stays as it was."""
    import tempfile  # with all that it imports it takes longer than reading a folder does

    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    os.close(handle)
    aside = Path(name)
    try:
        yield aside
        _sync(aside)
        os.chmod(aside, 0o666 & ~_umask())
        os.replace(aside, path)
        _sync(path.parent)
    finally:
        with suppress(FileNotFoundError):
            aside.unlink()


@contextmanager
def atomic_folder(path: Path | str) -> Iterator[Path]:
    """Yield an empty folder to fill; when the block ends well it takes the place of `path`, else nothing changes.

    Raises:
        OSError: `path` is a file, or writing failed.
    """
    import shutil
    import tempfile

    path = Path(path)
    if path.exists() and not path.is_dir():
        raise NotADirectoryError(f"{path} is a file, not a folder to replace")
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent))
    old = aside.with_suffix(".old")
    try:
        yield aside
        for file in aside.rglob("*"):
            if file.is_file():
                os.chmod(file, 0o666 & ~_umask())  # some writers make files that only their owner may read
            _sync(file)
        os.chmod(aside, 0o777 & ~_umask())
        if path.exists():
            os.replace(path, old)
        os.replace(aside, path)
        _sync(path.parent)
    finally:
        if is_there(old) and not is_there(path):
            os.replace(old, path)  # stopped halfway: put the old one back
        shutil.rmtree(aside, ignore_errors=True)
        if old.is_symlink():
            old.unlink()
        shutil.rmtree(old, ignore_errors=True)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _umask() -> int:
    value = os.umask(0)
    os.umask(value)
    return value


def is_there(path: Path) -> bool:
    """Whether anything has this name, a link that leads nowhere included."""
    return path.exists() or path.is_symlink()
