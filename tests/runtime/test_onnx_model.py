"""An exported folder is used like any other model folder, in a process that cannot import PyTorch."""

from __future__ import annotations

import copy
import json
import pickle
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tiny

import cige
from cige.api import NER, load
from cige.cli import main
from cige.data import read_sentences
from cige.errors import CigeError, ModelError
from cige.folders.hub import BUNDLED
from cige.folders.manifest import MANIFEST
from cige.models.model import LatticeModel
from cige.runtime.export import MAX_CHARS, export_onnx
from cige.runtime.onnx_model import OnnxModel
from cige.tagging.prediction import batches_by_size
from cige.tagging.windows import read_windows

TEXTS = [
    "李明在北京。",
    "",
    "  \n ",
    "人和药店设在重庆",
    "请轩辕澜沧渊瀚海龘靐鱻灥说话",
    "张三是中国银行的经理，他来自巴塞尔。" * 60,
]
USER_WORDS = ["轩辕澜", "沧渊瀚海", "龘靐鱻灥"]
assert len(TEXTS[-1]) > 2 * MAX_CHARS  # several windows

WITHOUT_TORCH = """
import sys

class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "transformers", "onnx"):
            raise ImportError(f"{name} is not installed here")

sys.meta_path.insert(0, NoTorch())
"""
API = """
import json
import cige

folder, copy, texts, words = json.loads(sys.stdin.read())
ner = cige.load(folder)

def read():
    return [[entity.to_dict() for entity in found] for found in ner.pipe(texts, batch_size=2)]

before = read()
assert read() == before
ner.lexicon.add(*words)
after = read()
ner.save_pretrained(copy)
again = cige.load(copy)
explained = ner.explain(texts[0]).to_dict()
analysed = [word.text for word in ner.analyze(texts[4]).words]
print(json.dumps([before, after, [e.to_dict() for e in again(texts[4])], explained, analysed]))
"""
CLI = "from cige.cli import main; sys.exit(main(sys.argv[1:]))"


def without_torch(code: str, *argv: str, stdin: str = "") -> str:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH + code, *argv], input=stdin, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def model() -> LatticeModel:
    """Not trained, so what it finds is odd; but it is sure of it, and every word counts."""
    made = tiny.model(seed=3)
    made.tagger.output.weight.data *= 8
    return made


