"""Figures are drawn from results, and a result that is no result is told."""

import json

import pytest

figures = pytest.importorskip("benchmarks.figures", reason="needs matplotlib")

SPEEDS = {way: 10.0 for way in figures.WAYS}
RESULTS = {
    "onnx": {
        "by_batch": [{"batch_size": n, **SPEEDS} for n in (1, 2)],
        "by_length": [{"n_chars": 25, **SPEEDS}, {"n_chars": 50, "torch": 3.0}],
    },
    "train": {
        "memory": [
            {"n_sentences": 8, "n_nodes": n, "predicted_mb": 1.0, "shipped_mb": 2.0, "literal_mb": big}
            for n, big in ((50, 9.0), (100, None))
        ]
    },
    "suggest": {
        "sets": {
            "resume": {
                "n_pool": 90,
                "full": {"1": 0.9},
                "curves": {
                    "random": {"1": [{"sentences": n, "f1": n / 100} for n in (20, 40, 80)]},
                    "both": {"1": [{"sentences": n, "f1": n / 50} for n in (20, 40)]},
                },
            }
        }
    },
    "crf": {
        "cases": [
            {"n_chars": n, "log Z, scan_ms": 2.0, "best tags, shipped_ms": 1.0, "marginals, x_ms": 1.0}
            for n in (25, 50)
        ]
    },
}


def test_each_result_gives_its_figures(tmp_path):
    for name, result in RESULTS.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(result), encoding="utf-8")
    drawn, left_out = figures.draw_figures(tmp_path, tmp_path / "figures")
    assert left_out == ["lexicon_by_size"]
    assert len(drawn) == 2 * (len(figures.FIGURES) - 1) and all(path.stat().st_size > 5000 for path in drawn)
    svg = next(path for path in drawn if path.name == "speed_by_batch.svg")
    before = svg.read_bytes()
    figures.draw_figures(tmp_path, tmp_path / "figures")
    assert svg.read_bytes() == before, "the same result gives the same file"


def test_what_is_no_result_is_told(tmp_path):
    (tmp_path / "crf.json").write_text("{}", encoding="utf-8")
    with pytest.raises(figures.CigeError, match=r"crf.json: not a result of the benchmark crf"):
        figures.draw_figures(tmp_path, tmp_path / "figures")
