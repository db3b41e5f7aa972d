"""Extensions: what they add, and that the rest of cige works without them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import cige
from cige import extensions
from cige.cli import VERBS, main
from cige.errors import ModelError
from cige.folders.kinds import ONNX, TAGGER, find_kind
from cige.folders.manifest import MANIFEST, read_manifest

ROOT = Path(__file__).resolve().parents[1]
NAMES = [name.removeprefix("cige.") for name in extensions.PACKAGES]
INSTALLED = [name for name in NAMES if (Path(cige.__file__).parent / name).is_dir()]
needs_extensions = pytest.mark.skipif(INSTALLED != NAMES, reason="an extension was taken out")
# Folders that nothing changes and no module is imported from; the others are copied.
LINKED = (".github", "docs", "web", "annotations", "examples", "src/cige/bundled", "src/cige/bundled_research")


# ---- what they add


@needs_extensions
@pytest.mark.parametrize(
    ("alias", "verb"), [("pretrain", "lattice-bert pretrain"), ("finetune", "lattice-bert finetune")]
)
def test_former_names_of_verbs_still_work(alias, verb, capsys):
    assert alias not in VERBS and verb.split()[0] in VERBS
    with pytest.raises(SystemExit) as stop:
        main([alias, "--help"])
    assert stop.value.code == 0 and f"usage: cige {verb}" in capsys.readouterr().out


def test_kinds_of_the_core():
    for kind in (TAGGER, ONNX):
        found = find_kind(kind)
        assert found is not None and "cige.load" in found.use
    assert find_kind("cige nonsense") is find_kind(["a", "list"]) is find_kind(None) is None


@needs_extensions
def test_kinds_of_extensions():
    tuned, pretrained = find_kind("cige tuned model"), find_kind("cige pre-trained model")
    assert tuned is not None and callable(tuned.open_finder) and callable(tuned.load_features)
    assert pretrained is not None and callable(pretrained.load_features) and pretrained.open_finder is None
    own = [name for extension in extensions.extensions() for name in extension.kinds]
    assert len(own) == len(set(own)) and not set(own) & {TAGGER, ONNX}


@needs_extensions
@pytest.mark.parametrize(
    ("kind", "hint"),
    [
        (ONNX, "`cige predict --model` and `cige.load` read it"),
        ("cige tuned model", "in Python TunedModel.from_pretrained reads every task"),
        ("cige pre-trained model", "fine-tune it (`cige lattice-bert finetune TASK --model`)"),
    ],
)
def test_a_folder_of_another_kind_is_told_with_what_it_is_for(kind, hint, tmp_path):
    (tmp_path / MANIFEST).write_text(json.dumps({"kind": kind}), encoding="utf-8")
    with pytest.raises(ModelError) as refused:
        read_manifest(tmp_path, kind=TAGGER, version=0, error=ModelError)
    assert f"holds '{kind}', expected a cige model folder; " in str(refused.value) and hint in str(refused.value)


# ---- without them


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What `without_extensions.py` finds in a copy of the repository without extensions and their tests."""
    tree = tmp_path_factory.mktemp("alone") / "tree"
    linked = {ROOT / name for name in LINKED}

    def left_out(folder: str, names: list[str]) -> set[str]:
        here = Path(folder)
        return {n for n in names if here / n in linked or (n in NAMES and here.name in ("cige", "tests"))}

    for folder in ("src", "tests", "benchmarks", ".ci"):
        shutil.copytree(ROOT / folder, tree / folder, ignore=left_out)
    for file in ROOT.iterdir():
        if file.is_file():
            shutil.copy(file, tree)
    for name in LINKED:
        (tree / name).symlink_to(ROOT / name)
    environment = os.environ | {"PYTHONPATH": str(tree / "src"), "LC_ALL": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}
    environment.pop("PYTEST_XDIST_WORKER", None)
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # no test needs a plugin to be collected
    done = subprocess.run(
        [sys.executable, str(tree / "tests/without_extensions.py"), str(tree)],
        env=environment, capture_output=True, encoding="utf-8", check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["cige"].startswith(str(tree))
    return found


def test_every_module_can_be_imported(alone):
    assert not alone["failed"]


def test_tests_of_the_rest_can_be_collected(alone):
    files, wrong = alone["collected"]
    assert not wrong
    own = {path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("test_*.py")}
    assert set(files) == {file for file in own if file.split("/")[1] not in NAMES}


def test_some_of_them_pass(alone):
    n_passed, wrong = alone["quick"]
    assert not wrong and n_passed > 10


def test_the_command_line_has_no_verb_of_an_extension(alone):
    code, shown = alone["help"]
    assert code == 0 and "  predict " in shown and "lattice-bert" not in shown
    code, shown = alone["alias"]
    assert code == 2 and "unknown verb 'pretrain'" in shown


def test_entities_are_found(alone):
    code, shown = alone["predict"]
    assert code == 0 and [found["text"] for found in json.loads(shown)["entities"]] == ["罗氏公司", "上海"]


def test_recipes_of_an_extension_are_gone_with_it(alone):
    code, shown = alone["recipes"]
    assert code == 0 and "weibo/flat" in shown and "search/table6" in shown
    code, shown = alone["recipe"]
    assert code == 2 and "pretrain/tiny" in shown
