"""What goes wrong around a server: a worker that is killed, a full disk, a damaged model, a lexicon file that goes.

Every request that a server takes is answered once, rightly or with an error, and what it said it had stored is there.
"""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx2
import pytest
from running_server import SOON, server
from served import TEXT

import cige
from cige.errors import ModelError
from cige.folders import atomic
from cige.serving.model import open_models
from cige.serving.settings import Settings

BUNDLED = Path(cige.__file__).parent / "bundled"


def add(client, *words, **options):
    return client.post("/v1/lexicon", json={"words": list(words)}, **options)


def workers_of(parent: int) -> list[int]:
    """Worker processes that have started to serve: they have a child's command line of multiprocessing."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            told = (folder / "stat").read_text().rpartition(")")[2].split()
            if int(told[1]) == parent and b"spawn_main" in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
        except OSError:  # it ended meanwhile
            continue
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="finds workers in /proc")
def test_a_worker_that_is_killed_takes_only_its_own_requests_with_it_and_another_takes_its_place(tmp_path):
    """Requests of a killed worker break; none is answered twice or wrongly, and no word that was stored is lost."""
    path = tmp_path / "words.json"
    outcomes: list[tuple[str, object]] = []
    versions: list[int] = []
    with server("--workers", "2", "--lexicon-file", str(path)) as (client, process):
        address, texts, stop = client.base_url, [TEXT * 20] * 8, threading.Event()

        def ask(number: int) -> None:
            with httpx2.Client(base_url=address, timeout=SOON, trust_env=False) as mine:
                for k in range(1000):
                    if stop.is_set():
                        return
                    try:
                        answer = mine.post("/v1/entities", json={"texts": texts})
                        outcomes.append(("read", (answer.status_code, len(answer.json().get("results", ())))))
                        change = add(mine, f"词{number}之{k}")
                        if change.status_code == 200:
                            versions.append(change.json()["version"])
                    except httpx2.TransportError:
                        outcomes.append(("broken", number))

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        before = workers_of(process.pid)
        assert len(before) == 2
        while not versions:
            time.sleep(0.01)
        os.kill(before[0], signal.SIGKILL)
        until = time.monotonic() + SOON
        while len(set(workers_of(process.pid)) - {before[0]}) < 2:
            assert time.monotonic() < until, "no worker took its place"
            time.sleep(0.05)
        stop.set()
        for thread in threads:
            thread.join(SOON)
        assert client.get("/readyz").status_code == 200
        listed = client.get("/v1/lexicon").json()
    read = [found for kind, found in outcomes if kind == "read"]
    assert (200, 8) in read and set(read) <= {(200, 8), (429, 0)}
    assert len(set(versions)) == len(versions), "two changes made one version"
    assert listed["version"] == listed["n_words"] >= max(versions), "a change that was answered is gone"
    assert json.loads(path.read_text())["version"] == listed["version"]


@pytest.mark.parametrize("fails", ["write_text", "fsync", "mkstemp"])
def test_a_full_disk_is_told_with_503_and_changes_nothing(own, tmp_path, monkeypatch, fails):
    assert add(own, "甲甲").json()["version"] == 1
    sound = (tmp_path / "words.json").read_bytes()

    def full(*_args, **_options):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def half(path, content, **_options):
        path.write_bytes(content.encode()[: len(content) // 2])
        full()

    with monkeypatch.context() as broken:
        if fails == "write_text":
            broken.setattr(Path, "write_text", half)
        elif fails == "fsync":
            broken.setattr(atomic.os, "fsync", full)
        else:
            broken.setattr("tempfile.mkstemp", full)
        for change in (add(own, "乙乙"), own.post("/v1/lexicon/remove", json={"words": ["甲甲"]})):
            assert change.status_code == 503
            assert "not written (No space left on device); the words are as before" in change.json()["error"]["message"]
        assert own.post("/v1/entities", json={"text": TEXT}).status_code == 200
        listed = own.get("/v1/lexicon").json()
        assert listed["version"] == 1 and [word["text"] for word in listed["words"]] == ["甲甲"]
    assert (tmp_path / "words.json").read_bytes() == sound
    assert sorted(path.name for path in tmp_path.iterdir()) == ["words.json", "words.json.lock"], (
        "something is left over"
    )
    assert add(own, "乙乙").json() == {"version": 2, "n_words": 2}


@pytest.mark.skipif(not hasattr(signal, "SIGXFSZ"), reason="the operating system has no limit on the size of a file")
def test_a_file_that_may_not_grow_is_told_by_the_operating_system_itself(tmp_path):
    """A real failure in the middle of writing, not one that a test raises: the process may write 4,096 bytes a file."""
    code = (
        "import resource, sys; from pathlib import Path\n"
        "from cige.lexicon.lexicon import Lexicon; from cige.lexicon.user_word import UserWord\n"
        "from cige.serving.word_store import StoreError, WordStore\n"
        "def open_store(): return WordStore([Lexicon.from_words(['南京'])], Path(sys.argv[1]))\n"
        "store = open_store()\n"
        "store.add([UserWord('甲甲')])\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        "try: store.add([UserWord(f'很长的一个词{k}') for k in range(1000)])\n"
        "except StoreError as told: print(told)\n"
        "print(store.current().version, open_store().current().version)\n"
    )
    path = tmp_path / "words.json"
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, timeout=SOON)
    told, versions = done.stdout.splitlines()
    assert "words.json: not written (File too large); the words are as before" in told and versions == "1 1"
    assert sorted(found.name for found in tmp_path.iterdir()) == ["words.json", "words.json.lock"]


def test_a_lexicon_file_that_is_removed_while_serving(own, tmp_path):
    add(own, {"text": "阿拉善贺兰草", "label": "COMPANY"})
    (tmp_path / "words.json").unlink()
    ready = own.get("/readyz")
    assert ready.status_code == 503 and "gone; the next change writes it again" in ready.json()["error"]["message"]
    answer = own.post("/v1/entities", json={"text": TEXT}).json()
    assert ("阿拉善贺兰草", "COMPANY") in [(e["text"], e["label"]) for e in answer["results"][0]["entities"]]
    assert add(own, "乙乙").json()["version"] == 2 and own.get("/readyz").status_code == 200
    assert json.loads((tmp_path / "words.json").read_text())["added"] == ["阿拉善贺兰草", "乙乙"]
    shutil.rmtree(tmp_path)
    assert own.post("/v1/entities", json={"text": TEXT}).status_code == 200
    refused = add(own, "丙丙")
    assert refused.status_code == 503 and "words.json" in refused.json()["error"]["message"]
    tmp_path.mkdir()
    assert add(own, "丙丙").json()["version"] == 3


def damage(path: Path, how: str) -> None:
    content = path.read_bytes()
    path.unlink()
    if how != "gone":
        made = {
            "empty": b"",
            "cut": content[: len(content) // 2],
            "zeros": bytes(len(content)),
            "longer": content + b"x",
        }
        path.write_bytes(made[how])


@pytest.mark.parametrize("how", ["empty", "cut", "zeros", "longer", "gone"])
@pytest.mark.parametrize(
    "name", ["manifest.json", "model.safetensors", "vocabulary.safetensors", "lexicon/trie_keys.npy"]
)
def test_a_damaged_model_is_told_before_anything_is_served(tmp_path, name, how):
    shutil.copytree(BUNDLED, tmp_path / "model", copy_function=os.symlink)
    damage(tmp_path / "model" / name, how)
    with pytest.raises(ModelError, match=Path(name).name):
        open_models(Settings(models=(str(tmp_path / "model"),)))


def test_a_damaged_model_ends_the_program_with_one_line(tmp_path):
    shutil.copytree(BUNDLED, tmp_path / "model", copy_function=os.symlink)
    damage(tmp_path / "model" / "model.safetensors", "cut")
    command = [sys.executable, "-m", "cige", "serve", "--port", "0", "--model", str(tmp_path / "model")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SOON)
    assert done.returncode == 2 and done.stderr.startswith("cige: ") and "damaged" in done.stderr
    assert done.stderr.count("\n") == 1 and done.stdout == ""
