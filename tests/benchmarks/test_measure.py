"""Turns, medians, tables and JSON of the benchmarks."""

import json

from benchmarks import measure


def test_ways_take_turns_and_the_first_is_for_warming_up():
    order = []
    taken = measure.in_turns({"a": lambda: order.append("a"), "b": lambda: order.append("b")}, n_rounds=2)
    assert order == ["a", "b"] * 3
    assert taken.keys() == {"a", "b"} and all(t.clock >= 0 and t.processor >= 0 for t in taken.values())


def test_the_median_counts(monkeypatch):
    clock = iter([0, 100, 0, 1, 0, 9, 0, 3])  # warm-up 100, then 1, 9, 3
    monkeypatch.setattr(measure.time, "perf_counter", lambda: next(clock))
    assert measure.in_turns({"a": lambda: None}, n_rounds=3)["a"].clock == 3


def test_results_name_what_they_were_measured_on(tmp_path):
    facts = measure.environment(threads=3, n_rounds=5)
    assert facts["threads"] == 3 and facts["rounds"] == 5 and facts["numpy"] and facts["torch"]
    measure.write({"environment": facts, "cases": [{"ms": 1.23456, "n": 7, "none": None}]}, str(tmp_path / "r.json"))
    found = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
    assert found == {"environment": facts, "cases": [{"ms": 1.235, "n": 7, "none": None}]}
    measure.write({}, None)


def test_a_table_has_a_column_for_each_key(capsys):
    measure.report("title", [{"name": "x", "some_ms": 1234.5, "n": 2}, {"name": "y", "some_ms": None, "n": 3}])
    out = capsys.readouterr().out
    assert "some ms" in out and "1,234" in out and "y" in out


def test_earlier_results_are_without_the_machine(tmp_path):
    assert measure.earlier(None) == measure.earlier(tmp_path / "none.json") == {}
    measure.write({"environment": {"cores": 2}, "sets": {"a": [1]}}, tmp_path / "r.json")
    assert measure.earlier(tmp_path / "r.json") == {"sets": {"a": [1]}}
