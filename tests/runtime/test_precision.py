"""The runtime in bfloat16, int8 and int16: against NumPy that rounds alike, against float32, and how one is chosen."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import tiny
import torch
from flat_variants import SMALL, TEXTS, VARIANTS
from runtime_forms import LEVELS

from cige import instruction_sets
from cige.api import NER, load
from cige.errors import ModelError
from cige.models.flat import FlatConfig
from cige.models.soft_lexicon_config import SoftLexiconConfig
from cige.runtime import native
from cige.runtime.flat_numpy import NumpyFlat
from cige.runtime.native_model import NativeModel
from cige.runtime.precision import BFLOAT16, FLOAT32, INT8, INT16, PRECISIONS, available, chosen, to_int16

NARROW = [
    (level, name) for level in LEVELS for name in (BFLOAT16, INT8, INT16) if name in available(native.load(level))
]
MORE = {
    "odd heads": {"n_heads": 3, "head_width": 6, "ff_width": 19},
    "heads of an odd width": {"n_heads": 6, "head_width": 7, "n_layers": 2},
    "one wide head": {"n_heads": 1, "head_width": 38, "n_layers": 2},
    "wide": {"n_heads": 8, "head_width": 20, "ff_width": 480},
    "three layers, bias, masks": {
        "n_layers": 3,
        "position_score": "bias",
        "max_distance": 3,
        "mask_self_matched": True,
    },
}
LONG = "".join(s.text for s in tiny.sentences(12, seed=3))
BATCH = [LONG, *TEXTS, *(s.text for s in tiny.sentences(8, seed=4))]


def saved(folder, **changes):
    """The lattices of some texts, and where a model of random weights is."""
    model = tiny.model(config=FlatConfig(**{**SMALL, **changes}), seed=5)
    torch.manual_seed(1)
    for name, parameter in model.tagger.named_parameters():
        if name.endswith("bias"):
            parameter.data += 0.3 * torch.randn_like(parameter)
    model.lexicon.add("轩辕", "澜沧江", "轩辕澜沧江渊瀚海说话")
    model.save(folder)
    return model.lattices(BATCH)


@pytest.mark.parametrize("changes", (VARIANTS | MORE).values(), ids=(VARIANTS | MORE).keys())
def test_narrow_forms_are_near_float32(tmp_path, changes):
    """To a few roundings of each form; a number read from a wrong place is as far off as emissions are apart."""
    lattices = saved(tmp_path / "model", **changes)
    for level, precision in NARROW:
        exact = NativeModel.load(tmp_path / "model", kernels=level)
        other = NativeModel.load(tmp_path / "model", kernels=level, precision=precision)
        assert (exact.precision, other.precision) == (FLOAT32, precision)
        (expected, shares), (emissions, own) = exact.read_words(lattices), other.read_words(lattices)
        spread, error = expected.std(), np.abs(emissions - expected)
        assert 0 < error.max() < {BFLOAT16: 0.06, INT8: 0.25, INT16: 0.02}[precision] * spread, (level, precision)
        assert np.abs(own - shares).max(initial=0) < 0.02


@pytest.mark.parametrize(("level", "precision"), NARROW)
def test_a_text_is_read_alike_in_any_batch(tmp_path, level, precision):
    lattices = saved(tmp_path / "model", n_layers=2)
    model = NativeModel.load(tmp_path / "model", kernels=level, precision=precision)
    together = model.emissions(lattices)
    for row, lattice in zip(together, lattices, strict=True):
        np.testing.assert_array_equal(model.emissions([lattice])[0, : lattice.n_chars], row[: lattice.n_chars])


@pytest.mark.parametrize(("level", "precision"), NARROW)
@pytest.mark.parametrize("u", [1e4, 8.8e6, 1e10])
def test_large_scores_are_no_overflow(tmp_path, level, precision, u):
    """A share is at most 1, however large the scores are whose difference it is of; there are more than 128 keys."""
    model = tiny.model(config=FlatConfig(**SMALL), seed=5)
    for name, parameter in model.tagger.named_parameters():
        if name.endswith(".u"):
            parameter.data.fill_(u)
    model.save(tmp_path / "model")
    lattices = model.lattices(["李" * 300])
    expected = NativeModel.load(tmp_path / "model", kernels=level, precision=FLOAT32).emissions(lattices)
    emissions = NativeModel.load(tmp_path / "model", kernels=level, precision=precision).emissions(lattices)
    assert np.abs(emissions - expected).max() < 0.1 * expected.std()


def rounded(x: np.ndarray) -> np.ndarray:
    return torch.from_numpy(np.array(x, np.float32)).bfloat16().float().numpy()


def power_of_two(x: np.ndarray) -> np.ndarray:
    """As the compiled forms have it, since what is 1e-4 off is often rounded to another number."""
    whole = np.rint(x)
    r, (c3, c2, c1) = x - whole, np.float32([0.05500902, 0.24221131, 0.69328296])
    power = ((r * c3 + c2) * r + c1) * r + 1
    np.testing.assert_allclose(power, 2.0**r, rtol=1.1e-4)
    return np.ldexp(power, whole.astype(np.int32)).astype(np.float32)


class RoundedFlat(NumpyFlat):
    """FLAT of characters alone, rounded where the compiled form rounds; the rows of characters are float32 there."""

    def _linear(self, x, name):
        if name.endswith("projection") or "layers.0.attention" in name:
            return super()._linear(x, name)
        y = rounded(x) @ rounded(self._weights[f"{name}.weight"]).T
        bias = self._weights.get(f"{name}.bias")
        return y if bias is None else y + bias

    def _of_chars(self, number, position, sentence, relations):
        class Columns:
            n_chars = relations.n_chars

            @staticmethod
            def columns(number, reach):
                return rounded(relations.columns(number, reach))

        return super()._of_chars(number, rounded(position), sentence, Columns)

    def _attend(self, number, query, key, sentence, relations, scale):
        config, name = self._config, f"encoder.layers.{number}.attention"
        query, key = (x.reshape(len(x), config.n_heads, -1).transpose(1, 0, 2) for x in (query, key))
        u, v = (self._weights[f"{name}.{part}"][:, None] * scale for part in "uv")
        score = rounded(query + u) @ rounded(key).transpose(0, 2, 1)
        score += self._of_chars(number, query + v, sentence, relations)
        shares = power_of_two((score - score.max(-1, keepdims=True)) * np.float32(1.44269504))
        return rounded(shares) / shares.sum(-1, keepdims=True)

    def _layer(self, number, x, *more):
        linear = self._linear
        try:  # values are rounded, but not where anything else is made of them
            self._linear = lambda x, name: rounded(linear(x, name)) if name.endswith("value") else linear(x, name)
            return super()._layer(number, x, *more)
        finally:
            del self._linear


class WholeFlat(NumpyFlat):
    """FLAT of characters alone in int16: whole numbers where the compiled form has them, with the scale of each row."""

    def _linear(self, x, name):
        if name.endswith("projection") or "layers.0.attention" in name:
            return super()._linear(x, name)
        y = whole(x) @ whole(self._weights[f"{name}.weight"]).T
        bias = self._weights.get(f"{name}.bias")
        return (y if bias is None else y + bias).astype(np.float32)

    def _of_chars(self, number, position, sentence, relations):
        class Columns:
            n_chars = relations.n_chars

            @staticmethod
            def columns(number, reach):
                return whole(relations.columns(number, reach).T).T

        return super()._of_chars(number, whole_rows(position), sentence, Columns)

    def _attend(self, number, query, key, sentence, relations, scale):
        config, name = self._config, f"encoder.layers.{number}.attention"
        query, key = (x.reshape(len(x), config.n_heads, -1).transpose(1, 0, 2) for x in (query, key))
        u, v = (self._weights[f"{name}.{part}"][:, None] * scale for part in "uv")
        score = whole_rows(query + u) @ whole_rows(key).transpose(0, 2, 1)
        score += self._of_chars(number, query + v, sentence, relations)
        shares = np.rint(2**13 * power_of_two((score - score.max(-1, keepdims=True)) * np.float32(1.44269504)))
        return (shares / shares.sum(-1, keepdims=True)).astype(np.float32)

    def _layer(self, number, x, n_asking, batch, *more):
        def linear(x, name, plain=self._linear):
            y = plain(x, name)
            if name.endswith("value"):  # a scale for each column of each sentence
                for chars, _ in batch.bounds:
                    y[chars.start : chars.stop] = whole(y[chars.start : chars.stop].T).T
            return y

        try:
            self._linear = linear
            return super()._layer(number, x, n_asking, batch, *more)
        finally:
            del self._linear


def whole(x: np.ndarray) -> np.ndarray:
    numbers, scales = to_int16(np.asarray(x, np.float32))
    return numbers * scales[:, None].astype(np.float64)


def whole_rows(x: np.ndarray) -> np.ndarray:
    """float[H, n, d], of which each of the n rows has one scale for all heads."""
    n_heads, n, width = x.shape
    return whole(x.transpose(1, 0, 2).reshape(n, -1)).reshape(n, n_heads, width).transpose(1, 0, 2)


BY_NUMPY = {BFLOAT16: (RoundedFlat, 4), INT16: (WholeFlat, 2)}  # and the part of the rounding that two layers may leave


@pytest.mark.parametrize(("level", "precision"), [pair for pair in NARROW if pair[1] in BY_NUMPY])
@pytest.mark.parametrize("n_layers", [1, 2])
@pytest.mark.parametrize("shape", [(4, 8), (6, 7), (8, 20)])
def test_16_bits_are_those_of_numpy(tmp_path, level, precision, n_layers, shape):
    """What is left are sums in another order that round to another number, each layer more of them.

    In int16, such a number changes a whole row of the next product.
    """
    (network, part), (n_heads, head_width) = BY_NUMPY[precision], shape
    changes = {"use_words": False, "use_bigrams": False, "n_layers": n_layers}
    lattices = saved(tmp_path / "model", **changes, n_heads=n_heads, head_width=head_width)
    exact = NativeModel.load(tmp_path / "model", kernels="off")
    batch = exact.rows(lattices)
    expected = network(exact.config, exact.network._weights).emissions(batch)
    emissions = NativeModel.load(tmp_path / "model", kernels=level, precision=precision).network.emissions(batch)
    error, of_rounding = (np.square(emissions - x).mean() ** 0.5 for x in (expected, exact.network.emissions(batch)))
    assert error < of_rounding / (8 if n_layers == 1 else part)


@pytest.mark.parametrize(("level", "precision"), NARROW)
def test_scores_do_not_depend_on_the_texts_before(tmp_path, level, precision):
    """Longer texts make new tables of relative spans."""
    lattices = saved(tmp_path / "model", n_layers=2)
    model = NativeModel.load(tmp_path / "model", kernels=level, precision=precision)
    assert len(lattices[0].text) > 64
    before = [model.emissions([lattice]) for lattice in lattices[1:]]
    model.emissions(lattices[:1])
    for first, lattice in zip(before, lattices[1:], strict=True):
        np.testing.assert_array_equal(model.emissions([lattice]), first)


def test_a_precision_is_chosen():
    assert [chosen("auto", PRECISIONS[:n]) for n in (1, 2, 3, 4)] == list(PRECISIONS)
    assert chosen("auto", (FLOAT32, INT8, INT16)) == INT16  # of AVX2
    assert chosen(FLOAT32, PRECISIONS) == FLOAT32
    with pytest.raises(ModelError, match="precision 'float16': expected one of auto, float32, bfloat16, int8, int16"):
        chosen("float16", PRECISIONS)
    with pytest.raises(ModelError, match=r"precision 'int8': this processor, .* only supports float32, bfloat16; use"):
        chosen(INT8, PRECISIONS[:2])
    assert available(None) == (FLOAT32,)


@pytest.mark.parametrize("level", ["off", "portable"])
def test_where_the_environment_asks_for_a_level_without_a_precision_it_is_blamed(monkeypatch, level):
    best = native.levels()[-1:]
    if INT8 not in available(native.load(*best)):
        pytest.skip("this processor has no int8")
    monkeypatch.setenv(instruction_sets.VARIABLE, level)
    native.level.cache_clear()
    try:
        instead = f"only supports float32; unset it, or set it to {best[0]}, or use precision='auto'"
        with pytest.raises(ModelError, match=f"variable CIGE_KERNELS={level} asks for {instead}"):
            load(precision=INT8)
        assert load().model.precision == FLOAT32
        assert NativeModel.load(load().model.folder, kernels=best[0], precision=INT8).precision == INT8
    finally:
        native.level.cache_clear()


def test_load_takes_a_precision(tmp_path):
    own = native.load()
    assert load().model.precision == available(own)[-1]
    ner = load(precision="float32")
    assert ner.model.precision == FLOAT32 and ", float32)" in repr(ner)
    for kernels in LEVELS[:1]:  # the portable level has no other
        with pytest.raises(ModelError, match="only supports float32"):
            NativeModel.load(ner.model.folder, kernels=kernels, precision=BFLOAT16)
    with pytest.raises(ModelError, match="PyTorch, which computes this model, only supports float32"):
        load(backend="torch", precision="int8")
    config = SoftLexiconConfig(lstm_width=8)
    tiny.model(config=config, architecture="soft_lexicon").save(tmp_path / "soft")
    assert load(tmp_path / "soft", backend="torch", precision="float32").labels
    assert NER(NativeModel.load(tmp_path / "soft", precision="auto")).model.precision == FLOAT32
    with pytest.raises(ModelError, match="a SoftLexicon only supports float32"):
        load(tmp_path / "soft", precision="bfloat16")


@pytest.mark.parametrize("wanted", ["auto", FLOAT32])
def test_a_copy_computes_in_what_was_asked_for(wanted):
    model = load(precision=wanted).model
    copy = pickle.loads(pickle.dumps(model))
    assert (copy.wanted_precision, copy.precision) == (wanted, model.precision)


@pytest.mark.skipif(not NARROW, reason="this processor only supports float32")
def test_the_bundled_model_finds_the_same_names_in_every_precision():
    texts = ["罗氏公司总部设在瑞士巴塞尔。", "李明和王芳昨天从北京大学去了上海。", "腾讯的马化腾在深圳出席了发布会。"]
    found = {}
    for precision in available(native.load()):
        ner = load(precision=precision)
        found[precision] = [[(e.text, e.label) for e in entities] for entities in ner.pipe(texts)]
        scores = [e.score for entities in load(precision=FLOAT32).pipe(texts) for e in entities]
        np.testing.assert_allclose([e.score for x in ner.pipe(texts) for e in x], scores, atol=0.05)
    assert all(x == found[FLOAT32] for x in found.values()) and all(found[FLOAT32])
