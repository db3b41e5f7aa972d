"""What is said of the instances of some data, against data in which it can be counted by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from generated_shards import plain, shard_of

from cige.lattice_bert.pretraining.census import census, long_documents
from cige.lattice_bert.pretraining.dataset import InstanceConfig, InstanceSet, TokenIds
from cige.lattice_bert.pretraining.packing import Room

IDS = TokenIds(cls_id=2, sep_id=3, mask_id=4, n_ids=1000)


def instances_of(*shards) -> InstanceSet:
    config = InstanceConfig(short_prob=0.0, masking="tokens")
    return InstanceSet(shards, config=config, ids=IDS, room=Room(23, 46), seed=0)


def test_every_second_instance_is_asked() -> None:
    # Twenty characters: two lines of one document, then two documents of one line.
    found = census(instances_of(plain(*[[10, 10], [10], [10]] * 50)))
    assert (found.n_instances, found.n_seen, found.most_tokens) == (100, 100, 23)
    assert (found.with_label, found.in_one_document, found.with_label_of_these) == (0.5, 0.5, 1.0)
    assert found.n_characters == found.n_tokens == 23


def test_parts_without_a_label_count_their_one_sep() -> None:
    found = census(instances_of(plain(*[[20]] * 4)))
    assert (found.n_characters, found.with_label, found.in_one_document, found.with_label_of_these) == (22, 0, 1, 0)


def test_a_sample_is_of_the_asked_size() -> None:
    instances = instances_of(plain([10] * 200))
    found = census(instances, n_most=30)
    assert (found.n_instances, found.n_seen) == (100, 30)
    assert replace(census(instances, n_most=30), n_seen=30) == found


def test_what_is_masked_is_counted_by_its_length() -> None:
    # A word over every second two characters: in each line, five segments of three tokens and five of one.
    line = (15, [(3 * k, 2) for k in range(5)])
    shard = shard_of([[line, line]] * 300)
    config = InstanceConfig(short_prob=0.0)
    found = census(InstanceSet([shard], config=config, ids=IDS, room=Room(33, 66), seed=0))
    assert {length: n for length, (n, _) in found.masked_by_length.items()} == {"1": 3000, "3-4": 3000}
    assert abs(found.masked - 6 / 43) < 0.005  # 40 tokens and three special ones have a budget of six
    assert all(abs(share - 0.15) < 0.02 for _, share in found.masked_by_length.values())


def test_long_documents() -> None:
    share, held = long_documents([plain([10, 10], [5]), plain([30], [15])], 20)
    assert (share, held) == (0.5, pytest.approx(50 / 70))
