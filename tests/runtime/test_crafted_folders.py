"""A folder whose arrays do not fit its configuration is refused by name, before C reads it, by every form."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import crafted_folders as crafted
import numpy as np
import pytest
import tiny

from cige.errors import CigeError, ModelError
from cige.folders.manifest import MANIFEST
from cige.lattice.lattice import build_lattice
from cige.lexicon.lexicon import Lexicon
from cige.models.flat import FlatConfig
from cige.models.model import LatticeModel
from cige.runtime.native_model import NativeModel

CONFIG = replace(tiny.CONFIG, bigram_backoff=True, char_words=True, gazetteers=True)
TEXTS = ["北京的罗氏公司请了张三", "南京市长江大桥", "", "a"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("crafted") / "model"
    tiny.model(config=CONFIG, typed=True).save(folder)
    return folder


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "model"))


def test_the_folder_itself_is_read(folder: Path) -> None:
    crafted.sign(folder)
    assert isinstance(NativeModel.load(folder).config, FlatConfig)


@pytest.mark.parametrize("name", crafted.WEIGHTS)
def test_weights(folder: Path, name: str) -> None:
    crafted.rewrite(folder, "model.safetensors", crafted.WEIGHTS[name])
    with pytest.raises(ModelError, match=r"do not fit the manifest"):
        NativeModel.load(folder)


@pytest.mark.parametrize("name", crafted.WEIGHTS)
def test_weights_in_pytorch(folder: Path, name: str) -> None:
    """What PyTorch can convert is a network too."""
    crafted.rewrite(folder, "model.safetensors", crafted.WEIGHTS[name])
    try:
        model = LatticeModel.load(folder)
    except ModelError:
        return
    assert np.isfinite(model.emissions([build_lattice(TEXTS[0], model.lexicon.snapshot())])).all()


@pytest.mark.parametrize("name", crafted.VOCABULARY)
def test_vocabulary(folder: Path, name: str) -> None:
    crafted.rewrite(folder, "vocabulary.safetensors", crafted.VOCABULARY[name])
    for load in (NativeModel.load, LatticeModel.load):
        with pytest.raises(ModelError, match=r"rows|codes|groups"):
            load(folder)


@pytest.mark.parametrize("name", crafted.FACTS)
def test_facts(folder: Path, name: str) -> None:
    crafted.sign(folder, **crafted.FACTS[name])
    with pytest.raises(ModelError):
        NativeModel.load(folder)


@pytest.mark.parametrize("name", crafted.CONFIG)
def test_config(folder: Path, name: str) -> None:
    config = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["config"]
    crafted.sign(folder, config=config | {name: crafted.CONFIG[name]})
    for load in (NativeModel.load, LatticeModel.load):
        with pytest.raises(ModelError):
            load(folder)


@pytest.mark.parametrize("distances", [["xx"], ["hh", "a", "ht", "tt"], ["hh", "th", "ht", ""]])
def test_distances_have_names(folder: Path, distances: list[str]) -> None:
    """PyTorch opened the folder if there were as many as before, and failed at the first text."""
    config = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["config"]
    crafted.sign(folder, config=config | {"distances": distances})
    for load in (NativeModel.load, LatticeModel.load):
        with pytest.raises(ModelError, match=r"distances is \["):
            load(folder)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes and devices among files")
@pytest.mark.parametrize("name", ["manifest.json", "lexicon/manifest.json", "lexicon/user.json", "model.safetensors"])
def test_no_device_and_no_pipe_is_read(folder: Path, name: str) -> None:
    """/dev/zero has no end, so that reading it took all memory, and a pipe that nobody writes to was waited for."""
    listing = (folder / name).parent / MANIFEST
    facts = json.loads(listing.read_text(encoding="utf-8"))
    facts["files"].pop(Path(name).name, None)  # what is not listed is not checked
    listing.write_text(json.dumps(facts), encoding="utf-8")
    for put in (lambda path: path.symlink_to("/dev/zero"), os.mkfifo):
        (folder / name).unlink()
        put(folder / name)
        for load in (NativeModel.load, LatticeModel.load):
            with pytest.raises(ModelError, match=r"a device or a pipe|expected a regular file"):
                load(folder)


def test_a_table_that_only_gazetteers_read_is_not_taken_for_labels(folder: Path) -> None:
    """Rows of gazetteers follow those of labels, so a table of labels that nobody had checked moved them."""
    crafted.rewrite(folder, "model.safetensors", crafted.more_rows("encoder.word_labels.weight", 1))
    config = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["config"]
    crafted.sign(folder, config=config | {"word_labels": False})
    with pytest.raises(ModelError, match=r"encoder.word_labels.weight is none of the arrays"):
        NativeModel.load(folder)


def test_a_form_of_position_scores_is_one_of_two(tmp_path: Path) -> None:
    """With any other, shapes were those of one form, and C read the other's."""
    folder = tmp_path / "model"
    tiny.model(config=replace(tiny.CONFIG, position_score="bias")).save(folder)
    crafted.rewrite(folder, "model.safetensors", crafted.also("encoder.layers.0.attention.v", (1, 1)))
    config = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["config"]
    for wrong in ("none", "exact"):
        crafted.sign(folder, config=config | {"position_score": wrong})
        for load in (NativeModel.load, LatticeModel.load):
            with pytest.raises(ModelError):
                load(folder)


