"""A corpus becomes shards: the same ones whatever the number of processes, kept when a run is cut off."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tiny_corpus

from cige.errors import CigeError, DataError
from cige.lattice.tokenizer import LatticeTokenizer
from cige.pretraining import make_data as module
from cige.pretraining.corpus import CorpusReport, CorpusRules, read_documents
from cige.pretraining.data import open_data
from cige.pretraining.make_data import DataSettings, make_data
from cige.pretraining.shards import check_shard, open_shard

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
    rules = CorpusRules(max_line=40)
    documents = list(read_documents([data_folder.parent / "corpus.txt"], rules, CorpusReport()))
    kept = [d for number, d in enumerate(documents, start=1) if number % 5]
    held_out = [d for number, d in enumerate(documents, start=1) if number % 5 == 0]
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


def test_finished_shards_are_kept(source: Path, made: Path, tmp_path: Path, monkeypatch) -> None:
    output = tmp_path / "data"
    written = []

    def write_two(packet):
        if len(written) == 2:
            raise KeyboardInterrupt
        written.append(packet.folder.name)
        return ordinary(packet)

    ordinary = module.write_packet
    with monkeypatch.context() as patch:
        patch.setattr(module, "write_packet", write_two)
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
        module.JointVocabulary.build(tiny_corpus.PIECES, tiny_corpus.WORDS[:5]).save(own / "vocabulary")
    settings = replace(SETTINGS, shard_size=1400) if change == "settings" else SETTINGS
    with pytest.raises(CigeError, match="choose another output folder"):
        make(own, output, settings=settings)


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
    assert sum(shard["n_documents"] for shard in facts["shards"].values()) == 60
    assert check_shard(made / "shard-00000")["n_tokens"] == facts["shards"]["shard-00000"]["n_tokens"]
