"""A folder that one process writes to is closed to others."""

from __future__ import annotations

import fcntl
import subprocess
import sys

import pytest

from cige.errors import DataError, RecipeError
from cige.folders.in_use import in_use, is_main_process

HOLD = """
import sys
from pathlib import Path
from cige.errors import DataError
from cige.folders.in_use import in_use
with in_use(Path(sys.argv[1]), by="another program", error=DataError):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_process_is_refused_until_the_first_has_ended(tmp_path):
    folder = tmp_path / "new" / "deeper"
    first = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert first.stdout is not None and first.stdout.readline() == "held\n"
        with (
            pytest.raises(RecipeError, match="deeper: another run is writing there; wait for it, or stop it"),
            in_use(folder, by="another run", error=RecipeError),
        ):
            pass
    finally:
        first.kill()  # a killed process holds nothing
        first.wait()
    with in_use(folder, by="another run", error=RecipeError):
        assert folder.is_dir()


def test_the_folder_is_free_after_an_error(tmp_path):
    for _ in range(2):
        with pytest.raises(ZeroDivisionError), in_use(tmp_path, by="another run", error=DataError):
            1 / 0  # noqa: B018


def test_storage_without_locks_is_used_without_them(tmp_path, monkeypatch):
    def refuse(handle, how):
        raise OSError(9, "Bad file descriptor")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with in_use(tmp_path, by="another run", error=DataError), in_use(tmp_path, by="another run", error=DataError):
        pass


def test_a_file_is_no_folder(tmp_path):
    file = tmp_path / "file"
    file.touch()
    for folder, problem in (
        (file, "file is a file; expected a folder, give a new name"),
        (file / "run", r"run: cannot be written to \(.*\); expected a folder"),
    ):
        with pytest.raises(DataError, match=problem), in_use(folder, by="another run", error=DataError):
            pass


def test_only_one_of_several_processes_reports(monkeypatch) -> None:
    monkeypatch.delenv("RANK", raising=False)
    assert is_main_process()
    for rank, expected in (("0", True), ("1", False)):
        monkeypatch.setenv("RANK", rank)
        assert is_main_process() is expected


def test_the_processes_of_one_run_share_a_folder(tmp_path, monkeypatch):
    with in_use(tmp_path, by="another run", error=DataError):
        monkeypatch.setenv("RANK", "1")
        with in_use(tmp_path, by="another run", error=DataError):
            pass
        monkeypatch.setenv("RANK", "0")
        with pytest.raises(DataError, match="another run"), in_use(tmp_path, by="another run", error=DataError):
            pass
