"""Registry: the public data sets by name, read from local copies or the cache, or downloaded."""

from __future__ import annotations

import difflib
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


def _origins(
    source: tuple[str, str], path: str, form: str, sha256: dict[str, str], member: str | None = None
) -> dict[str, Origin]:
    """Origins of splits from (repository, commit): separate files, or members of one archive, named with {split}."""
    return {
        split: Origin(*source, path.format(split=split), form, digest, member and member.format(split=split))
        for split, digest in sha256.items()
    }


_HUGBERT = ("hspuppy/hugbert", "231f5c8a266a16525b36238c083e3ee0e29542a6")
DATASETS = {
    dataset.name: dataset
    for dataset in (
        Dataset(
            "weibo",
            "annotations CC BY-SA 3.0; the messages follow Weibo's terms of service",
            _origins(
                ("hltcoe/golden-horse", "7a73c08e45ed"),
                "data/weiboNER_2nd_conll.{split}",
                "weibo",
                {
                    "train": "93ddaba058746156361e537daa997202e6f93fa9262f19fca9600ef55aae59d7",
                    "dev": "d262f07ec356ebfaf5d4201deff0cf8f230fe3b2e3921d426a5b7c08264a9ffd",
                    "test": "ff421139d3597d7795602825c20049559031a93e447c855333adba8962cbdfef",
                },
            ),
        ),
        Dataset(
            "resume",
            "none stated: research use",
            _origins(
                ("jiesutd/LatticeLSTM", "24d17f4270f1"),
                "ResumeNER/{split}.char.bmes",
                "columns",
                {
                    "train": "36b6c8d2dd067011300f249a14b36ae1da134523fd9160a02d156248f5a943b9",
                    "dev": "1b0d67153e6e8543e9444936ed1b107bd843078c282533898085e1a9aa293952",
                    "test": "c4a9f42622819a4b59f66e184d446ebfa89b2f1dbba06e11d70675e59fe7e79b",
                },
            ),
        ),
        Dataset(
            "msra",
            "none stated by the source; SIGHAN 2006 data of Microsoft Research Asia: research use",
            _origins(
                _HUGBERT,
                "ner_dataset/msra.tgz",
                "words",
                {"train": "98a5c331fa6e3e51858a3b9f98ae618b253947aaf7f39f9f51a3a8caa171431e"},
                "{split}.txt",
            )
            | _origins(
                ("v-mipeng/LexiconAugmentedNER", "4975b8beec9d70ec4a844990e9fc5803512cb255"),
                "data/MSRA/{split}.char.bmes",
                "columns",
                {"test": "9cebc5ce1ea06477d1230d17be90daafa670e78f07eb628c27103af4a6e6dc3b"},
            ),
            n_dev_of_train=2000,
        ),
        Dataset(
            "ecommerce",
            "none stated: research use",
            _origins(
                ("PhantomGrapes/MultiDigraphNER", "b29aec76dc6edc4dd757ebd6d8c166df2c4b0630"),
                "data/ecommerce/{split}.txt.bieos",
                "columns",
                {
                    "train": "50dfdd6ba5a733b6dda59258db2ec608688626e7596d4093660d872865563dd4",
                    "dev": "4898f8b979149ef830369a4adaf156f141e666a62a6245f43248e1b76c86e97c",
                    "test": "c95044bf3742bdca9f8cffe94f69ce0c1f15b2bf9ebe86608b060f86ea82d028",
                },
            ),
        ),
        Dataset(
            "cluener",
            "none stated by the source; text of Sina News: research use",
            _origins(
                _HUGBERT,
                "ner_dataset/clue.tgz",
                "cluener",
                {
                    "train": "ea03bf25b408fa50250fe25843740880b31675f56a4371b75a421391985b978c",
                    "dev": "b256da89e9ecfff7c09ec9fdeb34d449792e0eec852261f9eff21eb6cb9fe0e2",
                },
                "{split}.json",
            ),
        ),
    )
}


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
            _check_file(path, origin)
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


def _check_file(path: Path, origin: Origin) -> None:
    digest = sha256_of(path.read_bytes())
    if digest != origin.sha256:
        raise DataError(
            f"{path} is not the published file (sha256 {digest}, expected {origin.sha256}); move it away to fetch it"
        )
