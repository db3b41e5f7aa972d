"""Models by name: folders, ids of the hub, pushing, and what is told where there is none."""

import sys

import pytest
from tiny import FOUND, SENTENCE, triples

from cige.api import NER, load
from cige.errors import ModelError


def test_no_such_model(tmp_path):
    with pytest.raises(ModelError, match=r"no such folder; expected a model folder, a hub id"):
        load(tmp_path / "nothing")


def test_a_hub_id_is_asked_of_the_hub(monkeypatch, tmp_path, own_ner):
    own_ner.save_pretrained(tmp_path / "model")
    asked = {}

    def snapshot_download(repo_id, **options):
        asked.update(options, repo_id=repo_id)
        return str(tmp_path / "model")

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot_download)
    assert triples(NER.from_pretrained("someone/news", revision="v1")(SENTENCE)) == FOUND
    assert asked == {"repo_id": "someone/news", "revision": "v1"}


def test_a_push_without_a_network_is_an_error_of_cige(monkeypatch):
    from huggingface_hub import HfApi

    monkeypatch.setattr(HfApi, "__init__", lambda self, **options: setattr(self, "endpoint", "http://127.0.0.1:9"))

    def create_repo(self, repo_id, **options):
        from huggingface_hub.utils import get_session

        get_session().post(self.endpoint)

    monkeypatch.setattr(HfApi, "create_repo", create_repo)
    with pytest.raises(ModelError, match=r"someone/news: the hub did not take the model .*network"):
        load().push_to_hub("someone/news")


def test_a_hub_that_does_not_answer(monkeypatch):
    def snapshot_download(repo_id, **options):
        raise OSError("no network")

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot_download)
    with pytest.raises(ModelError, match=r"someone/news: no such folder here, and the hub .*no network"):
        load("someone/news")


def test_without_huggingface_hub_the_extra_is_named(monkeypatch, own_ner):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    for use in (lambda: load("someone/news"), lambda: own_ner.push_to_hub("me/news")):
        with pytest.raises(ModelError, match=r"pip install .*\[hub\]"):
            use()


def test_push_to_hub_uploads_a_whole_model(monkeypatch, own_ner):
    pushed = {}

    class Api:
        def __init__(self, token=None):
            pushed["token"] = token

        def create_repo(self, repo_id, *, private, exist_ok):
            pushed["private"] = private
            return type("Url", (), {"repo_id": repo_id})()

        def upload_folder(self, *, repo_id, folder_path, commit_message):
            pushed["repo_id"], pushed["entities"] = repo_id, triples(load(folder_path)(SENTENCE))
            return type("CommitInfo", (), {"commit_url": "https://hub/commit"})()

    monkeypatch.setattr("huggingface_hub.HfApi", Api)
    assert own_ner.push_to_hub("me/news", private=True, token="t") == "https://hub/commit"
    assert pushed == {"token": "t", "private": True, "repo_id": "me/news", "entities": FOUND}


def test_an_empty_name_and_a_file_are_no_models(tmp_path):
    (tmp_path / "model.bin").write_bytes(b"weights")
    for name, message in (
        ("", "the name of the model is empty"),
        (tmp_path / "model.bin", "model.bin: a file; expected"),
    ):
        with pytest.raises(ModelError, match=message):
            load(name)
