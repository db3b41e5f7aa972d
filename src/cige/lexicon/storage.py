"""Save folders and files of this package, completely or not at all, without overwriting other data."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cige.errors import LexiconError
from cige.folders.atomic import atomic_file, atomic_folder
from cige.folders.kinds import LEXICON
from cige.folders.manifest import read_manifest, write_manifest
from cige.json_text import JsonObject

VERSIONS = {"lexicon": 2}  # format version of each kind of folder, 1 if not listed; older versions are read too
CHECKED_BYTES = 1 << 25  # a file of this size is compared with its sha256 in 20 ms


@contextmanager
def new_folder(folder: str | os.PathLike[str], *, kind: str) -> Iterator[tuple[Path, JsonObject]]:
    """Yield an empty folder and a dict for the facts of its manifest; on exit, the folder replaces `folder`. Raises a
    LexiconError if `folder` holds something that is not a `kind`, or writing failed; nothing has changed then."""
    folder = Path(folder)
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        try:
            read_manifest(folder, kind=kind, version=VERSIONS.get(kind, 1), error=LexiconError)
        except LexiconError as error:
            raise LexiconError(f"{folder}: will not be replaced; give a new folder ({error})") from error
    facts: JsonObject = {}
    with _writing(folder), atomic_folder(folder) as aside:
        yield aside, facts
        write_manifest(aside, kind=kind, version=VERSIONS.get(kind, 1), **facts)


@contextmanager
def new_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a path to write to; on exit, the file replaces `path`. Raises a LexiconError if writing failed; nothing has
    changed then."""
    with _writing(path), atomic_file(Path(path)) as aside:
        yield aside


def open_folder(folder: str | os.PathLike[str], *, kind: str, check_up_to: int = 0) -> JsonObject:
    """Check a folder against its manifest and return the manifest. Raises a LexiconError if the folder or a file is
    missing, truncated, changed or of another kind.

    Args:
        check_up_to: compare files of up to this many bytes with their sha256, and only the size of larger files.
    """
    return read_manifest(
        Path(folder),
        kind=kind,
        version=VERSIONS.get(kind, 1),
        error=LexiconError,
        check_contents=True,
        check_up_to=check_up_to,
    )


def check_lexicon(folder: str | os.PathLike[str]) -> None:
    """Read all files of a saved lexicon and compare them with its manifest. Raises a LexiconError if a file is missing,
    truncated or changed; the message names it."""
    open_folder(folder, kind=LEXICON, check_up_to=sys.maxsize)


@contextmanager
def _writing(path: str | os.PathLike[str]) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise LexiconError(f"{path}: not saved ({error.strerror or error}); what was there is unchanged") from error