@pytest.fixture(scope="module")
def folder(model, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("onnx") / "exported"
    export_onnx(model, folder)
    return folder


@pytest.fixture
def copied(folder, tmp_path) -> Path:
    return Path(shutil.copytree(folder, tmp_path / "copied"))


def assert_alike(found: list[dict], expected: list[dict]) -> None:
    """The same entities, scores within 1e-4."""
    assert [{**e, "score": 0} for e in found] == [{**e, "score": 0} for e in expected]
    np.testing.assert_allclose([e["score"] for e in found], [e["score"] for e in expected], atol=1e-4)


def with_user_words(model: LatticeModel) -> NER:
    lexicon = copy.copy(model.lexicon)
    lexicon.add(*USER_WORDS)
    return NER(replace(model, lexicon=lexicon))


def entities(ner: NER, texts: list[str]) -> list[list[dict]]:
    return [[entity.to_dict() for entity in found] for found in ner.pipe(texts, batch_size=2)]


def test_the_python_api_needs_no_torch(model, folder, tmp_path):
    given = json.dumps([str(folder), str(tmp_path / "copy"), TEXTS, USER_WORDS])
    before, after, reloaded, explained, words = json.loads(without_torch(API, stdin=given))
    expected_explained = NER(model).explain(TEXTS[0]).to_dict()
    expected = [*entities(NER(model), TEXTS), *entities(with_user_words(model), TEXTS)]
    for found, of_text in zip([*before, *after], expected, strict=True):
        assert_alike(found, of_text)
    assert len(before[5]) > 100 and before[1] == before[2] == []
    assert [e["text"] for e in before[4]] != [e["text"] for e in after[4]], "the user's words count at once"
    assert_alike(reloaded, after[4])  # and are saved
    assert set(USER_WORDS) <= set(words)
    assert_alike(without_words(explained), without_words(expected_explained))
    assert explained["n_tried"] == expected_explained["n_tried"] > 0


def without_words(explained: dict) -> list[dict]:
    return [{k: v for k, v in entity.items() if k not in ("words", "on_words")} for entity in explained["entities"]]


def test_the_command_line_needs_no_torch(model, folder, tmp_path):
    texts, words = tmp_path / "texts.txt", tmp_path / "words.txt"
    texts.write_text("\n".join(TEXTS[3:]), encoding="utf-8")
    words.write_text("\n".join(USER_WORDS), encoding="utf-8")
    own = ("--model", str(folder), "--lexicon-add", str(words))
    lines = without_torch(CLI, "predict", str(texts), *own, "--format", "jsonl").splitlines()
    expected = entities(with_user_words(model), TEXTS[3:])
    for line, text, of_text in zip(lines, TEXTS[3:], expected, strict=True):
        found = json.loads(line)
        assert found["text"] == text
        assert_alike(found["entities"], of_text)
    page = tmp_path / "page.html"
    without_torch(CLI, "explain", TEXTS[0], *own, "--output", str(page))
    assert "李" in page.read_text(encoding="utf-8")
    facts = json.loads(without_torch(CLI, "info", "--model", str(folder), "--json"))
    assert facts["model"]["labels"] == tiny.LABELS and "not installed" in facts["installation"]["torch"]


def test_the_verb_writes_a_folder_that_loads(model, tmp_path, capsys):
    model.save(tmp_path / "model")
    assert main(["export", "onnx", str(tmp_path / "model"), str(tmp_path / "out")]) == 0
    assert main(["export", "onnx", str(tmp_path / "model"), str(tmp_path / "int8"), "--int8"]) == 0
    said = [re.fullmatch(r".*(out|int8): (0\.\d) MB", line)[2] for line in capsys.readouterr().out.splitlines()]
    sizes = [sum(f.stat().st_size for f in (tmp_path / name).rglob("*") if f.is_file()) for name in ("out", "int8")]
    assert sizes[0] > sizes[1] and said[0] >= said[1] > "0.0"
    exact, rounded = (cige.load(tmp_path / name).model for name in ("out", "int8"))
    lattices = model.lattices(TEXTS[:4])
    difference = np.abs(exact.emissions(lattices) - rounded.emissions(lattices)).max()
    assert 0 < difference < 0.05 * np.ptp(exact.emissions(lattices))
    before = sorted(f.name for f in tmp_path.iterdir())
    assert main(["export", "onnx", str(tmp_path / "out"), str(tmp_path / "out")]) == 2
    assert "expected a cige model folder" in capsys.readouterr().err
    assert main(["export", "onnx", str(tmp_path / "model"), str(tmp_path / "model")]) == 2
    assert "will not be replaced" in capsys.readouterr().err
    assert sorted(f.name for f in tmp_path.iterdir()) == before


def test_what_has_no_graph_is_refused(tmp_path):
    from cige.models.tener import TenerConfig

    other = tiny.model(config=TenerConfig(), architecture="tener")
    with pytest.raises(ModelError, match="'tener' cannot be exported to ONNX, only 'flat' can"):
        export_onnx(other, tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_a_failed_export_leaves_nothing(model, tmp_path, monkeypatch):
    def disk_full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("cige.runtime.onnx_model.save_words", disk_full)
    with pytest.raises(ModelError, match=r"not saved .*No space left"):
        export_onnx(model, tmp_path / "out")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["model.onnx", "model.onnx.data", "crf.safetensors", "vocabulary.safetensors"])
def test_a_damaged_file_is_told(copied, name):
    file = copied / name
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    with pytest.raises(ModelError, match=rf"{name}: contents differ .* damaged"):
        cige.load(copied)
    file.write_bytes(content[:-10])
    with pytest.raises(ModelError, match=rf"{name}: \d+ bytes, expected \d+; it is damaged"):
        cige.load(copied)
    file.unlink()
    with pytest.raises(ModelError, match=rf"{name}: missing"):
        cige.load(copied)


def test_a_folder_without_its_lexicon_is_told(copied):
    shutil.rmtree(copied / "lexicon")
    with pytest.raises(ModelError, match=r"its lexicon cannot be used: .*no such folder"):
        cige.load(copied)


def test_a_lexicon_of_another_model_is_told(copied):
    other = copied.parent / "other"
    shutil.rmtree(copied / "lexicon")
    cige.Lexicon.from_words(["南京", "长江"]).save(other)
    shutil.move(other, copied / "lexicon")
    with pytest.raises(ModelError, match="a lexicon of another build than the model's"):
        cige.load(copied)


def change_manifest(folder: Path, **facts: object) -> None:
    manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    (folder / MANIFEST).write_text(json.dumps(manifest | facts), encoding="utf-8")


def test_a_newer_version_is_told(copied):
    change_manifest(copied, version=99)
    with pytest.raises(ModelError, match="version 99, this cige reads up to 1; upgrade cige"):
        cige.load(copied)


def test_a_graph_that_does_not_fit_its_tags_is_told(copied):
    change_manifest(copied, labels=["LOC"], tags=["O", "B-LOC", "M-LOC", "E-LOC", "S-LOC"])
    with pytest.raises(ModelError, match="do not fit the manifest"):
        cige.load(copied)


def test_another_device_and_longer_inputs_are_refused(folder):
    with pytest.raises(ModelError, match="runs on the CPU; given device 'cuda'"):
        cige.load(folder, device="cuda")
    ner = cige.load(folder)
    lattices = [part.lattice for part in read_windows("好" * MAX_CHARS, ner.lexicon.snapshot())]
    longest = max(lattice.n_chars for lattice in lattices)
    assert longest <= MAX_CHARS
    ner.model.max_chars = longest - 1
    with pytest.raises(ModelError, match=f"a lattice of {longest} characters; .* reads up to {longest - 1}"):
        ner.model.emissions(lattices)


def test_tags_of_weibo_are_those_of_the_bundled_model(shared_data, tmp_path):
    model = LatticeModel.load(BUNDLED)
    export_onnx(model, tmp_path / "exported")
    exported = OnnxModel.load(tmp_path / "exported")
    lattices = model.lattices([s.text for s in read_sentences(shared_data / "ner" / "weibo" / "test.bmes")])
    assert len(lattices) == 270
    for chosen in batches_by_size(lattices, batch_size=32):
        batch = [lattices[k] for k in chosen]
        n_chars = [lattice.n_chars for lattice in batch]
        expected, found = model.emissions(batch), exported.emissions(batch)
        assert model.crf.decode(expected, n_chars) == exported.crf.decode(found, n_chars)
        for row, n in enumerate(n_chars):
            np.testing.assert_allclose(found[row, :n], expected[row, :n], atol=1e-4)


@pytest.mark.parametrize(("given", "n"), [("3", 3), ("2,1", 2), ("many", 0), ("", 0)])
def test_it_has_the_threads_that_the_environment_names(folder, monkeypatch, given, n):
    monkeypatch.setenv("OMP_NUM_THREADS", given)
    assert load(folder).model.session.get_session_options().intra_op_num_threads == n


def test_a_model_may_be_pickled(folder):
    ner = load(folder)
    ner.lexicon.add("轩辕")
    copy = pickle.loads(pickle.dumps(ner))
    assert copy(TEXTS[0]) == ner(TEXTS[0]) and copy.lexicon.user_words == ner.lexicon.user_words


def test_a_pickled_model_whose_folder_is_gone_says_so(copied):
    data = pickle.dumps(load(copied))
    shutil.rmtree(copied)
    with pytest.raises(CigeError, match="no such folder"):
        pickle.loads(data)


def test_a_list_of_names_is_for_the_folder_from_which_it_was_exported(folder):
    with pytest.raises(ModelError, match="keeps the names that it was exported with"):
        load(folder, names="names.tsv")
