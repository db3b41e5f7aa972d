"""Jobs that are killed, on an input that takes little time."""

import random
from pathlib import Path

import cige
from benchmarks.stress import kills

SOURCE = Path(cige.__file__).parents[1]


def test_a_killed_job_is_given_again_and_compared(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(SOURCE))
    source = tmp_path / "texts.txt"
    source.write_text("张桂梅在云南华坪创办女子高中\n" * 40, encoding="utf-8")
    with open(tmp_path / "log", "wb") as log:
        bench = kills.Bench(source, "local", 1, 2, (kills.JOB,), log)
        expected = bench.undisturbed(tmp_path / "undisturbed")
        found = bench.killed(tmp_path / "killed", expected, 1, random.Random(0))
        assert not found.differences and found.n_commands == 1 + found.kills[kills.JOB]
        damaged = expected | {"data/part-000003.jsonl": "another", "data/part-000099.jsonl": "none"}
        again = bench.killed(tmp_path / "killed", damaged, 1, random.Random(0))
    assert again.differences == ["data/part-000003.jsonl", "data/part-000099.jsonl"]
