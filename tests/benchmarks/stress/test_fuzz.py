"""Damaged input: each reader is given its sound files, what once went wrong, and some damage by chance."""

import random

import pytest

from benchmarks.parts import odd_files
from benchmarks.parts import targets as fuzz_targets
from benchmarks.parts.odd_texts import scratch
from benchmarks.stress import fuzz
from cige.errors import CigeError

N_DAMAGED = 15


@pytest.fixture(scope="module")
def found():
    with scratch() as folder:
        yield fuzz_targets.targets(folder)


def names():
    """The names alone, without a sound DocBin, for which every process that collects tests would import spaCy."""
    with scratch() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(odd_files, "docbin", bytes)
        return list(fuzz_targets.targets(folder))


@pytest.mark.filterwarnings("ignore::cige.data.sentence.RepairWarning")
@pytest.mark.parametrize("name", names())
def test_damage_is_told_or_read(found, name):
    target, rng = found[name], random.Random(name)
    others = [seed for other in found.values() for seed in other.seeds]
    for content in (*target.seeds, *(fuzz.next_input(target, others, rng) for _ in range(N_DAMAGED))):
        fuzz_targets.run(target, content)


def test_what_no_user_can_mend_is_a_fault_and_its_input_is_kept(tmp_path, capsys):
    def read(content):
        if b"\xff" in content:
            raise KeyError("a fault")

    faults = fuzz.fuzz({"x": fuzz_targets.Target(read, (b"sound", b"\xff"))}, 0, 0, tmp_path)  # at least one turn
    assert faults == 1 and "KeyError: 'a fault'" in capsys.readouterr().out
    assert b"\xff" in next(tmp_path.iterdir()).read_bytes()


def test_the_same_seed_gives_the_same_inputs():
    first, second = (
        [fuzz.damaged(b"sound file", [b"other"], rng) for _ in range(20)] for rng in map(random.Random, (3, 3))
    )
    assert first == second and len(set(first)) > 15


def test_odd_files_have_the_right_form(found):
    """Most odd files are refused for their values, and some of them are read."""
    n_read = dict.fromkeys(("parquet", "brat", "jsonl", "doccano", "label-studio", "docbin"), 0)
    for name in n_read:
        if f"documents-{name}" not in found:
            pytest.skip(f"{name} cannot be read here")
        target, rng = found[f"documents-{name}"], random.Random(name)
        for _ in range(60):
            try:
                target.read(target.made(rng))
                n_read[name] += 1
            except CigeError as told:
                assert "not JSON" not in str(told)
    assert all(1 <= n < 60 for n in n_read.values()), n_read


def test_memory_that_an_input_takes_is_a_fault(tmp_path, monkeypatch, capsys):
    peaks = iter(range(0, 1 << 40, 1 << 10))
    monkeypatch.setattr(fuzz, "peak_mb", lambda: next(peaks))
    target = fuzz_targets.Target(lambda content: None, (b"sound",))
    assert fuzz.fuzz({"x": target}, 0, 0, tmp_path) == 1
    assert "1,024 MB more memory" in capsys.readouterr().out
