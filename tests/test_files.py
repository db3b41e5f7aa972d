"""Whole or not there: atomic files and folders, and manifests that tell of damage."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
from pathlib import Path

import pytest

from cige.errors import LexiconError, ModelError
from cige.folders.atomic import atomic_file, atomic_folder
from cige.folders.manifest import MANIFEST, checking_contents, read_manifest, refuse_to_replace, sha256, write_manifest


def full_disk(*args, **kwargs):
    raise OSError(errno.ENOSPC, "No space left on device")


def names(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


# files


@pytest.mark.parametrize("content", [b"", b"text", bytes(3 << 20)], ids=["empty", "short", "three blocks"])
def test_a_checksum_is_that_of_the_contents(tmp_path, content):
    (tmp_path / "file").write_bytes(content)
    assert sha256(tmp_path / "file") == hashlib.sha256(content).hexdigest()


def test_a_file_appears_at_the_end(tmp_path):
    path = tmp_path / "new/deep/file.txt"
    with atomic_file(path) as aside:
        aside.write_text("text")
        assert not path.exists() and aside.parent == path.parent  # the same disk, so that the rename is one step
    assert path.read_text() == "text" and names(path.parent) == ["file.txt"]


def test_a_file_has_ordinary_permissions(tmp_path):
    old = os.umask(0o027)
    try:
        with atomic_file(tmp_path / "file") as aside:
            aside.write_text("text")
        with atomic_folder(tmp_path / "folder"):
            pass
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o640
    assert stat.S_IMODE((tmp_path / "folder").stat().st_mode) == 0o750


def test_what_is_replaced_keeps_its_permissions(tmp_path):
    """A list of words that only its owner may read stays so."""
    file, folder = tmp_path / "words.json", tmp_path / "lexicon"
    file.touch(0o600)
    folder.mkdir(0o700)
    with atomic_file(file) as aside:
        aside.write_text("new", encoding="utf-8")
    with atomic_folder(folder) as aside:
        (aside / "a").write_text("new", encoding="utf-8")
    assert file.read_text(encoding="utf-8") == "new" and stat.S_IMODE(file.stat().st_mode) == 0o600
    assert (folder / "a").is_file() and stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.parametrize("may_change", [True, False])
def test_what_is_replaced_keeps_its_group(tmp_path, monkeypatch, may_change):
    group = next((g for g in (os.getgroups() if os.geteuid() else [1234]) if g != os.getegid()), None)
    if group is None:
        pytest.skip("this user is in one group only")
    file, folder = tmp_path / "words.json", tmp_path / "lexicon"
    file.touch()
    folder.mkdir()
    for path, mode in ((file, 0o664), (folder, 0o2750)):
        os.chown(path, -1, group)
        path.chmod(mode)
    if not may_change:
        monkeypatch.setattr(
            os, "chown", lambda *_: (_ for _ in ()).throw(PermissionError(errno.EPERM, "not permitted"))
        )
    with atomic_file(file) as aside:
        aside.write_text("new", encoding="utf-8")
    with atomic_folder(folder):
        pass
    found = [(path.stat().st_gid == group, stat.S_IMODE(path.stat().st_mode)) for path in (file, folder)]
    # Another group gets no more than everybody may.
    assert found == ([(True, 0o664), (True, 0o2750)] if may_change else [(False, 0o644), (False, 0o700)])


def test_a_folder_that_nobody_may_write_to_is_replaced_whole(tmp_path):
    folder = tmp_path / "lexicon"
    folder.mkdir()
    (folder / "old").touch()
    folder.chmod(0o555)
    with atomic_folder(folder) as aside:
        (aside / "new").touch()
    assert names(folder) == ["new"] and stat.S_IMODE(folder.stat().st_mode) == 0o555
    assert names(tmp_path) == ["lexicon"]  # the old one is not left beside it
    folder.chmod(0o755)


def test_a_failed_file_leaves_the_old_one(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(RuntimeError, match="stop"), atomic_file(path) as aside:
        aside.write_text("half")
        raise RuntimeError("stop")
    assert path.read_text() == "old" and names(tmp_path) == ["file"]


@pytest.mark.parametrize("call", ["os.fsync", "os.replace", "os.chmod"])
def test_a_full_disk_leaves_the_old_file_and_folder(tmp_path, monkeypatch, call):
    (tmp_path / "file").write_text("old")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/part").write_text("old")
    with monkeypatch.context() as patch:
        patch.setattr(call, full_disk)
        with pytest.raises(OSError, match="No space left"), atomic_file(tmp_path / "file") as aside:
            aside.write_text("new")
        with pytest.raises(OSError, match="No space left"), atomic_folder(tmp_path / "folder") as aside:
            (aside / "part").write_text("new")
    assert (tmp_path / "file").read_text() == (tmp_path / "folder/part").read_text() == "old"
    assert names(tmp_path) == ["file", "folder"]


def test_what_was_written_is_on_the_disk_before_it_is_renamed(tmp_path, monkeypatch):
    events = []
    sync, rename = os.fsync, os.replace
    monkeypatch.setattr(
        os, "fsync", lambda handle: (events.append(("sync", os.readlink(f"/proc/self/fd/{handle}"))), sync(handle))
    )
    monkeypatch.setattr(os, "replace", lambda a, b: (events.append(("rename", str(b))), rename(a, b)))
    with atomic_folder(tmp_path / "folder") as aside:
        (aside / "part").write_text("new")
    done = [what for what, _ in events]
    assert done.index("rename") > 0 and any(where.endswith("/part") for _, where in events[: done.index("rename")])
    assert events[-1] == ("sync", str(tmp_path))  # the folder's entry itself


# folders


def test_a_folder_takes_the_place_of_the_old_one_whole(tmp_path):
    path = tmp_path / "deep/folder"
    for n, name in enumerate(("one", "two")):
        with atomic_folder(path) as aside:
            (aside / "sub").mkdir()
            (aside / "sub" / name).write_text(str(n))
            assert path.exists() == bool(n)
    assert names(path / "sub") == ["two"] and names(path.parent) == ["folder"]


def test_a_failed_folder_leaves_nothing(tmp_path):
    with pytest.raises(KeyboardInterrupt), atomic_folder(tmp_path / "folder") as aside:
        (aside / "part").write_text("half")
        raise KeyboardInterrupt
    assert names(tmp_path) == []


@pytest.mark.parametrize("stop", [OSError(errno.EIO, "broken"), KeyboardInterrupt()])
def test_stopped_between_its_two_renames_the_old_folder_is_put_back(tmp_path, monkeypatch, stop):
    path = tmp_path / "folder"
    path.mkdir()
    (path / "part").write_text("old")
    rename = os.replace

    def second_fails(source, target):
        if str(source).endswith(".part"):
            raise stop
        rename(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", second_fails)
        with pytest.raises(type(stop)), atomic_folder(path) as aside:
            (aside / "part").write_text("new")
    assert (path / "part").read_text() == "old" and names(tmp_path) == ["folder"]


def test_an_old_folder_that_cannot_be_put_back_is_kept_aside(tmp_path, monkeypatch):
    path = tmp_path / "folder"
    path.mkdir()
    (path / "part").write_text("old")
    rename = os.replace

    def only_away(source, target):
        if str(target).endswith(".old"):
            return rename(source, target)
        raise OSError(errno.EIO, "broken")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", only_away)
        with pytest.raises(OSError, match="broken"), atomic_folder(path) as aside:
            (aside / "part").write_text("new")
    (kept,) = [p for p in tmp_path.iterdir() if p.suffix == ".old"]
    assert (kept / "part").read_text() == "old"


def test_a_link_to_a_folder_is_replaced_and_its_target_kept(tmp_path):
    (tmp_path / "target").mkdir()
    (tmp_path / "target/part").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with atomic_folder(tmp_path / "link") as aside:
        (aside / "part").write_text("new")
    assert (tmp_path / "link/part").read_text() == "new" and (tmp_path / "target/part").read_text() == "old"
    assert names(tmp_path) == ["link", "target"]


def test_a_file_is_no_folder_to_replace(tmp_path):
    (tmp_path / "file").write_text("precious")
    with pytest.raises(NotADirectoryError, match="is a file"), atomic_folder(tmp_path / "file"):
        pass
    assert (tmp_path / "file").read_text() == "precious" and names(tmp_path) == ["file"]


# manifests


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
