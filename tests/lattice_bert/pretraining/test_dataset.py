"""Instances against a slow definition, and thousands of them against the statistics that the paper's tasks ask for."""

from __future__ import annotations

import pickle
import re
import shutil
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import tiny_corpus

from cige.errors import DataError
from cige.lattice_bert.encoder.tokenizer import LatticeTokenizer
from cige.lattice_bert.pretraining.data import PretrainingData, open_data
from cige.lattice_bert.pretraining.dataset import InstanceConfig, InstanceSet, MaskedInstance, TokenIds
from cige.lattice_bert.pretraining.instances import NO_LABEL, Instance
from cige.lattice_bert.pretraining.masking import NO_GROUP, budget
from cige.lattice_bert.pretraining.packing import Room
from cige.lattice_bert.pretraining.passage import Passage

ROOM = Room(48, 65)
IDS = TokenIds.of(tiny_corpus.vocabulary(), use_words=True)
PLAIN = InstanceConfig(short_prob=0.0)
N = 5_000


def instance_set(data: PretrainingData, *, room: Room = ROOM, seed: int = 0, **changes) -> InstanceSet:
    return InstanceSet(data.train, config=replace(PLAIN, **changes), ids=IDS, room=room, seed=seed)


def keys(instances: InstanceSet, n: int) -> list[tuple[int, int]]:
    """The first n (epoch, number)."""
    found, epoch = [], 0
    while len(found) < n:
        found += [(epoch, number) for number in range(len(instances.n_tokens(epoch)))]
        epoch += 1
    return found[:n]


def texts_of(row, vocabulary) -> list[str]:
    """The text of each part, told by its pieces alone."""
    chars = [vocabulary.token(int(i)) for i, s, e in zip(row.ids, row.starts, row.ends, strict=True) if s == e]
    assert chars[0] == "[CLS]" and chars[-1] == "[SEP]"
    return "".join(chars[1:-1]).replace("##", "").split("[SEP]")


def rows_of(parts: list[list[str]], tokenizer: LatticeTokenizer) -> list[tuple[int, ...]]:
    """(id, start, end, type) of [CLS] A [SEP] B [SEP]; a part is one or several stretches of text."""
    expected, position = [(2, 0, 0, 0)], 1
    for kind, stretches in enumerate(parts):
        # No word goes over the end of a line, or over a place where text was cut.
        for line in [line for text in stretches for line in re.findall("[^。]*。|[^。]+", text)]:
            lattice = tokenizer.tokenize(line)
            rows = zip(lattice.ids, lattice.starts + position, lattice.ends + position - 1, strict=True)
            expected += [(*map(int, row), kind) for row in rows]
            position += lattice.n_pieces
        expected.append((3, position, position, kind))
        position += 1
    return expected


def possible_rows(passage: Passage, text: str, label: int, tokenizer: LatticeTokenizer) -> list[list[tuple[int, ...]]]:
    """Every instance that the text of a passage may give with a label."""
    start, end = passage.start, passage.end
    if label == NO_LABEL:
        cuts = passage.document_ends or [start]
        return [rows_of([[t] for t in (text[start:k], text[k:end]) if t], tokenizer) for k in cuts]
    found = []
    edges = [start, *passage.document_ends, end]
    line_ends = [k for k in range(start, end + 1) if not k or text[k - 1] == "。"]
    clause_ends = [k for k in range(start + 1, end + 1) if text[k - 1] == "，"]
    for places in (line_ends, clause_ends):
        for first, last in pairwise(edges):
            own = [place for place in places if first <= place <= last]
            for middle in own[1:-1]:
                before, one, two, after = (text[a:b] for a, b in pairwise([start, own[0], middle, own[-1], end]))
                parts = [[before, two], [one, after]] if label else [[before + one], [two + after]]
                found.append(rows_of(parts, tokenizer))
    return found


