"""Each benchmark measures what it says, on inputs that take no time."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest
import tiny
import torch

from benchmarks.measure import megabytes
from benchmarks.parts.forms import load_forms
from benchmarks.speed import crf, kept, lattice, models, onnx, predict, rivals, runtime, train
from cige.runtime import native
from cige.training.recipe import load_recipe


def test_the_forms_of_the_crf_are_compared_only_if_they_agree(monkeypatch):
    result = crf.bench(rounds=1, lengths=(2, 7))
    assert [found["n_chars"] for found in result["cases"]] == [2, 7] and result["n_tags"] == 33
    assert {"log Z, scan_ms", "best tags, shipped_ms", "marginals, one by one_ms"} <= result["cases"][0].keys()
    scan = crf.log_z_by_scan
    monkeypatch.setattr(crf, "log_z_by_scan", lambda *given: scan(*given) * 1.01)
    with pytest.raises(AssertionError):
        crf.bench(rounds=1, lengths=(7,))


def test_the_operations_of_a_model_are_those_of_its_products():
    batches = [SimpleNamespace(chars=np.zeros((2, 5))), SimpleNamespace(chars=np.zeros((1, 7)))]
    layer = torch.nn.Linear(3, 4)
    found = models.n_operations(lambda batch: layer(torch.ones(*batch.chars.shape, 3)), batches)
    assert found == 2 * 3 * 4 * (2 * 5 + 7) / 3  # a product and a sum for each weight and character, per sentence


def test_each_stage_of_a_lattice_is_timed():
    model = tiny.model()
    texts = [s.text for s in tiny.sentences(20)]
    found = lattice.case(model.lexicon, model.vocabulary, texts, n_rounds=1)
    assert found["n_words"] == len(tiny.WORDS) and found["words_a_character"] > 0
    assert all(found[f"{stage}_us"] > 0 for stage in ("match", "lattice", "rows", "batch"))


def test_every_runtime_predicts_the_same_file(tmp_path):
    model = tiny.model()
    model.save(tmp_path / "model")
    ners = load_forms(tmp_path / "model", onnx.FORMS, tmp_path)
    texts = [s.text for s in tiny.sentences(9)]
    source = tmp_path / "texts.txt"
    source.write_text("\n".join(texts), encoding="utf-8")
    found = {}
    for name, ner in ners.items():
        onnx.predict_file(ner, source, tmp_path / "found", batch_size=4)
        found[name] = (tmp_path / "found").read_text(encoding="utf-8").splitlines()
        assert len(found[name]) == 9
    one = model.lattices(texts[:1])
    literal, shipped = (ners[name].model.emissions(one) for name in ("literal", "torch"))
    np.testing.assert_allclose(literal, shipped, atol=1e-4)
    speeds = onnx.speeds(ners, texts, tmp_path, batch_size=4, n_rounds=1)
    assert {"torch", "onnx_ratio", "int8_processor", "literal_processor"} <= speeds.keys()
    stages = onnx.stages(ners["onnx"], texts, batch_size=4, n_rounds=1)
    assert list(stages) == ["match and lattice", "rows of the tables", "padding", "network", "CRF"]


@pytest.mark.skipif(native.load() is None, reason="cige was installed without a C compiler")
def test_the_forms_of_a_model_read_the_same_texts(tmp_path):
    tiny.model().save(tmp_path / "model")
    ners = load_forms(tmp_path / "model", ("native", "numpy", "torch"))
    texts = [s.text for s in tiny.sentences(9)]
    found = [[[(e.start, e.end, e.label) for e in x] for x in ner.pipe(texts)] for ner in ners.values()]
    assert found[0] == found[1] == found[2]
    speeds = runtime.speeds(ners, texts, batch_size=4, n_rounds=1)
    assert {"native", "numpy_processor", "native_to_torch"} <= speeds.keys() and all(x > 0 for x in speeds.values())
    stages = runtime.stages(ners["native"], texts, batch_size=4, n_rounds=1)
    assert list(stages) == ["windows and match", "look-up", "encoder", "CRF", "match to spans", "all"]
    assert {"float32", "numpy product", "large product"} <= runtime.products(n_rounds=1)[0].keys()


def test_rivals_take_turns():
    class Clock:
        def __init__(self, name, seconds):
            self.name, self.seconds, self.taken, self.asked = name, seconds, 0.0, []

        def read(self, texts, batch_size):
            self.taken += self.seconds
            self.asked.append(batch_size)

        def processor_seconds(self):
            return self.taken

    fast, slow = Clock("fast", 2.0), Clock("slow", 6.0)
    rows = rivals.races((fast, slow), {"some": ["北京", "上海市"]}, n_rounds=2)
    assert [row["batch_size"] for row in rows] == [1, 32] and fast.asked == slow.asked == [1] * 3 + [32] * 3
    expected = {"fast": 2.5, "slow": 5 / 6, "/ slow": 3.0, "/ slow, lowest": 3.0}
    assert all(row | expected == row for row in rows)


def test_starts_are_those_of_processes_of_their_own():
    quick, large = rivals.bench_starts(
        {"quick": (sys.executable, "pass"), "large": (sys.executable, "x = b'x' * 200_000_000")}, n_starts=1
    )
    assert large["megabytes"] > 190 + quick["megabytes"] / 2 and quick["processor seconds"] > 0


@pytest.mark.skipif(native.load() is None, reason="cige was installed without a C compiler")
def test_memory_of_a_prediction_is_that_of_its_process_alone(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("OMP_NUM_THREADS", "1,2")
    tiny.model().save(tmp_path / "model")
    found = predict.bench(model=str(tmp_path / "model"), n_chars=100, rounds=1)
    assert 10 < found["first_mb"] <= found["sentences_mb"] <= found["long_text_mb"] < megabytes()["VmHWM"] / 2
    assert found["environment"]["threads"] == 1 and found["seconds_to_first_answer"] > 0


def test_padding_is_counted_as_it_is_computed():
    n_nodes = np.array([10, 20, 30, 40], np.int64)
    recipe = load_recipe("weibo/flat", ["batches.batch_size=2"])
    plan = train.plan_of(recipe, n_nodes, pool_batches=2)
    assert sorted(map(sorted, plan.batches(0))) == [[0, 1], [2, 3]]
    assert train.padded_nodes(plan, n_nodes) == pytest.approx(1 - 100 / (2 * 20 + 2 * 40))
    assert plan.padding_share() == pytest.approx(1 - (100 + 400 + 900 + 1600) / (2 * 400 + 2 * 1600))


def test_memory_is_that_of_a_fresh_process(monkeypatch):
    assert train.added_bytes(4, 150, "shipped") > 1_000_000
    monkeypatch.setattr(train, "added_bytes", lambda *given: 2e6 if given[2] == "shipped" else 8e6)
    small, large = train.bench_memory(((2, 60), (8, 500)))
    assert small["n_pairs"] == 7200 and small["predicted_mb"] == pytest.approx(1.8)
    assert (small["shipped_mb"], small["literal_mb"], small["ratio"]) == (2.0, 8.0, 4.0)
    assert large["literal_mb"] is large["ratio"] is None, "more than the literal form has memory for"


def test_steps_with_kept_memory_are_compared_with_others(monkeypatch):
    monkeypatch.setattr(kept, "N_PASSES", 1)
    monkeypatch.setattr(kept, "use_threads", lambda n: None)
    found = kept.run_passes("bilstm_crf", "given back")
    assert found["seconds"] > 0 and found["bytes"] > 10e6
    taken = {"kept": {"seconds": 0.1, "bytes": 2e6}, "given back": {"seconds": 0.15, "bytes": 1e6}}
    monkeypatch.setattr(kept, "in_process", lambda run, name, way: taken[way])
    (row,) = kept.bench(["flat"], rounds=2)
    assert row["times as fast"] == pytest.approx(1.5) and row["kept, ms"] == pytest.approx(100)