@pytest.mark.parametrize("name", ["../outside.json", "/etc/hostname", "a\nb", ""])
def test_listed_files_are_files_of_the_folder(folder: Path, name: str) -> None:
    (folder.parent / "outside.json").write_text("{}", encoding="utf-8")
    facts = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    files = facts["files"] | {name: {"bytes": 2, "sha256": "0"}}
    (folder / MANIFEST).write_text(json.dumps(facts | {"files": files}), encoding="utf-8")
    with pytest.raises(ModelError, match=r"list of files|missing"):
        NativeModel.load(folder)


def test_a_folder_of_a_manifest_alone_is_refused(folder: Path) -> None:
    facts = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    shutil.rmtree(folder)
    folder.mkdir()
    for changed in (facts | {"files": {}}, {name: own for name, own in facts.items() if name != "files"}):
        (folder / MANIFEST).write_text(json.dumps(changed), encoding="utf-8")
        with pytest.raises(ModelError, match=r"lacks model.safetensors"):
            NativeModel.load(folder)


def test_no_listed_files_is_no_folder(folder: Path) -> None:
    facts = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    (folder / MANIFEST).write_text(json.dumps(facts | {"files": {}}), encoding="utf-8")
    with pytest.raises(ModelError, match="list of files"):
        NativeModel.load(folder)


@pytest.mark.parametrize("facts", [{"max_probes": 2**62}, {"max_probes": 0}, {"max_chars": -1}, {"max_chars": 2**40}])
def test_lexicon_facts(tmp_path: Path, facts: dict[str, int]) -> None:
    """On a full table, a search with max_probes = 2^62 would not end."""
    words = [chr(0x4E00 + k) + chr(0x5000 + k // 200) for k in range(18_000)]  # some become equal when normalised
    words += [word + "字" for word in words] + [word + "母" for word in words] + [word + "符" for word in words]
    Lexicon.from_words(words).save(tmp_path / "lexicon")
    crafted.sign(tmp_path / "lexicon", **facts)
    with pytest.raises(CigeError, match=r"max_probes|max_chars"):
        Lexicon.load(tmp_path / "lexicon").match("一个字")


def test_offsets_of_words_stay_in_their_file(tmp_path: Path) -> None:
    folder = tmp_path / "lexicon"
    Lexicon.from_words(["北京", "上海", "南京市"]).save(folder)
    offsets = np.load(folder / "offsets.npy")
    for wrong in (offsets + 1000, offsets[::-1], offsets[:1]):
        np.save(folder / "offsets.npy", np.ascontiguousarray(wrong))
        crafted.sign(folder)
        with pytest.raises(CigeError):
            list(Lexicon.load(folder))
