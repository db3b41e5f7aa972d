"""A corpus becomes shards: the same ones whatever the number of processes, kept when a run is cut off."""

from __future__ import annotations

import gzip
import json
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tiny_corpus

from cige.errors import CigeError, DataError
from cige.lattice_bert.encoder.joint_vocabulary import JointVocabulary
from cige.lattice_bert.encoder.tokenizer import LatticeTokenizer
from cige.lattice_bert.pretraining import make_data as making
from cige.lattice_bert.pretraining import make_shard as module
from cige.lattice_bert.pretraining.corpus import CorpusReport, CorpusRules
from cige.lattice_bert.pretraining.data import open_data
from cige.lattice_bert.pretraining.make_data import make_data
from cige.lattice_bert.pretraining.make_shard import DataSettings
from cige.lattice_bert.pretraining.shards import check_shard, open_shard

SETTINGS = DataSettings(rules=CorpusRules(max_line=40), held_out=5, shard_size=1500, segment_words=False)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def make(source: Path, output: Path, **options) -> CorpusReport:
    settings = {"settings": SETTINGS, "show_progress": False} | options
    return make_data([source / "corpus.txt"], source / "vocabulary", output, **settings)


@pytest.fixture(scope="module")
def source(data_folder: Path) -> Path:
    """Where the corpus and the vocabulary are."""
    return data_folder.parent