def test_instances_are_the_lattices_of_their_text(data: PretrainingData) -> None:
    """Every instance, token for token, from its text and the tokeniser."""
    tokenizer, shard = LatticeTokenizer(data.vocabulary), data.train[0]
    text = "".join(data.vocabulary.token(int(i)) for i in shard.ids[shard.lengths == 1])  # each piece is a character
    instances = instance_set(replace(data, train=[shard]), short_prob=0.2)
    labels = Counter()
    for epoch, number in keys(instances, 300):
        instance, passage = instances.instance(epoch, number), instances.passage(epoch, number)
        row, label = instance.row, instance.sentence_label
        labels[label] += 1
        found = [tuple(map(int, token)) for token in zip(row.ids, row.starts, row.ends, row.types, strict=True)]
        assert found in possible_rows(passage, text, label, tokenizer)
        assert len(found) <= ROOM.n_tokens and found[-1][1] < ROOM.n_characters
    assert {0, 1, NO_LABEL} == set(labels) and abs(labels[0] - labels[1]) < 60


def in_order(data: PretrainingData, **changes) -> Instance:
    """The first instance, by the first seed that does not swap its parts."""
    found = (instance_set(data, seed=seed, **changes).instance(0, 0) for seed in range(20))
    return next(instance for instance in found if instance.sentence_label == 0)


def test_segments_and_words_of_the_paper_example(tmp_path) -> None:
    text = "研究生活很充实\n北京大学生"
    data = open_data(tiny_corpus.data_folder(tmp_path, text=text, held_out=0, segment_words=True))
    instance = in_order(data)
    tokens = [data.vocabulary.token(int(i)) for i in instance.row.ids]
    by_segment: dict[int, list[str]] = {}
    for token, segment in zip(tokens, instance.segments.tolist(), strict=True):
        by_segment.setdefault(segment, []).append(token)
    assert by_segment.pop(-1) == ["[CLS]", "[SEP]", "[SEP]"]
    assert list(by_segment.values()) == [
        ["研", "究", "研究", "生", "研究生", "活", "生活"],
        ["很", "充", "实", "充实", "很充实"],
        ["北", "京", "北京", "大", "学", "大学", "北京大学", "生", "学生"],
    ]
    found = in_order(data, use_words=False)
    assert "".join(data.vocabulary.token(int(i)) for i in found.row.ids) == "[CLS]研究生活很充实[SEP]北京大学生[SEP]"
    assert found.row.starts.tolist() == found.row.ends.tolist() == list(range(15))
    # jieba: 研究 / 生活 / 很 / 充实, 北京 / 大学生
    assert found.words.tolist() == [-1, 0, 0, 1, 1, 2, 3, 3, -1, 4, 4, 5, 5, 5, -1]


def test_models_with_and_without_words_read_the_same_text(data: PretrainingData) -> None:
    with_words, without = instance_set(data), instance_set(data, use_words=False, masking="words")
    for epoch, number in keys(with_words, 60):
        a, b = with_words.instance(epoch, number), without.instance(epoch, number)
        assert texts_of(a.row, data.vocabulary) == texts_of(b.row, data.vocabulary)
        assert a.sentence_label == b.sentence_label and (b.row.starts == b.row.ends).all()


def check_masking(plain: Instance, masked: MaskedInstance, groups: np.ndarray, masking: str) -> None:
    ids, positions = plain.row.ids, masked.positions
    assert (masked.targets == ids[positions]).all() and (np.diff(positions) > 0).all()
    untouched = np.ones(len(ids), bool)
    untouched[positions] = False
    assert (masked.row.ids[untouched] == ids[untouched]).all()
    assert not (plain.words[positions] == NO_GROUP).any()
    expected = {"segments": plain.segments, "words": plain.words, "tokens": np.arange(len(ids))}[masking]
    is_special = plain.words == NO_GROUP
    assert (groups == np.where(is_special, NO_GROUP, expected)).all()
    assert not np.isin(groups[untouched], groups[positions]).any()


