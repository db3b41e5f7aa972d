"""Files: atomic writes, folders whose manifest tells whether anything is damaged, and packed files told by content."""

from __future__ import annotations

import gzip
import hashlib
import json
import lzma
import os
import shutil
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, cast

from cige.errors import CigeError
from cige.json_text import to_json

MANIFEST = "manifest.json"
BUNDLED = Path(__file__).parent / "bundled"
"""The folder of the model that comes with the package."""
USES = {
    "cige model": "`cige predict --model` and `cige.load` read it",
    "cige onnx model": "`cige predict --model` and `cige.load` read it",
    "cige pre-trained model": "tune it (`cige finetune TASK --model`), see what it attends to (`cige pretrain explain "
    "--model`), or read it with PretrainedLatticeBert.from_pretrained",
    "cige tuned model": "`cige predict` reads with it, and in Python TunedNER or TunedModel.from_pretrained; `cige "
    "pretrain explain --tuned` shows what it attends to, and what was tuned is in its folder encoder/",
}
"""What can be done with a folder of each kind that was given where another was expected."""
UNPACKING_ERRORS = (EOFError, gzip.BadGzipFile, lzma.LZMAError, zlib.error)  # of a file that is damaged or cut short
_GZIP, _XZ = b"\x1f\x8b", b"\xfd7zXZ\x00"  # how packed files begin, and no UTF-8 text does


def unpack(file: IO[bytes]) -> IO[bytes]:
    """What a .gz or .xz file holds, told by its first bytes; `file` itself when it is neither.

    `file` can be sought and stands at its beginning. Reading the result may raise UNPACKING_ERRORS.
    """
    head = file.read(len(_XZ))
    file.seek(0)
    if head.startswith(_GZIP):
        return cast(IO[bytes], gzip.GzipFile(fileobj=file))
    return cast(IO[bytes], lzma.LZMAFile(file)) if head == _XZ else file


