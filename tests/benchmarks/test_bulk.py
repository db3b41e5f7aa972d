"""The benchmarks of `cige annotate`, on inputs that take little time."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import bench_bulk
import bench_kills
import pytest

import cige

SOURCE = Path(cige.__file__).parents[1]


def test_a_killed_job_is_given_again_and_compared(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(SOURCE))
    source = tmp_path / "texts.txt"
    source.write_text("张桂梅在云南华坪创办女子高中\n" * 40, encoding="utf-8")
    with open(tmp_path / "log", "wb") as log:
        bench = bench_kills.Bench(source, "local", 1, 2, (bench_kills.JOB,), log)
        expected = bench.undisturbed(tmp_path / "undisturbed")
        found = bench.killed(tmp_path / "killed", expected, 1, random.Random(0))
        assert not found.differences and found.n_commands == 1 + found.kills[bench_kills.JOB]
        damaged = expected | {"data/part-000003.jsonl": "another", "data/part-000099.jsonl": "none"}
        again = bench.killed(tmp_path / "killed", damaged, 1, random.Random(0))
    assert again.differences == ["data/part-000003.jsonl", "data/part-000099.jsonl"]


def test_a_way_is_compared_with_the_plain_loop(tmp_path):
    source, result = tmp_path / "texts.txt", tmp_path / "result.json"
    source.write_text("张桂梅在云南华坪创办女子高中\n" * 40, encoding="utf-8")
    script = SOURCE.parent / "benchmarks" / "bench_engines.py"
    options = ["--input", source, "--rows", "30", "--ways", "plain", "--json", result]
    subprocess.run([sys.executable, script, *options], env=os.environ | {"PYTHONPATH": str(SOURCE)}, check=True)
    found = json.loads(result.read_text(encoding="utf-8"))
    (plain,) = found["cases"]
    assert found["n_sentences"] == 30 and plain["over_plain"] == 0
    assert plain["start_s"] > 0
    assert plain["reading_s"] == pytest.approx(plain["clock_s"] - plain["start_s"], abs=0.01)


def test_the_memory_of_a_lexicon_is_measured_in_every_process(tmp_path):
    folder = bench_bulk.make_lexicon(str(tmp_path / "lexicon"), 300)
    found = bench_bulk.bench_bulk(n_processes=1, n_texts=2, lexicon=folder)
    assert [case["stage"] for case in found["cases"]] == ["imported", "lexicon open", "2 texts read"]
    assert all(0 < case["own_mb"] <= case["resident_mb"] for case in found["cases"])
