"""Inputs of a run besides its sentences: the model that it starts from, vectors, word lists and the like."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from cige.errors import CigeError
from cige.folders.hub import model_folder
from cige.folders.manifest import FileEntry, entry_of
from cige.training.files import find_file
from cige.training.recipe import Recipe, start_folder


def inputs_of(recipe: Recipe, data_dir: str | Path | None = None) -> dict[str, FileEntry]:
    """The size and the sha256 of each file or folder that a recipe names, by setting, such as "vectors.word".

    What cannot be read is left out, and so is a BERT of the Hugging Face hub.
    """
    return {setting: entry for setting, _, entry in _found(recipe, data_dir)}


def changed_inputs(before: Mapping[str, FileEntry], recipe: Recipe, data_dir: str | Path | None = None) -> list[str]:
    """Those of `inputs_of` that are not as they were, each as `vectors.word (vectors/word.npz)`."""
    return [
        f"{setting} ({path})"
        for setting, path, entry in _found(recipe, data_dir)
        if before.get(setting, entry) != entry
    ]


def _found(recipe: Recipe, data_dir: str | Path | None) -> Iterator[tuple[str, Path, FileEntry]]:
    for setting, name in _named(recipe):
        try:
            path = start_folder(name) if setting == "start_from" else find_file(name, data_dir)
            if setting == "model.bert":
                path = model_folder(path)  # of the folder of a run, in which later commands write their scores
            yield setting, path, entry_of(path)
        except (CigeError, OSError):
            continue


def _named(recipe: Recipe) -> Iterator[tuple[str, str]]:
    """The settings that name a file or a folder which training reads, with their values."""
    words, components = recipe.lexicon, recipe.model.components
    named = {"start_from": recipe.start_from, "model.bert": recipe.model.bert}
    if recipe.start_from is None:
        named |= {f"vectors.{name}": getattr(recipe.vectors, name) for name in ("char", "bigram", "word")}
    named |= {"lexicon.path": words.path, "lexicon.names": words.names}
    named |= {f"lexicon.gazetteers[{k}]": path for k, path in enumerate(words.gazetteers)}
    named |= {"model.components.table": None if components is None else components.table}
    yield from ((setting, name) for setting, name in named.items() if name is not None)
