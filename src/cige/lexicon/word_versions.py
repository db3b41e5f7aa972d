"""WordVersions: a folder with versions of a file of words, of which one is current; switching takes one step.

    FOLDER/versions/2026-11-01.txt   a file of words as `Lexicon.add_file` reads it; never changed once it is there
    FOLDER/versions/2026-11-08.txt
    FOLDER/current                   the file name of the version to read, replaced atomically

Who reads resolves the folder to one file and reads that, so a switch never mixes two versions.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from cige.errors import LexiconError
from cige.folders.atomic import atomic_file
from cige.lexicon.words_file import read_words

CURRENT, VERSIONS = "current", "versions"


class WordVersions:
    """Versions of a file of words.

    Args:
        folder: where they are; it is made by the first `publish`.
    """

    def __init__(self, folder: str | os.PathLike[str]):
        self.folder = Path(folder)

    def names(self) -> list[str]:
        """The versions that are there, sorted."""
        found = (self.folder / VERSIONS).glob("*")
        return sorted(file.name for file in found if file.is_file() and not file.name.startswith("."))

    def current(self) -> str:
        """The version to read now.

        Raises:
            LexiconError: the folder holds no versions, or names one that is not there.
        """
        try:
            name = (self.folder / CURRENT).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as reason:
            raise LexiconError(
                f"{self.folder}: its file {CURRENT!r} cannot be read ({reason}); expected a file of words, or a folder "
                "made by `cige lexicon publish`"
            ) from reason
        self.path(name)
        return name

    def path(self, name: str) -> Path:
        """The file of a version.

        Raises:
            LexiconError: there is none of this name.
        """
        path = self.folder / VERSIONS / name
        if name != Path(name).name or not path.is_file():
            raise LexiconError(f"{self.folder}: no version {name!r}; there are {', '.join(self.names()) or 'none'}")
        return path

    def publish(self, source: str | os.PathLike[str], name: str) -> None:
        """Copy a file of words in under `name`, then make it current; jobs that run keep theirs.

        Raises:
            LexiconError: the file cannot be read as words, the name cannot be that of a file, or other words have it.
        """
        if not name or name != Path(name).name or name.startswith("."):
            raise LexiconError(f"version {name!r}: expected the name of a file, such as 2026-11-01.txt")
        if not read_words(source, spaces=True).user_words:
            raise LexiconError(f"{source}: no words in it that can be used; nothing was published")
        place, words = self.folder / VERSIONS / name, Path(source).read_bytes()
        if place.exists() and place.read_bytes() != words:
            raise LexiconError(f"{place}: there already with other words; versions do not change, give a new name")
        try:
            if not place.exists():
                with atomic_file(place) as aside:
                    shutil.copyfile(source, aside)
            self.use(name)
        except OSError as reason:
            raise LexiconError(f"{self.folder}: not published ({reason.strerror or reason})") from reason

    def use(self, name: str) -> None:
        """Make a version current that is there, an older one too.

        Raises:
            LexiconError: there is none of this name.
        """
        self.path(name)
        with atomic_file(self.folder / CURRENT) as aside:
            aside.write_text(name + "\n", encoding="utf-8")


def version_of(path: str | os.PathLike[str]) -> str | None:
    """The name of the version that a file of words is; None for a file that is none."""
    path = Path(path)
    is_version = path.parent.name == VERSIONS and (path.parent.parent / CURRENT).is_file()
    return path.name if is_version else None
