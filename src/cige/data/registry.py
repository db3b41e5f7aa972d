"""Registry: the public data sets by name, read from local copies or the cache, or downloaded."""

from __future__ import annotations

import difflib
import json
import os
import shutil
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cige.data.origins import Origin, download, sha256_of
from cige.data.reading import read_sentences
from cige.data.sentence import Sentence
from cige.data.text_files import write_bytes
from cige.errors import DataError


@dataclass(frozen=True)
class Dataset:
    """A public data set.

    Attributes:
        licence: the terms of use that its source states.
        origins: its files by split.
        n_dev_of_train: if it has no dev file, the number of sentences at the end of its training file that are used as
            the dev split.
    """

    name: str
    licence: str
    origins: dict[str, Origin]
    n_dev_of_train: int = 0

    @property
    def splits(self) -> tuple[str, ...]:
        """Names that `load_split` takes."""
        return ("train", "dev", "test") if self.n_dev_of_train else tuple(self.origins)


def _dataset(name: str, facts: dict[str, Any]) -> Dataset:
    """A data set of `datasets.json`, whose origins have {split} in their path, or in the member of one archive."""
    origins = {
        split: Origin(
            **{key: value.format(split=split) for key, value in origin.items() if key != "sha256"}, sha256=sha256
        )
        for origin in facts["origins"]
        for split, sha256 in origin["sha256"].items()
    }
    return Dataset(name, facts["licence"], origins, facts.get("n_dev_of_train", 0))


_LISTED = json.loads(Path(__file__).with_name("datasets.json").read_text(encoding="utf-8"))
DATASETS = {name: _dataset(name, facts) for name, facts in _LISTED.items()}


def cache_folder() -> Path:
    """The folder of downloaded data sets: $CIGE_CACHE, or ~/.cache/cige if it is not set."""
    return Path(os.environ.get("CIGE_CACHE") or Path.home() / ".cache" / "cige")


def get_dataset(name: str) -> Dataset:
    """The data set with this name; otherwise raises a DataError with the nearest known name."""
    if name in DATASETS:
        return DATASETS[name]
    near = difflib.get_close_matches(name, DATASETS, n=1, cutoff=0.5)
    hint = f"; did you mean {near[0]}?" if near else ""
    raise DataError(f"unknown data set {name!r}; known are {', '.join(DATASETS)}{hint}")


def dataset_file(name: str, split: str, *, data_dir: str | Path | None = None) -> Path:
    """The local .bmes file of a split, `<name>/<split>.bmes` or `ner/<name>/<split>.bmes`.

    It is searched for in `data_dir` only, if given, or else in $CIGE_DATA and then in the cache. Raises a DataError if
    there is no such file; the message says how to get it.
    """
    dataset = get_dataset(name)
    if split not in dataset.origins:
        derived = f"; load_split takes {split} from train" if split in dataset.splits else ""
        raise DataError(f"{name} has no {split} file; it has {', '.join(dataset.origins)}{derived}")
    folders = [Path(data_dir)] if data_dir is not None else _default_folders()
    for folder in folders:
        for inside in (folder / name, folder / "ner" / name):
            path = inside / f"{split}.bmes"
            if path.is_file():
                return path
    raise DataError(
        f"no {name}/{split}.bmes in {' or '.join(map(str, folders))}; run `cige data fetch {name}`, "
        f"or set --data-dir or CIGE_DATA to a folder that contains {name}/{split}.bmes"
    )


def load_split(name: str, split: str, *, data_dir: str | Path | None = None) -> list[Sentence]:
    """The sentences of a split, whose file is found as by `dataset_file`.

    If a data set has no dev file (msra), dev is the last 2,000 sentences of its training file, and train the others.
    """
    dataset = get_dataset(name)
    n_dev = dataset.n_dev_of_train
    if not n_dev or split not in ("train", "dev"):
        return read_sentences(dataset_file(name, split, data_dir=data_dir), format="bmes")
    sentences = read_sentences(dataset_file(name, "train", data_dir=data_dir), format="bmes")
    if len(sentences) <= n_dev:
        raise DataError(f"{name}/train.bmes has {len(sentences)} sentences; expected more than the {n_dev} of dev")
    return sentences[:-n_dev] if split == "train" else sentences[-n_dev:]


def fetch(
    name: str,
    *,
    data_dir: str | Path | None = None,
    opener: Callable[..., Any] = urllib.request.urlopen,
) -> list[Path]:
    """Download all files of a data set into `data_dir` (by default, the cache) and return their paths.

    Each file is checked against its sha256 and written completely or not at all. Existing files are not downloaded
    again, and interrupted downloads are resumed. Raises a DataError if the network fails, a source has changed, or an
    existing file is not the published one.
    """
    dataset = get_dataset(name)
    folder = Path(data_dir) if data_dir is not None else cache_folder()
    downloads = folder / ".downloads" / name
    paths = []
    for split, origin in dataset.origins.items():
        path = folder / "ner" / name / f"{split}.bmes"
        paths.append(path)
        if path.exists():
            digest = sha256_of(path.read_bytes())
            if digest != origin.sha256:
                published = f"sha256 {digest}, expected {origin.sha256}"
                raise DataError(f"{path} is not the published file ({published}); move it away to fetch it")
            continue
        archive = download(origin.urls, downloads, opener=opener)
        try:
            converted = origin.convert(archive.read_bytes())
        except DataError:
            archive.unlink()  # not the expected file; the next attempt downloads it again
            raise
        write_bytes(path, converted)
    shutil.rmtree(downloads, ignore_errors=True)
    return paths


def _default_folders() -> list[Path]:
    local = os.environ.get("CIGE_DATA")
    return [Path(local), cache_folder()] if local else [cache_folder()]
