"""The core install: what needs no PyTorch runs in a process that cannot import it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import tiny

from cige.data import write_sentences
from cige.extras import install_command
from cige.models.tener import TenerConfig

NEWS = "罗氏公司总部设在瑞士巴塞尔。"
# What a core install does not have.
EXTRAS = ("torch", "transformers", "accelerate", "onnx", "onnxruntime", "scipy", "gensim", "optuna", "matplotlib")
WITHOUT = f"""
import sys

class Nothing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {EXTRAS}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name.partition(".")[0])

sys.meta_path.insert(0, Nothing())
"""
CLI = "from cige.cli import main; sys.exit(main(sys.argv[1:]))"


def core(code: str, *argv: object, status: int = 0) -> str:
    """What a program prints in a core install; or, where it is to fail, what it says."""
    done = subprocess.run([sys.executable, "-c", WITHOUT + code, *map(str, argv)], capture_output=True, text=True)
    assert done.returncode == status, done.stderr
    return done.stderr if status else done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A tagger's folder, labelled sentences and word lists."""
    root = tmp_path_factory.mktemp("core")
    tiny.model(seed=3).save(root / "model")
    tiny.model(config=TenerConfig(), architecture="tener").save(root / "tener")
    write_sentences(root / "dev.bmes", tiny.sentences(6))
    (root / "names.txt").write_text("轩辕澜\n龘靐鱻灥\n", encoding="utf-8")
    return root


def test_entities_are_those_of_pytorch(folder):
    from cige.api import load

    code = f"import json, cige; print(json.dumps([e.to_dict() for e in cige.load(precision='float32')({NEWS!r})]))"
    found = json.loads(core(code))
    expected = [e.to_dict() for e in load(backend="torch")(NEWS)]
    assert [{**e, "score": 0} for e in found] == [{**e, "score": 0} for e in expected] != []
    assert [e["score"] for e in found] == pytest.approx([e["score"] for e in expected], abs=1e-4)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (["predict", NEWS], "巴塞尔"),
        (["predict", NEWS, "--words"], "巴塞尔"),
        (["predict", NEWS, "--format", "jsonl", "--lexicon-add", "names.txt"], '"entities"'),
        (["predict", NEWS, "--model", "model"], ""),
        (["explain", NEWS], "巴塞尔"),
        (["explain", NEWS, "--maps", "--json"], "read from words"),
        (["explain", NEWS, "--output", "out.html"], "wrote"),
        (["evaluate", "--model", "model", "--data", "dev.bmes", "--json"], '"f1"'),
        (["user-words", "--model", "model", "--data", "dev.bmes", "--train", "dev.bmes", "--json"], "listed_names"),
        (["lexicon", "build", "names.txt", "words"], "2"),
        (["lexicon", "match", "轩辕澜来了", "--lexicon", "words"], "轩辕澜"),
        (["data", "stats", "dev.bmes"], "LOC"),
        (["info", "--json"], "not installed"),
    ],
    ids=lambda x: " ".join(x[:1] + x[2:4]) if isinstance(x, list) else "",
)
def test_commands(folder, command, expected):
    argv = [str(folder / a) if (folder / a).exists() or a in ("words", "out.html") else a
            for k, a in enumerate(command)]  # fmt: skip
    assert expected in core(CLI, *argv)


@pytest.mark.parametrize(
    ("command", "extra"),
    [
        (["predict", NEWS, "--model", "tener"], "train"),
        (["predict", NEWS, "--device", "cuda"], "train"),
        (["compact", "model", "small"], "train"),
        (["average", "model", "model", "--output", "mean"], "train"),
        (["train", "weibo/flat", "--output", "run"], "train"),
        (["export", "onnx", "out"], "train"),
    ],
    ids=lambda x: " ".join(x[:1] + x[2:4]) if isinstance(x, list) else "",
)
def test_what_needs_more_names_the_extra(folder, command, extra):
    argv = [str(folder / a) if k and (folder / a).exists() else a for k, a in enumerate(command)]
    assert install_command(extra) in core(CLI, *argv, status=2)


def test_pytorch_stays_away_where_it_is_installed():
    code = (
        "import cige, sys; cige.load()('李明在北京'); print([m for m in ('torch', 'rich', 'yaml') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