@pytest.mark.parametrize("selection", ["even", "within_budget"])
@pytest.mark.parametrize("masking", ["segments", "tokens", "words"])
def test_masking_statistics_of_many_instances(data: PretrainingData, masking: str, selection: str) -> None:
    settings = {"masking": masking, "use_words": masking != "words", "mask_selection": selection}
    instances = instance_set(data, **settings)
    n_tokens = n_selected = n_masked = n_kept = n_budget = 0
    by_place = np.zeros(10)
    for seen, key in enumerate(keys(instances, N // 4)):
        masked = instances.masked(*key)
        ids, positions = masked.row.ids, masked.positions
        if seen < 500:
            plain = instances.instance(*key)
            check_masking(plain, masked, instances.groups(plain), masking)
        n_tokens += len(ids)
        n_selected += len(positions)
        n_budget += budget(len(ids), 0.15)
        n_masked += int((ids[positions] == IDS.mask_id).sum())
        n_kept += int((ids[positions] == masked.targets).sum())
        by_place += np.bincount(positions * 10 // len(ids), minlength=10)
        assert selection == "even" or len(positions) <= budget(len(ids), 0.15)
    if selection == "even":
        assert abs(n_selected / n_budget - 1) < 0.02
    else:
        assert 0.11 < n_selected / n_tokens < 0.155 and n_selected / n_budget > 0.75
    assert abs(n_masked / n_selected - 0.8 - 0.1 / IDS.n_ids) < 0.015
    assert abs(n_kept / n_selected - 0.1 - 0.1 / IDS.n_ids) < 0.015
    middle = by_place[1:9]  # the ends hold [CLS] and [SEP]
    assert middle.min() > 0.75 * middle.max()


def test_sentence_labels_of_thousands_of_instances(data: PretrainingData) -> None:
    order, three_way = instance_set(data), instance_set(data, sentence_task="three_way")
    counts = Counter(order.instance(*key).sentence_label for key in keys(order, N))
    assert abs(counts[0] - counts[1]) < 4 * np.sqrt(N)
    corpus = "".join(
        data.vocabulary.token(int(i)) for shard in data.train for i in shard.ids[shard.lengths == 1]
    ).replace("##", "")
    labels, is_as_in_the_text = Counter(), Counter()
    for key in keys(three_way, N):
        instance = three_way.instance(*key)
        labels[instance.sentence_label] += 1
        if sum(labels.values()) <= 300:
            parts = texts_of(instance.row, data.vocabulary)
            is_as_in_the_text[instance.sentence_label, "".join(parts) in corpus] += 1
        assert len(instance.row.ids) <= ROOM.n_tokens and instance.row.ends[-1] < ROOM.n_characters
    assert abs(labels[1] - labels[2]) < 4 * np.sqrt(N)
    assert labels[0] > 0.3 * N and labels[NO_LABEL] < 0.2 * N
    assert {(0, False), (1, True), (2, False)} <= set(is_as_in_the_text)
    assert not {(1, False), (2, True)} & set(is_as_in_the_text)


def test_the_second_text_of_label_0_is_of_another_document(data: PretrainingData) -> None:
    instances = instance_set(data, sentence_task="three_way")
    corpus = (data.folder.parent / "corpus.txt").read_text(encoding="utf-8")
    documents = [document.replace("\n", "") for document in corpus.split("\n\n")]
    n_seen = 0
    for key in keys(instances, 600):
        instance, passage = instances.instance(*key), instances.passage(*key)
        if instance.sentence_label == 0 and not passage.document_ends:
            first, second = texts_of(instance.row, data.vocabulary)
            n_seen += 1
            if len(first) < 8:
                continue  # the other document may hold so short a text too
            assert len(first) == passage.end - passage.start
            assert any(second in document and first not in document for document in documents), (first, second)
    assert n_seen > 50


def test_an_instance_depends_on_seed_epoch_and_number_alone(data: PretrainingData) -> None:
    a, b = instance_set(data, short_prob=0.3), instance_set(data, short_prob=0.3)
    wanted = keys(a, 100)
    forwards = [a.masked(*key) for key in wanted]
    backwards = [b.masked(*key) for key in reversed(wanted)][::-1]
    for x, y in zip(forwards, backwards, strict=True):
        assert (x.row.ids == y.row.ids).all() and (x.positions == y.positions).all()
        assert x.sentence_label == y.sentence_label
    other = instance_set(data, short_prob=0.3, seed=1)
    assert any(len(other.masked(*key).row.ids) != len(x.row.ids) for key, x in zip(wanted, forwards, strict=True))
    first, second = a.masked(0, 0), a.masked(1, 0)
    assert len(first.row.ids) != len(second.row.ids) or (first.row.ids != second.row.ids).any()  # masked anew


def test_every_epoch_holds_every_character_once(data: PretrainingData) -> None:
    instances = instance_set(data, short_prob=0.2)
    expected = Counter(int(i) for shard in data.train for i in shard.ids[shard.lengths == 1])
    for epoch in range(3):
        rows = [instances.instance(epoch, k).row for k in range(len(instances.n_tokens(epoch)))]
        found = Counter(int(i) for row in rows for i in row.ids[row.starts == row.ends])
        del found[IDS.cls_id], found[IDS.sep_id]
        assert found == expected


def test_hidden_segments_are_the_same_characters_with_and_without_words(data: PretrainingData) -> None:
    lattice, chars = instance_set(data, masking="tokens"), instance_set(data, use_words=False, masking="words")
    n_same = 0
    for key in keys(lattice, 80):
        plain, hidden = lattice.instance(*key), lattice.hidden(*key)
        assert (hidden.row.ids[hidden.positions] == IDS.mask_id).all()
        selected = np.zeros(len(plain.segments), bool)
        selected[hidden.positions] = True
        assert not np.isin(plain.segments[~selected], plain.segments[selected]).any()
        other = chars.hidden(*key)
        assert (other.row.ids[other.positions] == IDS.mask_id).all()
        kept = plain.segments[plain.row.starts == plain.row.ends]
        assert (chars.instance(*key).segments == kept).all()
        n_same += set(hidden.row.starts[hidden.positions]) >= set(other.row.starts[other.positions])
    assert n_same > 0


def test_windows_read_every_instance_once_an_epoch(data: PretrainingData) -> None:
    """As many rounds as windows, each of other shards, which are drawn anew in each epoch."""
    ids = TokenIds.of(data.vocabulary, use_words=True)
    settings = {"config": InstanceConfig(short_prob=0.0), "ids": ids, "room": Room(48, 65), "seed": 4}
    whole, made = InstanceSet(data.train, **settings), InstanceSet(data.train, **settings, window=2)
    n_shards = len(data.train)
    assert whole.rounds_per_epoch == 1 and made.rounds_per_epoch == -(-n_shards // 2) > 1
    everything = sorted(whole.n_tokens(0).tolist())
    seen = []
    for epoch in range(6):
        rounds = range(epoch * made.rounds_per_epoch, (epoch + 1) * made.rounds_per_epoch)
        assert sorted(n for round in rounds for n in made.n_tokens(round).tolist()) == everything
        seen.append([made._shards_of(round) for round in rounds])
        assert sorted(shard for window in seen[-1] for shard in window) == list(range(n_shards))
    assert any(windows != seen[0] for windows in seen)
    first = made.masked(1, 3)
    made.n_tokens(4)
    again = made.masked(1, 3)
    assert (first.row.ids == again.row.ids).all() and (first.targets == again.targets).all()


def test_shards_are_opened_when_they_are_read(data_folder: Path, tmp_path: Path, monkeypatch) -> None:
    own = tmp_path / "data"
    shutil.copytree(data_folder, own)
    path = own / "shard-00001/ids.npy"
    path.write_bytes(path.read_bytes()[:-4] + b"\1\0\0\0")  # as long as it was, and an id
    monkeypatch.setattr("cige.lattice_bert.pretraining.shards.MOST_OPEN", 2)
    shards = open_data(own, check_contents=False, check_as_opened=True).train
    with pytest.raises(DataError, match=r"ids.npy.*contents differ"):
        shards[1]
    for _ in range(2):
        assert all(len(shards[k].ids) for k in range(len(shards)) if k != 1)
    assert len(shards._open) == 2 and len(pickle.loads(pickle.dumps(shards))) == len(shards)
    assert open_data(own, check_contents=False).train[1].word_starts.any()  # what was not to be checked
