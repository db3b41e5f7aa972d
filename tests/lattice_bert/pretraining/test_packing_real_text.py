"""Packing on a real corpus: how full instances are, and how many of them are asked for the order of two texts."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest

from cige.lattice_bert.encoder.joint_vocabulary import JointVocabulary, read_pieces
from cige.lattice_bert.pretraining.census import census
from cige.lattice_bert.pretraining.data import PretrainingData, open_data
from cige.lattice_bert.pretraining.dataset import InstanceConfig, InstanceSet, TokenIds
from cige.lattice_bert.pretraining.make_data import make_data
from cige.lattice_bert.pretraining.make_shard import DataSettings
from cige.lattice_bert.pretraining.packing import Room

N_WORDS, EVERY = 20_000, 250


@pytest.fixture(scope="module")
def real(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> PretrainingData:
    """Every 250th document of the corpus, with the most frequent words of the lexicon."""
    folder = tmp_path_factory.mktemp("real")
    with lzma.open(shared_data / "lexicon/words.txt.xz", "rt", encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file]
    words = sorted((row for row in rows if len(row) > 1 and row[1].isdigit()), key=lambda row: -int(row[1]))
    pieces = read_pieces(shared_data / "lexicon/google_zh_vocab.txt")
    JointVocabulary.build(pieces, [row[0] for row in words[:N_WORDS]]).save(folder / "vocabulary")
    with lzma.open(shared_data / "corpus/zh_corpus.txt.xz", "rt", encoding="utf-8") as file:
        documents = file.read().split("\n\n")
    (folder / "corpus.txt").write_text("\n\n".join(documents[::EVERY]), encoding="utf-8")
    settings = DataSettings(segment_words=False, held_out=0)
    make_data([folder / "corpus.txt"], folder / "vocabulary", folder / "data", settings=settings, show_progress=False)
    return open_data(folder / "data", check_contents=False)


@pytest.mark.parametrize("n_characters", [128, 512])
def test_instances_are_full_and_asked_for_order(real: PretrainingData, n_characters: int) -> None:
    room = Room(n_characters, 2 * n_characters)
    ids = TokenIds.of(real.vocabulary, use_words=True)
    found = census(InstanceSet(real.train, config=InstanceConfig(), ids=ids, room=room, seed=1))
    assert found.n_characters >= 0.9 * n_characters
    assert found.with_label_of_these >= 0.95 and found.with_label >= 0.85
    assert found.n_tokens > 1.2 * found.n_characters  # the lattices are as dense as in training
