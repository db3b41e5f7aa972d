"""WordVersions: a folder with versions of a word file, one of which is current; switching versions is atomic.

    FOLDER/versions/2026-11-01.txt   a word file in a format of `Lexicon.add_file`; never changed
    FOLDER/versions/2026-11-08.txt
    FOLDER/current                   the file name of the current version, replaced atomically

Readers resolve the folder to one file and read that file, so a switch never mixes two versions.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from cige.errors import LexiconError
from cige.folders.atomic import atomic_file
from cige.lexicon.report import LoadReport
from cige.lexicon.words_file import read_words
from cige.text.visible import one_line

CURRENT, VERSIONS = "current", "versions"
_MOST_BYTES = 200  # of a name; file systems allow 255, and files that are not yet complete have longer names


class WordVersions:
    """The versions of a word file in a folder, which is created by the first `publish`."""

    def __init__(self, folder: str | os.PathLike[str]):
        self.folder = Path(folder)

    def names(self) -> list[str]:
        """The names of all versions, sorted."""
        files = (self.folder / VERSIONS).glob("*")
        return sorted(file.name for file in files if file.is_file() and not file.name.startswith("."))

    def current(self) -> str:
        """The name of the current version. Raises a LexiconError if the folder has no versions, or the current version
        does not exist."""
        try:
            name = _name_in(self.folder / CURRENT)
        except (OSError, UnicodeDecodeError) as reason:
            raise LexiconError(
                f"{self.folder}: its file {CURRENT!r} cannot be read ({reason}); expected a file of words, or a folder "
                "made by `cige lexicon publish`"
            ) from reason
        self.path(name)
        return name

    def path(self, name: str) -> Path:
        """The file of a version. Raises a LexiconError if there is none of this name."""
        if name not in (names := self.names()):
            raise LexiconError(f"{self.folder}: no version {name!r}; there are {', '.join(names) or 'none'}")
        file = self.folder / VERSIONS / name
        if not file.stat().st_size:  # such a file is not published
            raise LexiconError(f"{file}: emptied since it was published; publish it again, or use another version")
        return file

    def publish(self, source: str | os.PathLike[str], name: str) -> LoadReport:
        """Copy a word file to the folder as version `name` and make it current; running jobs keep their version.

        Returns:
            The report of its lines. The file is copied as it is; whoever reads it leaves out the refused lines too.

        Raises:
            LexiconError: the file cannot be read as words, the name is not a valid file name, or a version with this
                name has other words.
        """
        if not name or name != Path(name).name or name.startswith(".") or len(os.fsencode(name)) > _MOST_BYTES:
            expected = f"the name of a file, such as 2026-11-01.txt, of at most {_MOST_BYTES} bytes"
            raise LexiconError(f"version {one_line(repr(name))}: expected {expected}")
        listed = read_words(source, spaces=True)
        if not listed.words:
            raise LexiconError(f"{source}: contains no usable words; nothing was published\n{listed.report}")
        place, words = self.folder / VERSIONS / name, Path(source).read_bytes()
        is_there = place.exists() and place.stat().st_size > 0
        if is_there and place.read_bytes() != words:
            raise LexiconError(f"{place}: already exists with other words; versions do not change, give a new name")
        try:
            if not is_there:
                with atomic_file(place) as aside:
                    aside.write_bytes(words)
            self.use(name)
        except OSError as reason:
            raise LexiconError(f"{self.folder}: not published ({reason.strerror or reason})") from reason
        return listed.report

    def use(self, name: str) -> None:
        """Make an existing version the current one, which may be an older one. Raises a LexiconError if there is none
        of this name."""
        self.path(name)
        with atomic_file(self.folder / CURRENT) as aside:
            aside.write_text(name + "\n", encoding="utf-8")


def _name_in(file: Path) -> str:
    """The name that a file contains, also after the byte order mark of some editors; raises an OSError if there is no
    file, or one that is too long for a name, such as a device without end."""
    status = file.stat()
    if not stat.S_ISREG(status.st_mode) or status.st_size > 2 * _MOST_BYTES:
        raise OSError("expected a file with the name of a version")
    return file.read_text(encoding="utf-8-sig").strip()


def word_file(path: str | os.PathLike[str]) -> str:
    """The path of a word file: that of the current version if `path` is a folder of versions, otherwise `path`. Raises
    a LexiconError if it is another folder."""
    if not Path(path).is_dir():
        return str(path)
    versions = WordVersions(path)
    return str(versions.path(versions.current()))


def version_of(path: str | os.PathLike[str]) -> str | None:
    """The name of the version of a word file; None if the file is not a version."""
    path = Path(path)
    is_version = path.parent.name == VERSIONS and (path.parent.parent / CURRENT).is_file()
    return path.name if is_version else None