@pytest.fixture(scope="module")
def made(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("made") / "data"
    make(source, output)
    return output


def test_shards_hold_the_lattice_of_every_line(data_folder: Path) -> None:
    corpus = (data_folder.parent / "corpus.txt").read_text(encoding="utf-8")
    documents = [tuple(document.split("\n")) for document in corpus.rstrip("\n").split("\n\n")]
    index = json.loads((data_folder / "manifest.json").read_text(encoding="utf-8"))["shards"].values()
    starts = [part["text"][0][1] for part in index]
    n_before = [corpus.encode()[:start].decode().count("\n\n") for start in starts]
    first = [int(unit * 0.6180339887498949 % 1 * 5) for unit in range(len(starts))]
    kept, held_out = [], []
    for number, document in enumerate(documents):
        unit = max(k for k, n in enumerate(n_before) if n <= number)
        (kept if (number - n_before[unit] + first[unit] + 1) % 5 else held_out).append(document)
    assert abs(len(held_out) - 12) < 5
    tokenizer = LatticeTokenizer(tiny_corpus.vocabulary())
    data = open_data(data_folder)
    assert len(data.train) > 2 and data.vocabulary.fingerprint == tiny_corpus.vocabulary().fingerprint
    for shards, expected in ((data.train, kept), (data.held_out, held_out)):
        found = []
        for shard in shards:
            for first, end in zip(shard.document_lines[:-1], shard.document_lines[1:], strict=True):
                found.append([])
                for line in range(first, end):
                    tokens = slice(shard.line_tokens[line], shard.line_tokens[line + 1])
                    starts = shard.starts[tokens] - shard.line_pieces[line]
                    found[-1].append((shard.ids[tokens].tolist(), starts.tolist(), shard.lengths[tokens].tolist()))
        lattices = [[tokenizer.tokenize(line) for line in document] for document in expected]
        assert found == [
            [(x.ids.tolist(), x.starts.tolist(), (x.ends - x.starts).tolist()) for x in document]
            for document in lattices
        ]
    assert data.n_tokens == sum(len(s.ids) for s in data.train) > data.n_pieces


def test_words_of_the_segmentation(tmp_path: Path) -> None:
    tiny_corpus.vocabulary().save(tmp_path / "vocabulary")
    (tmp_path / "corpus.txt").write_text("我在北京大学，aib 学生", encoding="utf-8")
    make(tmp_path, tmp_path / "data", settings=DataSettings(held_out=0))
    shard = open_shard(tmp_path / "data/shard-00000")
    #                                                   我 在 北 京 大 学 ， ai ##b 学 生
    assert shard.word_starts.astype(int).tolist() == [1, 1, 1, 0, 0, 0, 1, 1, 0, 1, 0]
    make(tmp_path, tmp_path / "plain", settings=DataSettings(held_out=0, segment_words=False))
    assert open_shard(tmp_path / "plain/shard-00000").word_starts.all() and not open_data(tmp_path / "plain").has_words


def test_processes_make_the_same_data(source: Path, made: Path, tmp_path: Path) -> None:
    report = make(source, tmp_path / "data", n_workers=2)
    assert contents(tmp_path / "data") == contents(made)
    assert report == make(source, tmp_path / "data") and report.n_documents == 60


def test_shards_are_told_as_they_are_finished(monkeypatch) -> None:
    is_told = threading.Event()

    class Job:
        def make(self, unit: int) -> dict[str, object]:
            return {"name": unit, "was_told": unit == 1 or is_told.wait(5)}

    monkeypatch.setattr(making, "process_pool", ThreadPoolExecutor)
    entries = making.in_processes(Job(), iter([0, 1]), 2)
    assert next(entries)["name"] == 1
    is_told.set()
    assert list(entries) == [{"name": 0, "was_told": True}]


def test_finished_shards_are_kept(source: Path, made: Path, tmp_path: Path, monkeypatch) -> None:
    output = tmp_path / "data"
    written = []

    def write_two(shard, folder, **options):
        if len(written) == 2:
            raise KeyboardInterrupt
        written.append(folder.name)
        return ordinary(shard, folder, **options)

    ordinary = module.write_shard
    with monkeypatch.context() as patch:
        patch.setattr(module, "write_shard", write_two)
        with pytest.raises(KeyboardInterrupt):
            make(source, output)
    with pytest.raises(DataError, match="no manifest"):
        open_data(output)
    before = {name: (output / name / "ids.npy").stat().st_mtime_ns for name in written}
    make(source, output)
    assert contents(output) == contents(made)
    assert {name: (output / name / "ids.npy").stat().st_mtime_ns for name in written} == before


def test_a_vanished_shard_is_named_and_made_again(source: Path, made: Path, tmp_path: Path) -> None:
    output = tmp_path / "data"
    shutil.copytree(made, output)
    shutil.rmtree(output / "shard-00001")
    with pytest.raises(DataError, match=r"shard-00001: missing.*makes missing shards again"):
        open_data(output)
    make(source, output)
    assert contents(output) == contents(made) and open_data(output).fingerprint == open_data(made).fingerprint


def test_changed_and_damaged_shards_are_named(made: Path, tmp_path: Path) -> None:
    output = tmp_path / "data"
    shutil.copytree(made, output)
    path = output / "shard-00001/ids.npy"
    whole = path.read_bytes()
    path.write_bytes(whole[:-4])
    with pytest.raises(DataError, match=r"ids.npy.*bytes, expected"):
        open_data(output)
    path.write_bytes(whole[:-4] + b"\1\2\3\4")
    with pytest.raises(DataError, match=r"ids.npy.*contents differ"):
        open_data(output)
    shutil.rmtree(output / "shard-00001")
    shutil.copytree(output / "shard-00000", output / "shard-00001")
    with pytest.raises(DataError, match="shard-00001: not the shard that was made here"):
        open_data(output)


@pytest.mark.parametrize("change", ["corpus", "settings", "vocabulary", "folder"])
def test_other_input_than_before_is_refused(source: Path, tmp_path: Path, change: str) -> None:
    own, output = tmp_path / "source", tmp_path / "data"
    shutil.copytree(source, own, ignore=shutil.ignore_patterns("data"))
    if change == "folder":
        output.mkdir()
        (output / "letter.txt").write_text("mine", encoding="utf-8")
        with pytest.raises(DataError, match="not pre-training data"):
            make(own, output)
        return
    make(own, output)
    if change == "corpus":
        text = (own / "corpus.txt").read_text(encoding="utf-8")
        (own / "corpus.txt").write_text("我在北京大学。\n" + text, encoding="utf-8")
    elif change == "vocabulary":
        shutil.rmtree(own / "vocabulary")
        JointVocabulary.build(tiny_corpus.PIECES, tiny_corpus.WORDS[:5]).save(own / "vocabulary")
    settings = replace(SETTINGS, shard_size=1400) if change == "settings" else SETTINGS
    with pytest.raises(CigeError, match="choose another output folder"):
        make(own, output, settings=settings)


@pytest.mark.parametrize("text", ["", "\n\n \n"])
def test_a_corpus_without_text_is_refused(tmp_path: Path, text: str) -> None:
    tiny_corpus.vocabulary().save(tmp_path / "vocabulary")
    (tmp_path / "corpus.txt").write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match="no text found"):
        make(tmp_path, tmp_path / "data")


