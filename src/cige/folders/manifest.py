"""Manifests: the kind and version of a folder, and the sizes and checksums of its files."""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePath
from threading import Thread
from typing import Any, TypedDict

from cige.errors import CigeError, LexiconError, ModelError
from cige.folders.atomic import atomic_folder, is_there, write_atomically
from cige.folders.kinds import find_kind
from cige.json_text import JsonObject, to_json

MANIFEST = "manifest.json"
_MOST_BYTES = 64 << 20  # the largest manifests, which list thousands of parts, have a few MB
_DIFFERS = "contents differ from the manifest (sha256); the file is damaged or was replaced"


class FileEntry(TypedDict):
    """What a manifest lists of a file."""

    bytes: int
    sha256: str


def write_manifest(folder: Path, **facts: Any) -> None:
    """Write manifest.json: `facts` and the size and sha256 of every file in `folder`.

    Files of subfolders that have their own manifest are not listed.
    """
    parts = [f.parent for f in folder.rglob(MANIFEST) if f.parent != folder]
    files = [f for f in folder.rglob("*") if f.is_file() and f != folder / MANIFEST and not set(parts) & set(f.parents)]
    names = sorted(f.relative_to(folder).as_posix() for f in files)
    listing = {name: entry_of(folder / name) for name in names}
    text = to_json(facts | {"files": listing}, indent=1, sort_keys=True)
    (folder / MANIFEST).write_text(text, encoding="utf-8")


def entry_of(path: Path) -> FileEntry:
    """The size and the sha256 of a file, or of all files of a folder.

    The files of a folder with a manifest are those that it lists, with the checksums in it. Raises an OSError if
    something cannot be read.
    """
    if not path.is_dir():
        return {"bytes": path.stat().st_size, "sha256": sha256(path)}
    try:
        listing = _listed_files(_read(path), path, CigeError)
        n_bytes = sum(entry["bytes"] for entry in listing.values())
    except (CigeError, OSError, ValueError, TypeError, AttributeError, RecursionError):
        files = sorted(file for file in path.rglob("*") if file.is_file())
        listing = {file.relative_to(path).as_posix(): entry_of(file) for file in files}
        n_bytes = sum(entry["bytes"] for entry in listing.values())
    import hashlib  # as in `sha256`: a process that only reads texts does not need it

    return {"bytes": n_bytes, "sha256": hashlib.sha256(to_json(listing, sort_keys=True).encode()).hexdigest()}


def update_manifest(folder: Path, **facts: Any) -> None:
    """Replace some of the facts in the manifest of a folder, which was checked before; the list of files is kept."""
    write_atomically(folder / MANIFEST, to_json(_read(folder) | facts, indent=1, sort_keys=True))


def read_manifest(
    folder: Path,
    *,
    kind: str,
    version: int,
    error: type[CigeError],
    check_contents: bool = False,
    check_up_to: int = sys.maxsize,
) -> JsonObject:
    """Read manifest.json and check that all listed files exist and have the right size.

    Args:
        kind, version: the required "kind" of the folder, and the highest supported "version".
        error: the class of exceptions.
        check_contents: whether to compare the sha256 of files too, which reads every byte.
        check_up_to: only compare the sha256 of files of up to this many bytes.
    """
    if not folder.is_dir():
        raise error(f"{folder}: no such folder; expected a {kind} folder")
    try:
        facts = _read(folder)
    except FileNotFoundError:
        raise error(f"{folder}: no {MANIFEST} in it, so this is not a {kind} folder written by cige") from None
    except (OSError, ValueError, RecursionError) as reason:
        raise error(f"{folder / MANIFEST}: cannot be read ({reason}); save or copy the {kind} again") from reason
    if not isinstance(facts, dict) or facts.get("kind") != kind:
        given = facts.get("kind") if isinstance(facts, dict) else type(facts).__name__
        known = find_kind(given)
        use = f"; {known.use}" if known is not None else ""
        raise error(f"{folder}: holds {_short(given)}, expected a {kind} folder{use}")
    if not isinstance(facts.get("version"), int) or facts["version"] > version:
        given = _short(facts.get("version"))
        raise error(f"{folder}: {kind} format version {given}, this cige reads up to {version}; upgrade cige")
    listed = _listed_files(facts, folder, error)
    if (odd := _device_or_pipe(folder)) is not None:
        raise error(f"{odd}: a device or a pipe; expected regular files, copy or save the {kind} again")
    facts["files"] = listed
    for name, expected in listed.items():
        file = folder / name
        if not file.is_file():
            raise error(f"{file}: missing; the {kind} folder is incomplete, copy or save it again")
        size = file.stat().st_size
        if size != expected["bytes"]:
            wanted = _short(expected["bytes"])
            raise error(f"{file}: {size} bytes, expected {wanted}; it is damaged, copy or save it again")
        if check_contents and size <= check_up_to and sha256(file) != expected["sha256"]:
            raise error(f"{file}: {_DIFFERS}")
    return facts


