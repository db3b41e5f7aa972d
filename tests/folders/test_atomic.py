"""Whole or not there: atomic files and folders."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from disks import full_disk
from inherited_path import environment

from cige.folders.atomic import atomic_file, atomic_folder


def names(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


# files


def test_a_file_appears_at_the_end(tmp_path):
    path = tmp_path / "new/deep/file.txt"
    with atomic_file(path) as aside:
        aside.write_text("text")
        assert not path.exists() and aside.parent == path.parent  # the same disk, so that the rename is one step
    assert path.read_text() == "text" and names(path.parent) == ["file.txt"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no pipes with a path")
def test_a_pipe_is_written_to_and_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        with pytest.raises(ValueError), atomic_file(tmp_path / "pipe") as aside:
            aside.write_text("half")
            raise ValueError
        with atomic_file(tmp_path / "pipe") as aside:
            aside.write_text("text")
        assert os.read(reader, 9) == b"text" and stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    finally:
        os.close(reader)
    assert names(tmp_path) == ["pipe"]


@pytest.mark.skipif(not Path("/dev/stdout").exists(), reason="needs /dev")
def test_standard_output_is_written_to_by_its_path(tmp_path):
    code = "from cige.folders.atomic import atomic_file as f\nwith f('/dev/stdout') as aside: aside.write_text('text')"
    done = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, check=True)
    assert done.stdout == b"text"
    with (tmp_path / "out.txt").open("wb") as out:
        subprocess.run([sys.executable, "-c", f"print('before', flush=True)\n{code}"], env=environment(), stdout=out)
    assert (tmp_path / "out.txt").read_text() == "before\ntext" and Path("/dev/stdout").is_symlink()


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


@pytest.mark.parametrize(("kind", "call"), [(atomic_file, "mkstemp"), (atomic_folder, "mkdtemp")])
def test_errors_name_what_could_not_be_written(tmp_path, monkeypatch, kind, call):
    path = tmp_path / "words"
    for code, name in (
        (errno.ENOSPC, None),  # a full disk, when data are written, has no name
        (errno.EROFS, tmp_path / ".words.x1.part"),
        (errno.EACCES, tmp_path / ".words.x1.part/manifest.json"),
    ):

        def refuse(*args, code=code, name=name, **kwargs):
            raise OSError(code, os.strerror(code), *([] if name is None else [str(name)]))

        with monkeypatch.context() as patch:
            patch.setattr(f"tempfile.{call}", refuse)
            with pytest.raises(OSError) as found, kind(path):
                pass
        assert (found.value.errno, found.value.filename) == (code, str(path))
    for other in (OSError(errno.ENOENT, "none", "input"), OSError("a reason"), BrokenPipeError(errno.EPIPE, "closed")):
        name = other.filename
        with pytest.raises(OSError) as found, kind(path):
            raise other
        assert found.value.filename == name  # about something else
    assert names(tmp_path) == []


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


def test_the_message_of_an_error_names_the_path_alone(tmp_path):
    path = tmp_path / "file.txt"
    with pytest.raises(FileNotFoundError) as of_two_names, atomic_file(path) as aside:
        aside.unlink()
        os.replace(aside, tmp_path / "other.txt")
    assert str(of_two_names.value).endswith(f": {str(path)!r}")
    with pytest.raises(OSError, match="full") as of_none, atomic_file(path):
        raise OSError(errno.ENOSPC, "full")
    assert str(of_none.value) == f"[Errno {errno.ENOSPC}] full: {str(path)!r}"


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
