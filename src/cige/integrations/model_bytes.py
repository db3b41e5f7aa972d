"""A model folder as bytes, for tools that store models in a single file."""

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
    """The files of a model folder by relative path, including words that were added to the model."""
    with TemporaryDirectory(prefix="cige-") as made:
        folder = Path(made) / FOLDER
        ner.save_pretrained(folder)
        paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


class UnpackedModel:
    """A temporary model folder with such files, which exists as long as this object.

    Attributes:
        folder: the path for `cige.load`.

    Raises:
        ModelError: a file would be outside the folder.
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
