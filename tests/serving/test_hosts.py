"""Hosts: which addresses are local, and by which names a local server may be called."""

import os
import subprocess
import sys

import pytest
import tiny
from fastapi.testclient import TestClient
from running_server import SOON

from cige.api import NER
from cige.serving.app import create_app
from cige.serving.hosts import LOOPBACK, is_loopback, names_of
from cige.serving.settings import Settings, token_of_environment


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_local_addresses(host):
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "192.0.2.1", "2001:db8::1", "no such host.invalid"])
def test_other_addresses(host):
    assert not is_loopback(host)


def test_names():
    assert names_of("127.0.0.1", ()) == LOOPBACK and names_of("0.0.0.0", ()) == ()
    assert names_of("127.0.0.2", ["NER.example.org"]) == (*LOOPBACK, "127.0.0.2", "ner.example.org")
    assert names_of("::", ["a.example"]) == (*LOOPBACK, "[::]", "a.example")


@pytest.mark.parametrize("given", ["a.example:8000", "A.example.", "a.example.:443"])
def test_a_name_may_be_given_as_requests_have_it(given):
    assert names_of("0.0.0.0", [given])[-1] == "a.example"


@pytest.fixture(scope="module")
def client():
    names = names_of("127.0.0.1", ["ner.example.org"])
    with TestClient(create_app(NER(tiny.model()), Settings(hosts=names), token="t")) as made:
        yield made


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:8000", "127.0.0.1:80", "[::1]", "[::1]:8000", "ner.example.org.", "localhost."]
)
def test_its_own_names_are_answered(client, host):
    assert client.get("/healthz", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8000", "localhost.evil.example", "", "127.0.0.1@e", "::1"]
)
@pytest.mark.parametrize("path", ["/", "/v1/model"])
def test_other_names_are_refused_before_anything_else(client, host, path):
    answer = client.get(path, headers={"host": host})
    assert answer.status_code == 421 and answer.json()["error"]["code"] == "wrong_host"
    assert answer.json()["error"]["params"] == {"given": host}


@pytest.mark.parametrize(("options", "token"), [([], ""), (["--workers", "2"], ""), ([], " \n")])
def test_a_server_that_others_reach_needs_a_token(options, token):
    command = [sys.executable, "-m", "cige", "serve", "--host", "0.0.0.0", "--port", "0", *options]
    environment = os.environ | {"CIGE_SERVE_TOKEN": token}
    done = subprocess.run(command, capture_output=True, text=True, timeout=SOON, env=environment)
    assert done.returncode == 2 and done.stderr.startswith("cige: given --host 0.0.0.0 and no token; ")
    assert "CIGE_SERVE_TOKEN" in done.stderr and "--no-token" in done.stderr


@pytest.mark.parametrize(("given", "token"), [("geheim\n", "geheim"), (" ", None), ("", None), (None, None)])
def test_a_token_from_a_file_has_no_line_end(monkeypatch, given, token):
    monkeypatch.delenv("CIGE_SERVE_TOKEN", raising=False)
    if given is not None:
        monkeypatch.setenv("CIGE_SERVE_TOKEN", given)
    assert token_of_environment() == token


@pytest.mark.parametrize(("token", "no_token"), [("t", False), (None, True)])
def test_a_token_or_the_word_of_the_operator_lets_it_start(monkeypatch, token, no_token):
    from cige.errors import CigeError
    from cige.serving import server

    def reached(*_):
        raise CigeError("it went on")

    monkeypatch.setattr("cige.serving.app.open_models", reached)
    monkeypatch.setattr(server.Settings, "to_environment", lambda self: None)
    monkeypatch.delenv("CIGE_SERVE_TOKEN", raising=False)
    if token:
        monkeypatch.setenv("CIGE_SERVE_TOKEN", token)
    with pytest.raises(CigeError, match="it went on"):
        server.serve(Settings(), host="0.0.0.0", port=0, no_token=no_token, on_report=print)
