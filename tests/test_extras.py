"""Packages of extras that are not installed: every verb names the extra, and how to install it here."""

from __future__ import annotations

import ast
import json
import pickle
import re
import sys
from pathlib import Path

import pytest
from without_extras import without_extras

import cige
from cige import extras
from cige.bulk import packages
from cige.bulk.packages import check_installed
from cige.cli import CORE_VERBS, main
from cige.data import Sentence, Span, write_sentences
from cige.errors import CigeError
from cige.extras import EXTRA_OF, as_installed, install_command

SOURCE = Path(cige.__file__).parent
ROOT = SOURCE.parents[1]
CORE = {"numpy", "safetensors", "rich"}

# Every verb with arguments that make it work, and the extra that it lacks then; None if it needs none.
COMMANDS: dict[str, tuple[list[str], str | None]] = {
    "predict": (["李明在北京。", "--device", "cuda"], "train"),
    "serve": ([], "serve"),
    "annotate": (["raw.txt", "annotated", "--to", "parquet"], "documents"),
    "explain": (["李明在北京。", "--output", "page.png"], "plots"),
    "train": (["--data", "dev.bmes", "--output", "run"], "train"),
    "learn-type": (["GAME", "--words", "words.txt", "--text", "raw.txt", "--output", "run"], "train"),
    "evaluate": (["--data", "dev.bmes", "--json"], None),
    "pseudo-label": (["raw.txt", "labelled.jsonl", "--model", "bundled", "--chars", "1", "99"], None),
    "suggest": (["raw.txt", "tasks.jsonl", "--n", "1", "--chars", "1", "99"], None),
    "calibrate": (["model", "dev.bmes"], None),
    "user-words": (["--data", "dev.bmes", "--json"], None),
    "compare": (["weibo/flat", "--runs", "runs"], "train"),
    "leaderboard": (["run", "--list"], "train"),
    "recipes": (["list"], "train"),
    "search": (["weibo/flat", "--output", "run"], "train"),
    "convert": (["docs.spacy", "out.jsonl"], "spacy"),
    "lexicon": (["match", "李明在北京。"], None),
    "names": (["info"], None),
    "vectors": (["train", "raw.txt", "vectors.bin"], "train"),
    "data": (["stats", "dev.bmes"], None),
    "average": (["bundled", "bundled", "--output", "mean"], "train"),
    "compact": (["bundled", "small"], "train"),
    "export": (["onnx", "graph"], "train"),
    "info": ([], None),
    "doctor": ([], None),
    "completion": (["bash"], "completion"),
}


def test_every_verb_works_or_names_its_extra(tmp_path):
    assert list(COMMANDS) == list(CORE_VERBS), "give each verb a command here"
    write_sentences(tmp_path / "dev.bmes", [Sentence("李明在北京。", (Span(0, 2, "PER"), Span(3, 5, "LOC")))] * 8)
    (tmp_path / "raw.txt").write_text("李明在北京。\n", encoding="utf-8")
    (tmp_path / "words.txt").write_text("云杉\n", encoding="utf-8")
    (tmp_path / "docs.spacy").touch()
    told = without_extras({verb: argv for verb, (argv, _) in COMMANDS.items()}, tmp_path)
    for verb, (_, extra) in COMMANDS.items():
        code, error = told[verb]
        assert code in (0, 2), (verb, code, error)
        if extra is None:
            assert "install" not in error, (verb, error)
        else:
            assert code == 2 and error.startswith("cige: ") and install_command(extra) in error, (verb, error)


def test_help_of_every_verb_needs_no_extra(tmp_path):
    told = without_extras({verb: ["--help"] for verb in CORE_VERBS}, tmp_path)
    assert all(code == 0 for code, _ in told.values()), told


def test_every_imported_package_is_of_the_core_or_of_an_extra():
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in {name.partition(".")[0] for name in names} - sys.stdlib_module_names - {"cige"}:
                assert name in CORE | set(EXTRA_OF), f"{path} imports {name}; give it an extra in extras.py"


def test_the_extras_are_those_of_the_project():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    section = text.partition("[project.optional-dependencies]")[2].partition("\n[")[0]
    known = re.findall(r"^([a-z]+) = \[", section, re.M)
    assert set(EXTRA_OF.values()) <= set(known)


