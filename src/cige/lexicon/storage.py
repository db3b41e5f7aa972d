"""Saving folders and files of this package: whole or not at all, and never over somebody else's data."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cige.errors import LexiconError
from cige.files import atomic_file, atomic_folder, read_manifest, write_manifest

VERSION = 1


@contextmanager
def new_folder(folder: str | os.PathLike[str], *, kind: str) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield (an empty folder to fill, facts to fill for its manifest); on leaving it takes the place of `folder`.

    Raises:
        LexiconError: `folder` holds something that is not a `kind`, or writing failed and nothing changed.
    """
    folder = Path(folder)
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        try:
            read_manifest(folder, kind=kind, version=VERSION, error=LexiconError)
        except LexiconError as error:
            raise LexiconError(f"{folder}: will not replace what is there; give a new folder ({error})") from error
    facts: dict[str, Any] = {}
    with _writing(folder), atomic_folder(folder) as aside:
        yield aside, facts
        write_manifest(aside, kind=kind, version=VERSION, **facts)


@contextmanager
def new_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a path to write to; on leaving it takes the place of `path`.

    Raises:
        LexiconError: writing failed and nothing changed.
    """
    with _writing(path), atomic_file(Path(path)) as aside:
        yield aside


def open_folder(folder: str | os.PathLike[str], *, kind: str, check_contents: bool) -> dict[str, Any]:
    """Check a folder against its manifest (sha256 too with `check_contents`) and return the manifest.

    Raises:
        LexiconError: the folder or a file is missing, cut short, changed or of another kind.
    """
    return read_manifest(Path(folder), kind=kind, version=VERSION, error=LexiconError, check_contents=check_contents)


@contextmanager
def _writing(path: str | os.PathLike[str]) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise LexiconError(f"{path}: not saved ({error.strerror or error}); what was there is unchanged") from error
