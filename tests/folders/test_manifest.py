"""Manifests: what a folder holds, and what tells of damage."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from cige.errors import LexiconError, ModelError
from cige.folders.manifest import (
    MANIFEST,
    checking_contents,
    entry_of,
    kind_of,
    read_manifest,
    refuse_to_replace,
    saving,
    sha256,
    update_manifest,
    write_manifest,
)


def test_the_entry_of_a_folder_is_that_of_its_files(tmp_path: Path) -> None:
    folder, file = tmp_path / "folder", tmp_path / "folder" / "part" / "a.txt"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"1")
    assert entry_of(file) == {"bytes": 1, "sha256": sha256(file)}
    plain = entry_of(folder)
    assert plain["bytes"] == 1
    write_manifest(folder, kind="words")
    assert entry_of(folder) == plain
    update_manifest(folder, date="2026")
    assert entry_of(folder) == plain
    file.write_bytes(b"2")
    assert entry_of(folder) == plain  # the manifest says what belongs to the folder; loading it finds the damage
    write_manifest(folder, kind="words")
    assert entry_of(folder) != plain
    (folder / "manifest.json").write_text('{"files": {"part/a.txt": {"bytes": "2", "sha256": ""}}}', encoding="utf-8")
    assert entry_of(folder)["bytes"] > 2  # damaged: a file as any other


@pytest.mark.parametrize("content", [b"", b"text", bytes(3 << 20)], ids=["empty", "short", "three blocks"])
def test_a_checksum_is_that_of_the_contents(tmp_path, content):
    (tmp_path / "file").write_bytes(content)
    assert sha256(tmp_path / "file") == hashlib.sha256(content).hexdigest()


@pytest.fixture
def folder(tmp_path) -> Path:
    made = tmp_path / "thing"
    (made / "sub").mkdir(parents=True)
    (made / "a.bin").write_bytes(b"12345")
    (made / "sub/词.txt").write_text("词", encoding="utf-8")
    write_manifest(made, kind="thing", version=2, note="注")
    return made


def read(folder: Path, **options) -> dict:
    return read_manifest(folder, **{"kind": "thing", "version": 2, "error": ModelError} | options)


def edit(folder: Path, change) -> None:
    facts = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    (folder / MANIFEST).write_text(json.dumps(change(facts)), encoding="utf-8")


def test_facts_and_files_come_back(folder):
    facts = read(folder, check_contents=True)
    assert facts["note"] == "注" and set(facts["files"]) == {"a.bin", "sub/词.txt"}
    assert facts["files"]["a.bin"] == {"bytes": 5, "sha256": sha256(folder / "a.bin")}
    assert sha256(folder / "a.bin") == "5994471abb01112afcc18159f6cc74b4f511b99806da59b3caf5a9c173cacfc5"


def test_an_older_version_is_read(folder):
    assert read(folder, version=3)["version"] == 2


def test_contents_are_compared_while_they_are_read(folder):
    facts, read_so_far = read(folder), []
    with checking_contents(folder, facts, error=ModelError):
        read_so_far.append((folder / "a.bin").read_bytes())
    assert read_so_far
    content = (folder / "a.bin").read_bytes()
    (folder / "a.bin").write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    checking = checking_contents(folder, facts, error=ModelError)
    with pytest.raises(ModelError, match=r"a.bin: contents differ") as raised, checking:
        raise ValueError("what the damage led to")
    assert isinstance(raised.value.__context__, ValueError)
    (folder / "a.bin").unlink()
    checking = checking_contents(folder, facts, error=ModelError)
    with pytest.raises(ModelError, match=r"a.bin: contents differ"), checking:
        pass


def test_a_folder_within_that_has_a_manifest_answers_for_itself(folder):
    write_manifest(folder / "sub", kind="part", version=1)
    write_manifest(folder, kind="thing", version=2)
    assert set(read(folder)["files"]) == {"a.bin"}
    (folder / "sub/词.txt").unlink()
    read(folder, check_contents=True)
    with pytest.raises(ModelError, match=r"词.txt: missing"):
        read(folder / "sub", kind="part")


def test_the_error_is_of_the_class_asked_for(tmp_path):
    with pytest.raises(LexiconError, match="no such folder; expected a thing folder"):
        read(tmp_path / "none", error=LexiconError)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f | {"kind": "other"}, "holds 'other', expected a thing folder"),
        (lambda f: {}, "holds None, expected a thing folder"),
        (lambda f: [f], "holds 'list', expected a thing folder"),
        (lambda f: f | {"version": 3}, "thing format version 3, this cige reads up to 2; upgrade cige"),
        (lambda f: f | {"version": "2"}, "upgrade cige"),
        (lambda f: {k: v for k, v in f.items() if k != "version"}, "format version None"),
        (lambda f: f | {"files": 3}, r"manifest.json: its list of files is damaged; copy or save the folder again"),
        (lambda f: f | {"files": {"a.bin": None}}, "its list of files is damaged"),
        (lambda f: f | {"files": {"a.bin": {"bytes": 5}}}, "its list of files is damaged"),
        (
            lambda f: f | {"files": {"b.bin": {"bytes": 5, "sha256": ""}}},
            "b.bin: missing; the thing folder is incomplete",
        ),
    ],
)
def test_a_wrong_manifest(folder, change, message):
    edit(folder, change)
    with pytest.raises(ModelError, match=message):
        read(folder)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[" * 100_000])
def test_a_manifest_that_is_no_json(folder, content):
    (folder / MANIFEST).write_bytes(content)
    with pytest.raises(ModelError, match=r"manifest.json: cannot be read .*; save or copy the thing again"):
        read(folder)


def test_without_a_manifest(folder):
    (folder / MANIFEST).unlink()
    with pytest.raises(ModelError, match=r"no manifest.json in it, so this is not a thing folder written by cige"):
        read(folder)
    (folder / MANIFEST).mkdir()
    with pytest.raises(ModelError, match=r"manifest.json: cannot be read"):
        read(folder)


def test_damaged_files(folder):
    (folder / "a.bin").write_bytes(b"1234")
    with pytest.raises(ModelError, match=r"a.bin: 4 bytes, expected 5; it is damaged, copy or save it again"):
        read(folder)
    (folder / "a.bin").write_bytes(b"12346")
    read(folder)  # of the right size
    with pytest.raises(ModelError, match=r"a.bin: contents differ from the manifest \(sha256\)"):
        read(folder, check_contents=True)
    (folder / "a.bin").unlink()
    (folder / "a.bin").mkdir()
    with pytest.raises(ModelError, match=r"a.bin: missing"):
        read(folder)


def test_what_may_be_replaced(folder, tmp_path):
    for allowed in (folder, tmp_path / "none"):
        refuse_to_replace(allowed, kind="thing", error=ModelError)
    (tmp_path / "empty").mkdir()
    refuse_to_replace(tmp_path / "empty", kind="thing", error=ModelError)
    (folder / "a.bin").unlink()
    refuse_to_replace(folder, kind="thing", error=ModelError)  # damaged, but a thing
    with pytest.raises(ModelError, match="not a part folder; it will not be replaced, give a new folder"):
        refuse_to_replace(folder, kind="part", error=ModelError)
    for content in ("{", "[]", "3", "{}"):
        (folder / MANIFEST).write_text(content)
        with pytest.raises(ModelError, match="will not be replaced"):
            refuse_to_replace(folder, kind="thing", error=ModelError)
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    with pytest.raises(ModelError, match="will not be replaced"):
        refuse_to_replace(tmp_path / "dangling", kind="thing", error=ModelError)


def test_facts_that_utf8_cannot_hold_are_not_saved(tmp_path: Path) -> None:
    """Nothing was written then either, but the error was none of cige's."""
    with pytest.raises(ModelError, match="not saved"), saving(tmp_path / "model", "thing") as aside:
        aside.mkdir(exist_ok=True)
        write_manifest(aside, kind="thing", note="\ud800")
    assert not (tmp_path / "model").exists()


def test_a_manifest_is_not_endless(folder: Path) -> None:
    """A file with holes takes no space on a disk, and took as much memory as it claims to be long."""
    with open(folder / MANIFEST, "r+b") as file:
        file.truncate(1 << 34)
    with pytest.raises(ModelError, match="at most 67,108,864 bytes"):
        read(folder)
    assert kind_of(folder) is None