def test_packing_and_parting_the_corpus_change_nothing(source: Path, made: Path, tmp_path: Path) -> None:
    """A packed corpus, and one in several files that are smaller than a shard, give the same shards."""
    text = (source / "corpus.txt").read_bytes()
    (tmp_path / "corpus.txt").write_bytes(gzip.compress(text))
    made_of = {"vocabulary": source / "vocabulary", "settings": SETTINGS, "show_progress": False}
    make_data([tmp_path / "corpus.txt"], output=tmp_path / "data", **made_of)
    packed, plain = (contents(folder) for folder in (tmp_path / "data", made))
    assert {name: packed[name] for name in packed if name != "manifest.json"} == {
        name: plain[name] for name in plain if name != "manifest.json"
    }
    assert open_data(tmp_path / "data").fingerprint == open_data(made).fingerprint
    place = text.index(b"\n\n", 1000) + 2
    parts = [text[:place], text[place:]]
    for number, part in enumerate(parts):
        (tmp_path / f"{number}.txt").write_bytes(part)
    files = [tmp_path / "0.txt", tmp_path / "1.txt"]
    make_data(files, output=tmp_path / "parts", **made_of)
    assert open_data(tmp_path / "parts").n_tokens == open_data(made).n_tokens
    shards = json.loads((tmp_path / "parts/manifest.json").read_text(encoding="utf-8"))["shards"]
    assert shards["shard-00000"]["text"][0] == [str(files[0]), 0, len(parts[0])]
    assert shards["shard-00000"]["text"][1][:2] == [str(files[1]), 0]


def test_lines_of_many_tokens_are_cut(tmp_path: Path) -> None:
    tiny_corpus.vocabulary().save(tmp_path / "vocabulary")
    (tmp_path / "corpus.txt").write_text("北京大学研究生，" * 5, encoding="utf-8")
    make(tmp_path, tmp_path / "data", settings=replace(SETTINGS, held_out=0, max_line_tokens=30))
    shard = open_shard(tmp_path / "data/shard-00000")
    assert len(shard.line_tokens) - 1 > 1 and np.diff(shard.line_tokens).max() <= 30
    assert len(shard.word_starts) == 8 * 5


def test_all_documents_held_out_is_refused(tmp_path: Path) -> None:
    tiny_corpus.vocabulary().save(tmp_path / "vocabulary")
    (tmp_path / "corpus.txt").write_text("我\n\n我", encoding="utf-8")
    make(tmp_path, tmp_path / "data", settings=replace(SETTINGS, held_out=1))
    with pytest.raises(DataError, match="--held-out 0"):
        open_data(tmp_path / "data")


def test_manifest_tells_sizes_and_report(made: Path) -> None:
    facts = json.loads((made / "manifest.json").read_text(encoding="utf-8"))
    assert facts["report"]["n_documents"] == 60
    shards = facts["shards"].values()
    assert sum(shard["n_documents"] + shard["held_out"]["n_documents"] for shard in shards) == 60
    assert check_shard(made / "shard-00000")["n_tokens"] == facts["shards"]["shard-00000"]["n_tokens"]
