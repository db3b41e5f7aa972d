"""Whole servers: several workers, stopping in the middle of a request, and starting with what is wrong."""

import fcntl
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import pytest
from running_server import SOON, is_ready, server
from served import TEXT

from cige.commands import serve as command
from cige.errors import CigeError
from cige.serving.server import _listen, _shared_folder, worker_app
from cige.serving.settings import Limits, Settings

WORD = {"text": "阿拉善贺兰草", "label": "COMPANY"}


def run_serve(*options):
    command = [sys.executable, "-m", "cige", "serve", *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=SOON)


def found(client, text=TEXT):
    response = client.post("/v1/entities", json={"text": text}, headers={"connection": "close"})  # whichever worker
    assert response.status_code == 200
    return [(entity["text"], entity["label"]) for entity in response.json()["results"][0]["entities"]]


def test_two_workers_see_each_change_and_their_figures_are_summed(tmp_path, capfd):
    options = ("--workers", "2", "--lexicon-file", str(tmp_path / "words.json"), "--access-log")
    with server(*options) as (client, _):
        for version in range(1, 7):
            path, words = ("/v1/lexicon", [WORD]) if version % 2 else ("/v1/lexicon/remove", [WORD["text"]])
            changed = client.post(path, json={"words": words}, headers={"connection": "close"})
            assert changed.json()["version"] == version
            expected = [("阿拉善贺兰草", "COMPANY")] if version % 2 else [("阿拉善贺兰", "LOC")]
            assert [found(client) for _ in range(6)] == [[("昨天", "TIME"), *expected]] * 6
        page = client.get("/metrics").text
        assert 'cige_requests_total{path="/v1/entities",status="200"} 36.0' in page
        client.post("/v1/lexicon", json={"words": [WORD]})
    assert capfd.readouterr().err.count("cige.serve: POST /v1/entities 200 ") == 36  # the workers log as one does
    words, names = tmp_path / "own.txt", tmp_path / "names.tsv"
    words.write_text("铁\n贺兰沙葱\n", encoding="utf-8")
    names.write_text("康泽洛韦\tMEDICINE/curated\n无类\n", encoding="utf-8")
    options += ("--lexicon-add", str(words), "--names", str(names))
    with server(*options) as (client, _):
        assert ("阿拉善贺兰草", "COMPANY") in found(client) and client.get("/v1/lexicon").json()["version"] == 7
    err = capfd.readouterr().err  # the lines that are refused are told once, not by each worker
    assert err.count(f"cige: {words} (list): 1 taken, 1 refused\n  1 x single character (") == 1
    assert err.count(f"cige: {names} (names): 1 taken, 1 refused\n  1 x no kind after a tab\n") == 1
    assert err.count("refused") == 2


def test_a_server_that_is_told_to_stop_answers_what_it_took():
    with server(token="geheim") as (client, process):
        assert client.get("/v1/model").status_code == 401
        client.headers["authorization"] = "Bearer geheim"
        texts, answers = [TEXT * 20] * 150, []

        def ask():
            answers.append(client.post("/v1/entities", json={"texts": texts}))

        thread = threading.Thread(target=ask)
        thread.start()
        while client.get("/readyz").json()["waiting"] == 0 and thread.is_alive():
            pass
        process.send_signal(signal.SIGTERM)
        thread.join(SOON)
        assert answers[0].status_code == 200 and len(answers[0].json()["results"]) == 150
        assert process.wait(SOON) in (0, -signal.SIGTERM)


@pytest.mark.parametrize(("stop", "n_stops"), [(signal.SIGTERM, 1), (signal.SIGINT, 2)])
def test_a_request_that_is_not_waited_for_is_told_so(stop, n_stops, capfd):
    """The time for stopping is over, or Ctrl-C came a second time."""
    with server("--max-drain", "1") as (client, process):
        texts, answers = [TEXT * 20] * 290, []

        def ask():
            answers.append(client.post("/v1/entities", json={"texts": texts, "consistent": True}))

        thread = threading.Thread(target=ask)
        thread.start()
        while client.get("/readyz").json()["waiting"] == 0 and thread.is_alive():
            pass
        for _ in range(n_stops):
            process.send_signal(stop)
            time.sleep(0.1)
        thread.join(SOON)
        assert process.wait(SOON) == (130 if stop == signal.SIGINT else -stop)
    if answers[0].status_code != 200:  # of a machine that read all of it in time
        assert answers[0].status_code == 503 and answers[0].json()["error"]["code"] == "stopping"
    assert "Traceback" not in capfd.readouterr().err


def test_workers_that_are_interrupted_end_as_one_does():
    with server("--workers", "2") as (_, process):
        process.send_signal(signal.SIGINT)
        assert process.wait(SOON) == 130


