"""cige doctor: what it finds, and what it says of an installation that is damaged."""

from __future__ import annotations

import json
import shutil

import pytest

from cige.cli import main
from cige.commands import doctor
from cige.errors import CigeError
from cige.extras import install_command
from cige.folders import hub
from cige.folders.hub import BUNDLED


def told(capsys, *argv: str) -> tuple[int, dict[str, dict]]:
    code = main(["doctor", "--json", *argv])
    found = json.loads(capsys.readouterr().out)
    assert found["ok"] == (code == 0)
    return code, {finding["name"]: finding for finding in found["findings"]}


def test_this_installation_is_well(capsys):
    code, found = told(capsys, "--model", str(BUNDLED))
    assert code == 0
    assert "李明 PER, 北京 LOC" in found["bundled model: answer"]["detail"]
    assert "sha256" in found["bundled model: files"]["detail"]
    assert found[f"model {BUNDLED}: answer"]["state"] == "ok"
    assert {"cige", "python", "numpy", "threads", "terminal", "cache of data", "instruction sets"} <= set(found)
    assert all(finding["advice"] for finding in found.values() if finding["state"] != "ok")


@pytest.fixture
def damaged(tmp_path, monkeypatch):
    folder = tmp_path / "bundled"
    shutil.copytree(BUNDLED, folder)
    monkeypatch.setitem(hub.SHIPPED, "bundled", folder)
    return folder


def test_one_wrong_byte_of_the_model_is_found(capsys, damaged):
    weights = max(damaged.rglob("*"), key=lambda path: path.stat().st_size if path.is_file() else 0)
    content = bytearray(weights.read_bytes())
    content[len(content) // 2] ^= 1
    weights.write_bytes(content)
    code, found = told(capsys)
    assert code == 1 and "sha256" in found["bundled model"]["detail"] and found["bundled model"]["advice"]


def test_a_damaged_model_of_ones_own_is_not_a_reason_to_reinstall(capsys, damaged, tmp_path):
    own = tmp_path / "own"
    shutil.copytree(damaged, own)
    for folder in (damaged, own):
        weights = folder / "model.safetensors"
        weights.write_bytes(weights.read_bytes()[:-1])
    _, found = told(capsys, "--model", str(own))
    assert found["bundled model"]["advice"] == "reinstall cige"
    assert found[f"model {own}"]["advice"] == "copy, download or train the model again"


def test_a_wrong_level_is_not_a_reason_to_reinstall(capsys, monkeypatch):
    def load(folder: object) -> None:
        raise CigeError("CIGE_KERNELS=i8mm: this level cannot run on this processor; set CIGE_KERNELS to auto or off")

    monkeypatch.setattr("cige.api.load", load)
    _, found = told(capsys)
    assert "CIGE_KERNELS" in found["bundled model"]["detail"] and found["bundled model"]["advice"] == ""


@pytest.mark.parametrize(("level", "state", "detail"), [("avx2", "ok", "avx2"), (None, "note", "not compiled")])
def test_the_kernels_of_training_are_told(capsys, monkeypatch, level, state, detail):
    monkeypatch.setattr("cige.nn.native.level", lambda: level)
    monkeypatch.setattr("cige.runtime.native.load", lambda: object())
    monkeypatch.setattr("cige.runtime.native.level", lambda: "avx2")
    monkeypatch.setattr("cige.runtime.native.levels", lambda: ["avx2"])
    monkeypatch.setattr("cige.runtime.precision.available", lambda found: ["float32"])
    monkeypatch.setattr("cige.runtime.precision.chosen", lambda wanted, found: "float32")
    found = {finding.name: finding for finding in doctor._compiled()}["training kernels"]
    assert (found.state, found.detail) == (state, detail) and bool(found.advice) == (level is None)


def test_a_wrong_answer_is_found(capsys, monkeypatch):
    monkeypatch.setattr(doctor, "EXPECTED", (("李明", "ORG"),))
    code, found = told(capsys)
    assert code == 1 and "expected 李明 ORG" in found["bundled model: answer"]["detail"]


def test_what_nobody_foresaw_is_a_finding(capsys, monkeypatch):
    def fail():
        raise RuntimeError("no such luck")

    monkeypatch.setattr(doctor, "_gpu", fail)
    monkeypatch.setattr(doctor, "_model", lambda name: iter(()))
    code, found = told(capsys)
    assert code == 1 and found["GPU"]["detail"] == "RuntimeError: no such luck"


def test_surroundings_that_are_odd_are_noted(capsys, monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("OMP_NUM_THREADS", "many")
    monkeypatch.setenv("CIGE_DATA", str(tmp_path / "none"))
    monkeypatch.setenv("CIGE_CACHE", str(tmp_path / "file" / "cache"))
    monkeypatch.setattr(doctor, "_model", lambda name: iter(()))
    monkeypatch.setattr(doctor, "OPTIONAL", {"no-such-package": "extra"})
    code, found = told(capsys)
    assert code == 0
    assert found["threads"]["state"] == found["CIGE_DATA"]["state"] == found["cache of data"]["state"] == "note"
    assert install_command("extra") in found["no-such-package"]["advice"]


def test_threads_may_be_listed_by_level(capsys, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1,2")
    monkeypatch.setattr(doctor, "_model", lambda name: iter(()))
    _, found = told(capsys)
    assert found["threads"]["state"] == "ok" and found["threads"]["detail"].startswith("1 of ")


def test_people_get_a_table(capsys, monkeypatch):
    monkeypatch.setattr(doctor, "_model", lambda name: iter(()))
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert "numpy" in out and "everything that cige requires works" in out
