"""The benchmarks of `cige annotate`, on inputs that take little time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import benchmarks
import cige
from benchmarks.speed import bulk

SOURCE = Path(cige.__file__).parents[1]
ROOT = Path(benchmarks.__file__).parents[1]


def test_a_way_is_compared_with_the_plain_loop(tmp_path):
    source, result = tmp_path / "texts.txt", tmp_path / "result.json"
    source.write_text("张桂梅在云南华坪创办女子高中\n" * 40, encoding="utf-8")
    options = ["engines", "--input", source, "--rows", "30", "--ways", "plain", "--json", result]
    command = [sys.executable, "-m", "benchmarks", *options]
    subprocess.run(command, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(SOURCE)}, check=True)
    found = json.loads(result.read_text(encoding="utf-8"))
    (plain,) = found["cases"]
    assert found["n_sentences"] == 30 and plain["over_plain"] == 0
    assert plain["start_s"] > 0
    assert plain["reading_s"] == pytest.approx(plain["clock_s"] - plain["start_s"], abs=0.01)


def test_the_memory_of_a_lexicon_is_measured_in_every_process(tmp_path):
    found = bulk.bench(processes=1, texts=2, make_lexicon=300)
    assert found["n_words"] == 300
    assert [case["stage"] for case in found["cases"]] == ["imported", "lexicon open", "2 texts read"]
    assert all(0 < case["own_mb"] <= case["resident_mb"] for case in found["cases"])
