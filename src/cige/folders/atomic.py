"""Atomic writes: files and folders are written completely or not at all, even if the process is interrupted."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

_undo_of: dict[Path, Callable[[], None]] = {}  # what is being written -> what takes it away

# Errors of writing, which do not say where; from reading a file, there are none of them.
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def atomic_file(path: Path | str) -> Iterator[Path]:
    """Yield a path to write to; if the block succeeds, the file replaces `path` atomically, else nothing changes.

    A file that is replaced keeps its group and its permissions, and its owner if the process may give files away. If
    its group cannot be kept, the new group may do no more than everybody. Devices and pipes, such as /dev/stdout, are
    not replaced; what was written is copied into them if the block succeeds. If it cannot be written, the OSError names
    `path`, rather than the temporary file beside it or nothing.
    """
    import tempfile  # importing it takes longer than reading a folder

    path = Path(path)
    if _is_stream(path):
        with tempfile.TemporaryDirectory() as folder:
            aside = Path(folder) / path.name
            aside.touch()
            yield aside
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND), "wb") as stream:  # standard output may be a file
                stream.write(aside.read_bytes())
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with _naming(path):
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
        os.close(handle)
        aside = Path(name)
        with _undone(aside, partial(aside.unlink, missing_ok=True)):
            yield aside
            _sync(aside)
            _take_access(aside, path, 0o666)
            os.replace(aside, path)
            _sync(path.parent)


def write_atomically(path: Path | str, text: str) -> None:
    """Write a file of text in UTF-8, as `atomic_file` does."""
    with atomic_file(path) as aside:
        aside.write_text(text, encoding="utf-8")


@contextmanager
def atomic_folder(path: Path | str) -> Iterator[Path]:
    """Yield an empty folder to fill; if the block succeeds, it replaces `path`, otherwise nothing changes.

    A folder that is replaced keeps its own group and permissions as in `atomic_file`; the files in it are new. Raises
    an OSError that names `path` if it is a file, or writing failed.
    """
    path = Path(path)
    with _naming(path), _replacing(path) as aside:
        yield aside


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Let errors name `path` rather than what is written in its place, which is removed again, or nothing."""
    try:
        yield
    except OSError as error:
        is_nowhere = error.filename is None and error.errno in _NO_ROOM
        if is_nowhere or f"{os.sep}.{path.name}." in f"{os.sep}{error.filename}":
            error.filename = str(path)
            del error.filename2  # the message of an error with None in it ends in "-> None"
        raise


@contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    import tempfile

    if path.exists() and not path.is_dir():
        raise NotADirectoryError(f"{path} is a file, not a folder to replace")
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent))
    old = aside.with_suffix(".old")
    with _undone(aside, partial(_clear, path, aside, old)):
        yield aside
        for file in aside.rglob("*"):
            if file.is_file():
                os.chmod(file, 0o666 & ~_umask())  # some libraries write files that only their owner can read
            _sync(file)
        _take_access(aside, path, 0o777)
        if path.exists():
            os.replace(path, old)
        os.replace(aside, path)
        _sync(path.parent)


def undo_all() -> None:
    """Take away what this process has begun to write, as if each block had failed; the process must end then."""
    for undo in list(_undo_of.values()):
        with suppress(OSError):
            undo()


@contextmanager
def _undone(aside: Path, undo: Callable[[], None]) -> Iterator[None]:
    """Call `undo` after the block, which leaves what has taken its place already."""
    _undo_of[aside] = undo
    try:
        yield
    finally:
        undo()
        del _undo_of[aside]


def _clear(path: Path, aside: Path, old: Path) -> None:
    """Remove what replacing a folder has left beside it; if it was interrupted, the old folder comes back."""
    import shutil

    if is_there(old) and not is_there(path):
        os.replace(old, path)
    shutil.rmtree(aside, ignore_errors=True)
    if old.is_symlink():
        old.unlink()
    elif old.is_dir():
        with suppress(OSError):
            old.chmod(stat.S_IRWXU)  # a folder that could not be written to cannot be emptied
        shutil.rmtree(old, ignore_errors=True)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _take_access(aside: Path, path: Path, new: int) -> None:
    """Set owner, group and permissions to those of `path`; if it is not there, to what the umask leaves of `new`."""
    try:
        old = path.stat()
    except OSError:
        os.chmod(aside, new & ~_umask())
        return
    made, mode = aside.stat(), stat.S_IMODE(old.st_mode)
    if old.st_gid != made.st_gid:
        try:
            os.chown(aside, -1, old.st_gid)
        except OSError:
            mode = mode & ~(stat.S_ISGID | stat.S_IRWXG) | (mode & stat.S_IRWXO) << 3
    if old.st_uid != made.st_uid:
        with suppress(OSError):
            os.chown(aside, old.st_uid, -1)
    os.chmod(aside, mode)  # last, since a change of the owner clears bits


def _umask() -> int:
    value = os.umask(0)
    os.umask(value)
    return value


def _is_stream(path: Path) -> bool:
    """Whether a path is that of a device or a pipe; /dev/stdout is a link, which may lead to a file."""
    return path.exists() and (path.parent == Path("/dev") or not (path.is_file() or path.is_dir()))


def is_there(path: Path) -> bool:
    """Whether the path exists, including broken links."""
    return path.exists() or path.is_symlink()