@pytest.mark.parametrize(
    ("origin", "expected"),
    [
        (None, '"cige[serve]"'),
        ({"url": "file://FOLDER", "dir_info": {"editable": True}}, '-e "FOLDER[serve]"'),
        ({"url": "file://FOLDER", "dir_info": {}}, '"FOLDER[serve]"'),
        ({"url": "file://FOLDER/a%20b.whl", "archive_info": {}}, '"FOLDER/a b.whl[serve]"'),
        ({"url": "file://FOLDER", "dir_info": {}, "subdirectory": "sub"}, '"FOLDER/sub[serve]"'),
        ({"url": "file:///gone/cige.whl", "archive_info": {}}, '"cige[serve]"'),
        ({"url": "https://a.b/cige.whl", "archive_info": {}}, '"cige[serve] @ https://a.b/cige.whl"'),
        (
            {"url": "https://a.b/c.git", "vcs_info": {"vcs": "git", "commit_id": "12ab"}},
            '"cige[serve] @ git+https://a.b/c.git@12ab"',
        ),
        (
            {
                "url": "https://a.b/c.git",
                "vcs_info": {"vcs": "git", "requested_revision": "main", "commit_id": "12ab"},
                "subdirectory": "python",
            },
            '"cige[serve] @ git+https://a.b/c.git@main#subdirectory=python"',
        ),
    ],
)
def test_an_extra_is_installed_from_where_cige_was(monkeypatch, tmp_path, origin, expected):
    class Installed:
        def read_text(self, name):
            assert name == "direct_url.json"
            return None if origin is None else json.dumps(origin).replace("FOLDER", str(tmp_path))

    (tmp_path / "a b.whl").touch()
    (tmp_path / "sub").mkdir()
    monkeypatch.setattr(extras, "distribution", lambda name: Installed())
    monkeypatch.setattr(extras, "_CHECKOUT", tmp_path / "none")
    assert install_command("serve").endswith(" install " + expected.replace("FOLDER", str(tmp_path)))


def test_a_checkout_that_was_not_installed_is_named_by_its_folder(monkeypatch, tmp_path):
    def none(name):
        raise extras.PackageNotFoundError(name)

    (tmp_path / "pyproject.toml").touch()
    monkeypatch.setattr(extras, "distribution", none)
    monkeypatch.setattr(extras, "_CHECKOUT", tmp_path)
    assert install_command("hub").endswith(f'install -e "{tmp_path}[hub]"')


def test_the_pip_of_this_python_is_meant(monkeypatch, tmp_path):
    monkeypatch.setattr(extras, "_source", lambda extra: f'"cige{extra}"')
    monkeypatch.setattr(extras.sys, "executable", str(tmp_path / "bin" / "python"))
    monkeypatch.setattr(extras.shutil, "which", lambda name: str(tmp_path / "bin" / name))
    assert install_command("train") == 'pip install "cige[train]"'
    assert install_command() == 'pip install "cige"'
    for found in ("/usr/bin/pip", None):
        monkeypatch.setattr(extras.shutil, "which", lambda name, found=found: found)
        assert install_command("train") == f'{tmp_path}/bin/python -m pip install "cige[train]"'


def test_characters_that_a_shell_reads_are_quoted(monkeypatch):
    assert extras._quoted("/a/b[train]", always=True) == '"/a/b[train]"'
    assert extras._quoted("/a $b[train]", always=True) == "'/a $b[train]'"
    assert extras._quoted("/a b/python") == '"/a b/python"'


def test_messages_of_the_library_name_the_command_of_this_installation(capsys, monkeypatch):
    expected = install_command("hub")
    for said in ("pip install 'cige[hub]'", 'pip install "cige[hub]"', "pip install cige[hub]"):
        assert as_installed(f"needs it; {said}.") == f"needs it; {expected}."

    def fail(argv):
        raise CigeError('this needs it; pip install "cige[hub]"')

    with pytest.raises(CigeError) as caught:
        fail([])
    assert str(caught.value) == f"this needs it; {expected}" == str(pickle.loads(pickle.dumps(caught.value)))
    monkeypatch.setattr("cige.cli._run", fail)
    assert main(["info"]) == 2 and expected in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "module", "extra"),
    [
        (["--engine", "ray"], "ray", "ray"),
        (["--engine", "ray"], "pandas", "ray"),
        (["--engine", "spark"], "pyspark", "spark"),
        (["--engine", "spark"], "pandas", "spark"),
        (["--to", "parquet"], "pyarrow", "documents"),
    ],
)
def test_a_job_without_a_package_names_its_extra_before_it_begins(
    monkeypatch, capsys, tmp_path, options, module, extra
):
    (tmp_path / "raw.txt").write_text("李明在北京。\n", encoding="utf-8")
    monkeypatch.setattr(packages, "find_spec", lambda name: None if name == module else name)
    assert main(["annotate", str(tmp_path / "raw.txt"), str(tmp_path / "out"), *options]) == 2
    error = capsys.readouterr().err
    assert f"needs {module}, which is not installed" in error and install_command(extra) in error
    assert not (tmp_path / "out").exists()


def test_a_module_that_a_program_blocked_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(CigeError, match=r'Parquet needs pyarrow.*pip install .*\[documents\]"'):
        check_installed("Parquet", "documents")
