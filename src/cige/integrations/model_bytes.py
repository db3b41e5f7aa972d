"""A model folder as bytes, for tools that keep what they hold in one file of their own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from cige.errors import ModelError

if TYPE_CHECKING:
    from cige.api import NER

FOLDER = "model"


def files_of(ner: NER) -> dict[str, bytes]:
    """The files of a model folder by their paths in it, with the words that were added to the model."""
    with TemporaryDirectory(prefix="cige-") as made:
        folder = Path(made) / FOLDER
        ner.save_pretrained(folder)
        paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


class UnpackedModel:
    """A model folder of such files, which lasts as long as this object.

    Attributes:
        folder: what `cige.load` reads.

    Raises:
        ModelError: a file would lie outside of the folder.
    """

    def __init__(self, files: Mapping[str, bytes]):
        self._made = TemporaryDirectory(prefix="cige-")
        self.folder = Path(self._made.name) / FOLDER
        root = self.folder.resolve()
        for name, content in files.items():
            path = self.folder / name
            if not path.resolve().is_relative_to(root):
                raise ModelError(f"the model holds a file {name!r} outside of its folder; it is damaged")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
