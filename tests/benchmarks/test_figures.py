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


def lines_of(figure):
    """The points of each line by its name, panel by panel."""
    found = [{line.get_label(): line.get_xydata().tolist() for line in axes.lines} for axes in figure.axes]
    figures.plt.close(figure)
    return found


def test_lines_have_the_points_of_their_results():
    names = [name for name, *_ in figures.WAYS.values()]
    assert lines_of(figures.draw_batch(RESULTS["onnx"])) == [{name: [[1, 10], [2, 10]] for name in names}]
    (by_length,) = lines_of(figures.draw_length(RESULTS["onnx"]))
    assert by_length == {name: [[25, 10]] for name in names} | {"cige on PyTorch": [[25, 10], [50, 3]]}
    (memory,) = lines_of(figures.draw_memory(RESULTS["train"]))
    assert [*memory.values()] == [[[50, 9]], [[50, 2], [100, 2]], [[50, 1], [100, 1]]]
    expected = [{name: [[25, ms], [50, ms]]} for name, ms in (("scan", 2), ("shipped", 1), ("x", 1))]
    assert lines_of(figures.draw_crf(RESULTS["crf"])) == expected


def test_the_mean_of_curves_is_of_sizes_that_all_reach():
    curves = {"1": [{"sentences": n, "f1": n / 100} for n in (20, 40)], "2": [{"sentences": 20, "f1": 0.4}]}
    of_set = {"n_pool": 90, "full": {"1": 0.9, "2": 0.7}, "curves": {"random": curves}}
    (lines,) = lines_of(figures.draw_suggest({"sets": {"resume": of_set}}))
    assert lines["random"] == [[20, pytest.approx(30)]]
    assert lines["95% of all sentences"] == [[0, pytest.approx(76)], [1, pytest.approx(76)]]


def test_a_lexicon_is_drawn_by_millions_of_words():
    keys = ("build_processor_s", "build_peak_mb", "used_private_mb", "load_s", "match_mb_per_s")
    row = {"n_words": 3_000_000} | {key: k + 1.0 for k, key in enumerate(keys)}
    panels = [[*lines.values()] for lines in lines_of(figures.draw_lexicon({"sizes": [row]}))]
    assert panels == [[[[3, 1]]], [[[3, 2]], [[3, 3]]], [[[3, 4]]], [[[3, 5]]]]