@pytest.mark.parametrize("is_ignored", [False, True])
def test_workers_end_with_their_terminal_unless_they_were_told_to_outlive_it(is_ignored):
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN if is_ignored else signal.SIG_DFL)  # nohup ignores it
    try:
        with server("--workers", "2") as (client, process):
            process.send_signal(signal.SIGHUP)
            if is_ignored:
                time.sleep(1)
                assert process.poll() is None and client.get("/readyz").status_code == 200
            else:
                assert process.wait(SOON) == 0
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_worker_that_cannot_start_says_why_in_one_line(tmp_path, monkeypatch, caplog):
    words = tmp_path / "words.json"
    words.write_text("no words", encoding="utf-8")
    monkeypatch.setenv("CIGE_SERVE_SETTINGS", "{}")
    Settings(lexicon_file=str(words)).to_environment()
    with pytest.raises(SystemExit, match="1"):
        worker_app()
    (error,) = caplog.messages
    assert error.startswith(f"a worker cannot start: {words}: damaged")


def test_no_cleaner_of_temporary_files_takes_what_workers_share(tmp_path, monkeypatch):
    """systemd-tmpfiles passes over folders that are locked."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with _shared_folder() as folder:
        cleaner = os.open(folder, os.O_RDONLY)
        with pytest.raises(BlockingIOError):
            fcntl.flock(cleaner, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(cleaner)


def test_workers_end_with_a_server_that_is_killed(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    (tmp_path / "cige-serve-of-an-older-version").mkdir()
    with server("--workers", "2") as (client, process):
        (folder,) = (path.parent for path in tmp_path.glob("cige-serve-*/in-use"))
        process.kill()
        process.wait(SOON)
        until = time.monotonic() + SOON
        while is_ready(client):  # else they would keep the port, and a new server could not listen there
            assert time.monotonic() < until, "a worker is still there"
            time.sleep(0.05)
    assert folder.is_dir()  # nobody was left who could remove it
    with server("--workers", "2"), server("--workers", "2") as (client, _):
        assert not folder.exists()
        assert len(list(tmp_path.glob("cige-serve-*/in-use"))) == 2 and found(client)  # the other server's is in use
    assert [path.name for path in tmp_path.glob("cige-serve-*")] == ["cige-serve-of-an-older-version"]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (["--model", "no/such/folder/here"], "no/such/folder/here"),
        (["--model", "bundled", "--model", "bundled"], "two models are called bundled"),
        (["--lexicon-file", "/proc/none/words.json"], "/proc/none: cannot be made"),
        (["--lexicon-add", "no-such-words.txt"], "no-such-words.txt"),
    ],
)
def test_what_is_wrong_is_told_in_one_line_before_anything_is_served(options, error):
    done = subprocess.run(
        [sys.executable, "-m", "cige", "serve", "--port", "0", *options],
        capture_output=True,
        text=True,
        timeout=SOON,
    )
    assert done.returncode == 2 and error in done.stderr
    assert "Traceback" not in done.stderr and done.stderr.startswith("cige: ")


def test_a_port_that_is_taken():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = subprocess.run(
            [sys.executable, "-m", "cige", "serve", "--port", str(port)],
            capture_output=True,
            text=True,
            timeout=SOON,
        )
    assert done.returncode == 2 and f"127.0.0.1:{port}" in done.stderr and "Traceback" not in done.stderr


def test_settings_reach_workers_whole(monkeypatch):
    monkeypatch.setenv("CIGE_SERVE_SETTINGS", "{}")
    assert Settings.from_environment() == Settings()
    given = Settings(
        models=("m", "n=o"),
        device="cuda:1",
        lexicon_files=("a", "b"),
        lexicon_file="c",
        origins=("d",),
        limits=Limits(texts=3),
    )
    given.to_environment()
    assert Settings.from_environment() == given


def test_every_limit_is_an_option(monkeypatch):
    import argparse

    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    args = parser.parse_args(
        [
            "--max-waiting-chars",
            "5",
            "--max-deadline",
            "7",
            "--max-answer",
            "0.5",
            "--allow-origin",
            "https://a.b",
            "-m",
            "bundled",
            "-m",
            "x=y",
        ]
    )
    given = {}
    monkeypatch.setattr(
        "cige.serving.server.serve", lambda settings, **options: given.update(options, settings=settings)
    )
    command.run(args)
    assert given["settings"] == Settings(
        models=("bundled", "x=y"),
        origins=("https://a.b",),
        limits=Limits(waiting_chars=5, deadline_s=7, answer_s=0.5),
    )
    assert (given["host"], given["port"], given["n_workers"]) == ("127.0.0.1", 8000, 1)


def test_clients_that_connect_before_the_workers_are_ready_wait():
    with _listen("127.0.0.1", 0) as listening:
        address = listening.getsockname()
        with socket.create_connection(address, timeout=10), pytest.raises(CigeError, match="cannot listen there"):
            _listen(*address)