@contextmanager
def atomic_file(path: Path | str) -> Iterator[Path]:
    """Yield a path to write to; when the block ends well it becomes `path` in one step, else `path` stays as it was."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    os.close(handle)
    aside = Path(name)
    try:
        yield aside
        _sync(aside)
        os.chmod(aside, 0o666 & ~_umask())
        os.replace(aside, path)
        _sync(path.parent)
    finally:
        with suppress(FileNotFoundError):
            aside.unlink()


@contextmanager
def atomic_folder(path: Path | str) -> Iterator[Path]:
    """Yield an empty folder to fill; when the block ends well it takes the place of `path`, else nothing changes.

    Raises:
        OSError: `path` is a file, or writing failed.
    """
    path = Path(path)
    if path.exists() and not path.is_dir():
        raise NotADirectoryError(f"{path} is a file, not a folder to replace")
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent))
    old = aside.with_suffix(".old")
    try:
        yield aside
        for file in aside.rglob("*"):
            if file.is_file():
                os.chmod(file, 0o666 & ~_umask())  # some writers make files that only their owner may read
            _sync(file)
        os.chmod(aside, 0o777 & ~_umask())
        if path.exists():
            os.replace(path, old)
        os.replace(aside, path)
        _sync(path.parent)
    finally:
        if _is_there(old) and not _is_there(path):
            os.replace(old, path)  # stopped halfway: put the old one back
        shutil.rmtree(aside, ignore_errors=True)
        if old.is_symlink():
            old.unlink()
        shutil.rmtree(old, ignore_errors=True)


def write_manifest(folder: Path, **facts: Any) -> None:
    """Write manifest.json: `facts` and the size and sha256 of every file in `folder`.

    A folder within that has a manifest of its own answers for its files itself.
    """
    parts = [f.parent for f in folder.rglob(MANIFEST) if f.parent != folder]
    own = [f for f in folder.rglob("*") if f.is_file() and f != folder / MANIFEST and not set(parts) & set(f.parents)]
    names = sorted(f.relative_to(folder).as_posix() for f in own)
    listing = {name: {"bytes": (folder / name).stat().st_size, "sha256": sha256(folder / name)} for name in names}
    text = to_json(facts | {"files": listing}, indent=1, sort_keys=True)
    (folder / MANIFEST).write_text(text, encoding="utf-8")


def read_manifest(
    folder: Path,
    *,
    kind: str,
    version: int,
    error: type[CigeError],
    check_contents: bool = False,
    check_up_to: int = sys.maxsize,
) -> dict[str, Any]:
    """Read manifest.json and check that every listed file is there in its full size.

    Args:
        kind, version: what `facts` must say under "kind" and the highest "version" this code reads.
        error: the class to raise.
        check_contents: compare sha256 too (reads every byte)
        check_up_to: of files that are no larger than this.
    """
    if not folder.is_dir():
        raise error(f"{folder}: no such folder; expected a {kind} folder")
    try:
        facts = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise error(f"{folder}: no {MANIFEST} in it, so this is not a {kind} folder written by cige") from None
    except (OSError, ValueError, RecursionError) as reason:
        raise error(f"{folder / MANIFEST}: cannot be read ({reason}); save or copy the {kind} again") from reason
    if not isinstance(facts, dict) or facts.get("kind") != kind:
        found = facts.get("kind") if isinstance(facts, dict) else type(facts).__name__
        use = f"; {USES[found]}" if isinstance(found, str) and found in USES else ""
        raise error(f"{folder}: holds {found!r}, expected a {kind} folder{use}")
    if not isinstance(facts.get("version"), int) or facts["version"] > version:
        raise error(
            f"{folder}: {kind} format version {facts.get('version')}, this cige reads up to {version}; upgrade cige"
        )
    for name, expected in _listed_files(facts, folder, error):
        file = folder / name
        if not file.is_file():
            raise error(f"{file}: missing; the {kind} folder is incomplete, copy or save it again")
        size = file.stat().st_size
        if size != expected["bytes"]:
            raise error(f"{file}: {size} bytes, expected {expected['bytes']}; it is damaged, copy or save it again")
        if check_contents and size <= check_up_to and sha256(file) != expected["sha256"]:
            raise error(f"{file}: contents differ from the manifest (sha256); the file is damaged or was replaced")
    return facts


def refuse_to_replace(folder: Path, *, kind: str, error: type[CigeError]) -> None:
    """Raise `error` if saving to `folder` would delete anything but a `kind` folder, whole or damaged."""
    if not _is_there(folder) or (folder.is_dir() and not any(folder.iterdir())):
        return
    if kind_of(folder) != kind:
        raise error(f"{folder}: there already, and not a {kind} folder; it will not be replaced, give a new folder")


def kind_of(folder: Path) -> str | None:
    """What the manifest of a folder says that it holds; None where there is none that can be read."""
    try:
        kind = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["kind"]
    except (OSError, ValueError, RecursionError, TypeError, KeyError):
        return None
    return kind if isinstance(kind, str) else None


def _listed_files(facts: dict[str, Any], folder: Path, error: type[CigeError]) -> list[tuple[str, dict[str, Any]]]:
    """(name, {"bytes", "sha256"}) of each file in a manifest."""
    listing = facts.get("files", {})
    well_formed = isinstance(listing, dict) and all(
        isinstance(entry, dict) and {"bytes", "sha256"} <= entry.keys() for entry in listing.values()
    )
    if not well_formed:
        raise error(f"{folder / MANIFEST}: its list of files is damaged; copy or save the folder again")
    return list(listing.items())


def sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() if hasattr(hashlib, "file_digest") else _sha256(file)


def _sha256(file: Any) -> str:  # Python 3.10
    digest = hashlib.sha256()
    while block := file.read(1 << 20):
        digest.update(block)
    return digest.hexdigest()


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _umask() -> int:
    value = os.umask(0)
    os.umask(value)
    return value


def _is_there(path: Path) -> bool:
    return path.exists() or path.is_symlink()
