"""Where a model is, by what people call it; and models that go to a hub on this machine and come back."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from http.server import ThreadingHTTPServer

import pytest
from stub_hub import StubHub

from cige.errors import ModelError
from cige.folders.hub import BUNDLED, model_folder

# huggingface_hub reads HF_ENDPOINT when it is imported, so each side is a process of its own.
PUSH = """
from cige import load
ner = load()
ner.lexicon.add("阿拉善贺兰草", label="COMPANY")
print(ner.push_to_hub("me/news", private=True, token="secret"))
"""
FETCH = """
import sys
from cige import load
from cige.api import NER
ner = NER.from_pretrained("me/news")
print([(e.text, e.label) for e in ner("昨天阿拉善贺兰草宣布了新的计划。")])
print(sorted(p.name for p in ner.model.folder.iterdir()))
assert load("me/news", local_files_only=True).labels == ner.labels
"""


@pytest.fixture(scope="module")
def hub():
    server = ThreadingHTTPServer(("127.0.0.1", 0), StubHub)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(scope="module")
def run(hub, tmp_path_factory):
    home = tmp_path_factory.mktemp("hub")

    def run_code(code: str, **settings: str) -> subprocess.CompletedProcess:
        env = os.environ | {"HF_ENDPOINT": hub, "HF_HOME": str(home), "HF_HUB_DISABLE_XET": "1", **settings}
        env |= {"NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1", "HF_HUB_DISABLE_PROGRESS_BARS": "1"}
        return subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)

    return run_code


def test_a_text_in_place_of_a_model_is_no_model():
    with pytest.raises(ModelError, match="expected a model folder") as told:
        model_folder("李明从北京到上海。" * 40)
    assert len(str(told.value)) < 300 or os.name == "nt"


def test_a_model_is_pushed_and_fetched_whole(run):
    pushed = run(PUSH)
    assert pushed.returncode == 0, pushed.stderr
    assert "/commit/" in pushed.stdout
    files = StubHub.repos["me/news"]
    assert {"manifest.json", "model.safetensors"} <= set(files) and "model.safetensors" in StubHub.lfs
    assert files["model.safetensors"] == (BUNDLED / "model.safetensors").read_bytes()
    fetched = run(FETCH)
    assert fetched.returncode == 0, fetched.stderr
    assert "('阿拉善贺兰草', 'COMPANY')]" in fetched.stdout and "manifest.json" in fetched.stdout


def test_without_access_nothing_is_pushed(run):
    refused = run(PUSH.replace("secret", "wrong").replace("me/news", "me/other"))
    assert refused.returncode != 0 and "cige.errors.ModelError" in refused.stderr
    assert "me/other" in refused.stderr and "401" in refused.stderr and "me/other" not in StubHub.repos


def test_a_model_that_the_hub_does_not_have(run):
    refused = run("from cige import load; load('me/nothing')")
    assert "ModelError: me/nothing: no such folder here, and the hub did not give a model" in refused.stderr


# where a model is


def test_the_bundled_model_has_a_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert model_folder() == model_folder("bundled") == BUNDLED
    (tmp_path / "bundled").mkdir()
    assert model_folder("bundled").resolve() == tmp_path / "bundled", "a folder of one's own comes first"


def test_a_run_is_the_model_in_it(tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "manifest.json").write_text("{}", encoding="utf-8")
    assert model_folder(tmp_path) == tmp_path / "model"


@pytest.mark.parametrize("name", ["", "no/such/folder", "./bundle", "models", 3, True])
def test_what_is_no_model(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelError, match=r"expected a model folder,? (or )?a hub id"):
        model_folder(name)
