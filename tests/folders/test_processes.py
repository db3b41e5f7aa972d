"""processes: what was submitted to a pool ends with the block, and with the process that submitted it."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import inherited_path
import pool_user
import pytest

from cige.errors import WordListWarning, show_warning
from cige.folders.processes import process_pool

SOON = 60.0


def wait_for(holds):
    until = time.monotonic() + SOON
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.02)


def begun(folder, number):
    file = folder / f"task-{number}"
    return file.is_file() and file.read_text(encoding="utf-8")


def is_running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{pid}/stat")  # a process that ended, which nobody has asked about, is not running
    return not status.exists() or status.read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize(("how", "where"), [("SIGINT", []), ("SIGINT", ["within"]), ("SIGKILL", [])])
def test_tasks_end_with_a_program_that_is_stopped(tmp_path, how, where):
    command = [sys.executable, pool_user.__file__, str(tmp_path), *where]
    program = subprocess.Popen(
        command, env=inherited_path.environment(), stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    wait_for(lambda: begun(tmp_path, 0) and begun(tmp_path, 1))
    pids = [int(begun(tmp_path, number)) for number in (0, 1)]
    if how == "SIGINT":
        os.killpg(program.pid, signal.SIGINT)  # a terminal sends Ctrl-C to all processes
    else:
        program.kill()
    error = program.communicate(timeout=SOON)[1]
    wait_for(lambda: not any(map(is_running, pids)))
    assert sorted(file.name for file in tmp_path.iterdir()) == ["task-0", "task-1"]
    assert error.count("Traceback") == (how == "SIGINT")  # of the program, and none of its processes


def test_an_error_ends_running_tasks_and_no_other_process(tmp_path):
    other = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(600,))
    with pytest.raises(ValueError, match="of the block"), process_pool(2) as pool:
        other.start()
        for number in range(9):
            pool.submit(pool_user.begin, tmp_path, number)
        wait_for(lambda: begun(tmp_path, 0) and begun(tmp_path, 1))
        raise ValueError("of the block")
    assert not any(is_running(int(begun(tmp_path, number))) for number in (0, 1))
    assert sorted(file.name for file in tmp_path.iterdir()) == ["task-0", "task-1"], "and no half of a file or folder"
    is_alive = other.is_alive()
    other.kill()
    other.join()
    assert is_alive


@pytest.mark.parametrize("is_command", [True, False])
def test_warnings_are_printed_as_those_of_the_program(monkeypatch, capfd, is_command):
    with monkeypatch.context() as patched:
        patched.setattr(warnings, "showwarning", show_warning if is_command else print)
        with process_pool(1) as pool:
            pool.submit(warnings.warn, "half of the words", WordListWarning).result(SOON)
    err = capfd.readouterr().err
    assert (err == "cige: half of the words\n") == is_command and "half of the words" in err


def test_what_was_submitted_ends_before_the_block():
    with process_pool(2) as pool:
        results = [pool.submit(abs, -number) for number in range(5)]
    assert [result.result(0) for result in results] == list(range(5))
