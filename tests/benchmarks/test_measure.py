"""Turns, medians, tables and JSON of the benchmarks."""

import json
import os

import pytest
from disks import full_disk

from benchmarks import measure


def test_ways_take_turns_and_the_first_is_for_warming_up():
    order = []
    taken = measure.in_turns({"a": lambda: order.append("a"), "b": lambda: order.append("b")}, n_rounds=2)
    assert order == ["a", "b"] * 3
    assert taken.keys() == {"a", "b"} and all(t.clock >= 0 and t.processor >= 0 for t in taken.values())


def test_the_median_of_what_passed_counts(monkeypatch):
    clock = iter([0, 100, 200, 201, 300, 309, 400, 403])  # warm-up 100, then 1, 9, 3
    processor = iter([0, 50, 60, 60.5, 70, 71, 80, 84])
    monkeypatch.setattr(measure.time, "perf_counter", lambda: next(clock))
    monkeypatch.setattr(measure.time, "process_time", lambda: next(processor))
    taken = measure.in_turns({"a": lambda: None}, n_rounds=3)["a"]
    assert (taken.clocks, taken.clock) == ((1, 9, 3), 3) and (taken.processors, taken.processor) == ((0.5, 1, 4), 1)


def test_a_call_is_timed(monkeypatch):
    for name, ticks in (("perf_counter", [5, 7]), ("process_time", [2, 2.5])):
        monkeypatch.setattr(measure.time, name, iter(ticks).__next__)
    assert measure.seconds_of(lambda: None) == (2, 0.5)


def test_the_seconds_of_another_process_are_asked_for():
    used = iter([1, 2, 10, 14])
    taken = measure.in_turns({"a": lambda: None}, n_rounds=1, processors={"a": lambda: next(used)})
    assert taken["a"].processors == (4,)


def test_ratios_are_those_of_each_round():
    slow, fast = measure.Timing((8, 6), (4, 9)), measure.Timing((2, 3), (2, 3))
    assert slow.ratios(fast) == [2, 3] and slow.ratios(fast, clock=True) == [4, 2]


def test_a_fresh_process_has_one_thread_and_the_variables(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert measure.in_process(os.getenv, "OMP_NUM_THREADS") == "1" and os.environ["OMP_NUM_THREADS"] == "3"
    assert measure.in_process(os.getenv, "CIGE_KERNELS", CIGE_KERNELS="off") == "off"


def test_sizes_are_megabytes(monkeypatch):
    monkeypatch.setattr(measure.Path, "read_text", lambda path, encoding: "Name:\tx\nVmHWM:\t  2048 kB\nThreads:\t1\n")
    assert measure.megabytes() == {"VmHWM": 2.0}


def test_results_name_what_they_were_measured_on(tmp_path):
    facts = measure.environment(threads=3, n_rounds=5)
    assert facts["threads"] == 3 and facts["rounds"] == 5 and facts["numpy"] and facts["torch"]
    measure.write({"environment": facts, "cases": [{"ms": 1.23456, "n": 7, "none": None}]}, str(tmp_path / "r.json"))
    found = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
    assert found == {"environment": facts, "cases": [{"ms": 1.235, "n": 7, "none": None}]}
    measure.write({}, None)


def test_a_table_has_a_column_for_each_key(capsys):
    measure.report("title", [{"name": "x", "some_ms": 1234.5, "n": 2}, {"name": "y", "some_ms": None, "n": 3}])
    shown = [line.split() for line in capsys.readouterr().out.splitlines() if line.strip()]
    assert shown[:2] == [["title"], ["name", "some", "ms", "n"]] and shown[3:] == [["x", "1,234", "2"], ["y", "3"]]
    row = {"n_texts": 12345, "small": 0.012345, "large": -1234.5, "hundred": 99.96, "none": None}
    assert measure.line(row) == "n texts 12,345, small 0.0123, large -1,234, hundred 100, none "


def test_earlier_results_are_without_the_machine(tmp_path):
    assert measure.earlier(None) == measure.earlier(tmp_path / "none.json") == {}
    measure.write({"environment": {"cores": 2}, "sets": {"a": [1]}}, tmp_path / "r.json")
    assert measure.earlier(tmp_path / "r.json") == {"sets": {"a": [1]}}


def test_earlier_results_are_there_still_if_the_disk_is_full(tmp_path, monkeypatch):
    measure.write({"sets": {"a": [1]}}, tmp_path / "r.json")
    monkeypatch.setattr(measure.os, "fsync", full_disk)
    with pytest.raises(OSError, match="No space left"):
        measure.write({"sets": {"a": [1, 2]}}, tmp_path / "r.json")
    assert measure.earlier(tmp_path / "r.json") == {"sets": {"a": [1]}}