@contextmanager
def checking_contents(folder: Path, facts: JsonObject, *, error: type[CigeError]) -> Iterator[None]:
    """Context manager that compares the files of a folder with their sha256 in the manifest `facts` while the body
    reads them. The results of the body are valid only after leaving the context: if a file differs, `error` is raised,
    even if the body raised another exception."""
    damaged: list[Path] = []

    def compare() -> None:
        for name, expected in _listed_files(facts, folder, error).items():
            try:
                is_same = sha256(folder / name) == expected["sha256"]
            except OSError:
                is_same = False
            if not is_same:
                damaged.append(folder / name)
                return

    thread = Thread(target=compare, daemon=True)  # hashing releases the GIL
    thread.start()
    try:
        yield
    finally:
        thread.join()
        if damaged:
            raise error(f"{damaged[0]}: {_DIFFERS}")


def refuse_to_replace(folder: Path, *, kind: str, error: type[CigeError]) -> None:
    """Raise `error` if saving to `folder` would delete anything except a `kind` folder, which may be damaged."""
    if not is_there(folder) or (folder.is_dir() and not any(folder.iterdir())):
        return
    if kind_of(folder) != kind:
        raise error(f"{folder}: already exists and is not a {kind} folder; it will not be replaced, give a new folder")


@contextmanager
def saving(folder: Path, kind: str) -> Iterator[Path]:
    """A context that yields a path for the files of a model, which becomes `folder` at the end, or nothing does.

    Raises:
        ModelError: `folder` contains something else than a model of this kind, or writing failed.
    """
    from safetensors import SafetensorError  # only models need it

    refuse_to_replace(folder, kind=kind, error=ModelError)
    try:
        with atomic_folder(folder) as aside:
            yield aside
    except (OSError, SafetensorError, LexiconError, TypeError, UnicodeEncodeError) as reason:  # of odd facts
        raise ModelError(f"{folder}: not saved ({reason}); what was there before is unchanged") from reason


def kind_of(folder: Path) -> str | None:
    """The kind of a folder according to its manifest; None if there is no readable manifest."""
    try:
        kind = _read(folder)["kind"]
    except (OSError, ValueError, RecursionError, TypeError, KeyError):
        return None
    return kind if isinstance(kind, str) else None


def _read(folder: Path) -> Any:
    """The JSON of a manifest. Raises an OSError or a ValueError if it cannot be read, and a RecursionError if it is too
    deep; a device, which may have no end, and a pipe, whose other end may be open nowhere, are not opened."""
    path = folder / MANIFEST
    status = path.stat()
    if not stat.S_ISREG(status.st_mode) or status.st_size > _MOST_BYTES:
        raise OSError(f"expected a regular file of at most {_MOST_BYTES:,} bytes")
    return json.loads(path.read_text(encoding="utf-8"))


def _device_or_pipe(folder: Path) -> Path | None:
    """The first device or pipe in a folder, also one that no manifest lists: some files are read if they are there."""
    for parent, _, names in os.walk(folder):
        for path in (os.path.join(parent, name) for name in names):
            try:
                mode = os.stat(path).st_mode
            except OSError:  # a link to nothing, which cannot be opened either
                continue
            if not stat.S_ISREG(mode):
                return Path(path)
    return None


def _listed_files(facts: JsonObject, folder: Path, error: type[CigeError]) -> dict[str, FileEntry]:
    """What a manifest lists of each file, by name."""
    listing: dict[str, FileEntry] = facts.get("files", {})
    well_formed = isinstance(listing, dict) and all(
        isinstance(entry, dict) and {"bytes", "sha256"} <= entry.keys() for entry in listing.values()
    )
    if not well_formed or not all(map(_stays_inside, listing)):
        raise error(f"{folder / MANIFEST}: its list of files is damaged; copy or save the folder again")
    if not listing and any(file.is_file() and file.name != MANIFEST for file in folder.iterdir()):
        raise error(f"{folder / MANIFEST}: its list of files is empty, so none of them can be checked; save it again")
    return listing


def _short(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 80 else f"{shown[:77]}..."


def _stays_inside(name: str) -> bool:
    """Whether a listed name is that of a file in the folder, so that no other file is read."""
    return name.isprintable() and not PurePath(name).is_absolute() and ".." not in PurePath(name).parts


def sha256(path: Path) -> str:
    import hashlib  # loads OpenSSL, which the bundled model does not need

    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
