"""Lattice LSTM against its definition, a sentence, a direction, a character and a word at a time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import tiny
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cige.data.batch import LatticeBatch, collate
from cige.data.vocabulary import USER, EncodedLattice
from cige.models.lattice_lstm import LatticeLstmConfig, LatticeLstmEncoder
from cige.models.model import LatticeModel
from cige.nn.embeddings import InputSizes
from cige.nn.lattice_recurrence import word_steps

CONFIG = LatticeLstmConfig(lstm_width=12, embed_dropout_prob=0.0, word_dropout_prob=0.0, output_dropout_prob=0.0)
TEXTS = ["人和药店设在南京市长江大桥", "李明", "", "中国银行的经理来自清华大学，今天天气很好"]
FORMS = [{}, {"coupled_gates": True}, {"use_words": False}, {"use_words": False, "coupled_gates": True}]


def made(**changes: object) -> LatticeModel:
    """A model in float64 none of whose weights is where training starts from (identities hide transposed matrices)."""
    model = tiny.model(config=replace(CONFIG, **changes), architecture="lattice_lstm")
    model.tagger.double()
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, parameter in model.tagger.encoder.named_parameters():
            if not name.startswith("embeddings"):
                parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.5)
    return model


def literal_encode(encoder: LatticeLstmEncoder, batch: LatticeBatch) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Of each sentence its features [T, 2H] and how much of each word's cell [T, W, 2H] entered a character's."""
    features, shares = [], []
    for b in range(len(batch)):
        n = int(batch.n_chars[b])
        x = [encoder.embeddings.char(batch.chars[b, t]) for t in range(n)]
        words = []
        if encoder.config.use_words:
            for w in range(int(batch.n_words[b])):
                vector = encoder.embeddings.word(batch.words[b, w])
                words.append((int(batch.word_starts[b, w]), int(batch.word_ends[b, w]) - 1, vector))
        left, left_shares = literal_direction(encoder, 0, x, words)
        turned = [(n - 1 - last, n - 1 - first, vector) for first, last, vector in words]
        right, right_shares = literal_direction(encoder, 1, x[::-1], turned)
        rows = [torch.cat(pair) for pair in zip(left, right[::-1], strict=True)]
        features.append(torch.stack(rows) if rows else torch.zeros(0, encoder.out_width))
        both = [
            [torch.cat(pair) for pair in zip(*row, strict=True)]
            for row in zip(left_shares, right_shares[::-1], strict=True)
        ]
        shares.append(both)
    return features, shares


def literal_direction(encoder, direction: int, x: list, words: list) -> tuple[list, list]:
    """States h_t of one direction over vectors `x`; words are (first, last, vector) in its own order of reading."""
    chars, width = encoder.chars, encoder.width

    def part(module, k: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Weights of gate k: of the input, of the state, and its bias."""
        columns = slice(k * width, (k + 1) * width)
        return (
            module.input[direction][:, columns],
            module.state[direction][:, columns],
            module.bias.view(2, -1)[direction][columns],
        )

    def gate(module, k: int, vector: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
        weight, recurrent, bias = part(module, k)
        return vector @ weight + state @ recurrent + bias

    h, c, shares = [], [], []
    zero = torch.zeros(width, dtype=torch.float64)
    for t, vector in enumerate(x):
        h_before, c_before = (h[-1], c[-1]) if t else (zero, zero)
        candidate = torch.tanh(gate(chars, 0, vector, h_before))
        let_in = torch.sigmoid(gate(chars, 1, vector, h_before))
        ending = [(k, first, e) for k, (first, last, e) in enumerate(words) if last == t]
        share = [zero] * len(words)
        if ending:
            values, scores = [candidate], [let_in]
            for _, first, e in ending:
                word_candidate = torch.tanh(gate(encoder.words, 0, e, h[first]))
                word_in = torch.sigmoid(gate(encoder.words, 1, e, h[first]))
                word_forget = torch.sigmoid(gate(encoder.words, 2, e, h[first]))
                values.append(word_forget * c[first] + word_in * word_candidate)
                scores.append(torch.sigmoid(gate(encoder.links, 0, vector, values[-1])))
            total = sum(torch.exp(score) for score in scores)
            cell = sum(torch.exp(score) / total * value for score, value in zip(scores, values, strict=True))
            for (k, _, _), score in zip(ending, scores[1:], strict=True):
                share[k] = torch.exp(score) / total
        elif encoder.config.coupled_gates:
            cell = (1 - let_in) * c_before + let_in * candidate
        else:
            cell = torch.sigmoid(gate(chars, 2, vector, h_before)) * c_before + let_in * candidate
        let_out = torch.sigmoid(gate(chars, 2 if encoder.config.coupled_gates else 3, vector, h_before))
        c.append(cell)
        h.append(let_out * torch.tanh(cell))
        shares.append(share)
    return h, shares


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_equals_its_definition_in_values_and_gradients(form):
    model = made(**form)
    model.lexicon.add("长江大桥")  # twice over one span
    model.lexicon.add("药店设")
    batch, lattices = model.encode(TEXTS)
    encoder = model.tagger.encoder
    assert max(lattice.n_words for lattice in lattices) > 8 and lattices[1].n_words == 0
    expected, _ = literal_encode(encoder, batch)
    found = encoder(batch)
    for row, literal in zip(found, expected, strict=True):
        torch.testing.assert_close(row[: len(literal)], literal.double(), atol=1e-12, rtol=1e-10)
        assert not row[len(literal) :].any()
    names, weights = zip(*encoder.named_parameters(), strict=True)
    generator = torch.Generator().manual_seed(2)
    weighting = [torch.randn(len(row), encoder.out_width, generator=generator).double() for row in expected]
    loss = sum((row[: len(w)] * w).sum() for row, w in zip(found, weighting, strict=True))
    literal_loss = sum((row * w).sum() for row, w in zip(expected, weighting, strict=True))
    pairs = zip(torch.autograd.grad(loss, weights), torch.autograd.grad(literal_loss, weights), strict=True)
    for name, (gradient, literal) in zip(names, pairs, strict=True):
        assert literal.abs().max() > 0, name
        torch.testing.assert_close(gradient, literal, atol=1e-11, rtol=1e-9, msg=name)


def random_lattice(rng: np.random.Generator, n_chars: int, n_words: int) -> EncodedLattice:
    """Words of any length over any place, the same span several times included."""
    starts = rng.integers(0, max(1, n_chars - 1), n_words if n_chars > 1 else 0)
    ends = np.array([rng.integers(start + 2, n_chars + 1) for start in starts], np.int64)
    rows = [rng.integers(1, 20, k) for k in (n_chars, n_chars, len(starts))]
    return EncodedLattice(*rows, starts, ends, *[np.zeros(len(starts), np.int64)] * 2, "x" * n_chars)


def random_encoder(seed: int, **changes: object) -> LatticeLstmEncoder:
    torch.manual_seed(seed)
    sizes = InputSizes(n_rows=(20, 20, 20), n_tuned=(20, 20, 20), widths=(4, 4, 5))
    encoder = LatticeLstmEncoder(config=replace(CONFIG, lstm_width=6, **changes), sizes=sizes).double()
    with torch.no_grad():
        for parameter in encoder.parameters():
            parameter.copy_(torch.randn_like(parameter))
    return encoder


@settings(max_examples=40)
@given(
    sizes=st.lists(st.tuples(st.integers(0, 7), st.integers(0, 9)), min_size=1, max_size=5),
    seed=st.integers(0, 1000),
    coupled=st.booleans(),
)
def test_equals_its_definition_on_any_lattice(sizes, seed, coupled):
    rng = np.random.default_rng(seed)
    batch = collate([random_lattice(rng, *size) for size in sizes])
    encoder = random_encoder(seed, coupled_gates=coupled)
    expected, _ = literal_encode(encoder, batch)
    for row, literal in zip(encoder(batch), expected, strict=True):
        torch.testing.assert_close(row[: len(literal)], literal.double(), atol=1e-10, rtol=1e-8)


@pytest.mark.parametrize("coupled", [False, True])
def test_gradients_of_every_input_equal_finite_differences(coupled):
    rng = np.random.default_rng(3)
    batch = collate([random_lattice(rng, n, k) for n, k in ((6, 9), (2, 1), (4, 0))])
    encoder = random_encoder(3, coupled_gates=coupled)
    weights = dict(encoder.named_parameters())
    weights.pop("embeddings.bigram.tuned", None)

    def run(*values: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(encoder, dict(zip(weights, values, strict=True)), (batch,)).sum(2)

    assert torch.autograd.gradcheck(run, tuple(weights.values()), fast_mode=True)


def test_shares_are_the_weights_of_words_in_cells():
    model = made()
    model.lexicon.add("药店设")
    batch, _ = model.encode(TEXTS)
    encoder = model.tagger.encoder
    with torch.no_grad():
        features, weights = encoder.read_words(batch)
        torch.testing.assert_close(features, encoder(batch))
        _, expected = literal_encode(encoder, batch)
    for b, rows in enumerate(expected):
        for t, row in enumerate(rows):
            for w, share in enumerate(row):
                assert weights[b, t, w] == pytest.approx(float(share.mean()), abs=1e-9)
    first, last = int(batch.word_starts[0, 0]), int(batch.word_ends[0, 0]) - 1
    assert weights[0, first, 0] > 0 and weights[0, last, 0] > 0
    assert (weights > 0).sum() == 2 * batch.n_words.sum()


def test_words_are_sorted_by_the_step_where_they_end():
    lattices = [
        EncodedLattice(
            *[np.ones(n, np.int64)] * 2, np.ones(len(s), np.int64), s, e, *[np.zeros(len(s), np.int64)] * 2, ""
        )
        for n, s, e in ((5, np.array([0, 0, 2]), np.array([2, 5, 5])), (3, np.array([1]), np.array([3])))
    ]
    steps = word_steps(collate(lattices))
    # from the left: [0,2) ends at step 1, [0,5) and [2,5) at 4, the other sentence's [1,3) at 2;
    # from the right: [2,5) ends at step 2, [0,5) and [0,2) at 4, [1,3) at 1
    assert steps.n_words == [(0, 0), (1, 1), (1, 1), (0, 0), (2, 2)]
    n_sentences, n_words = 2, 3
    readable = [(d, b, w) for d, b, w in (np.unravel_index(int(k), (2, n_sentences, n_words)) for k in steps.word)]
    assert readable == [(0, 0, 0), (1, 1, 0), (0, 1, 0), (1, 0, 2), (0, 0, 1), (0, 0, 2), (1, 0, 0), (1, 0, 1)]
    starts = [tuple(map(int, np.unravel_index(int(k), (2, 6, n_sentences)))) for k in steps.start]
    assert starts[0] == (0, 1, 0) and starts[1] == (1, 1, 1)  # the state after the word's first character
    assert starts[5] == (0, 3, 0) and starts[6] == (1, 4, 0)


def test_a_word_reaches_the_characters_where_it_ends_and_what_is_read_after_them():
    model = made()
    batch, _ = model.encode(["今天罕见名字说话吧"])
    assert batch.n_words.tolist() == [1]  # 今天
    before = model.tagger.encoder(batch).detach()
    model.lexicon.add("罕见名字")  # characters 2..5
    with_word, _ = model.encode(["今天罕见名字说话吧"])
    assert USER in with_word.words
    changed = (model.tagger.encoder(with_word).detach() - before).abs() > 1e-12
    half = changed.shape[2] // 2
    assert changed[0, :, :half].any(1).tolist() == [False] * 5 + [True] * 4
    assert changed[0, :, half:].any(1).tolist() == [True] * 3 + [False] * 6


def test_weights_start_as_in_the_released_code():
    encoder = tiny.model(config=CONFIG, architecture="lattice_lstm").tagger.encoder
    width = encoder.width
    for module, n_gates in ((encoder.chars, 4), (encoder.words, 3), (encoder.links, 1)):
        assert not module.bias.any()
        for direction in range(2):
            assert torch.equal(module.state[direction], torch.eye(width).repeat(1, n_gates))
            matrix = module.input[direction].detach()
            small = matrix @ matrix.t() if matrix.shape[0] <= matrix.shape[1] else matrix.t() @ matrix
            torch.testing.assert_close(small, torch.eye(len(small)), atol=1e-5, rtol=0)
    assert not torch.equal(encoder.chars.input[0], encoder.chars.input[1])


def test_a_width_that_two_directions_cannot_share_is_refused():
    assert "even" in replace(CONFIG, lstm_width=5).problems()[0] and not CONFIG.problems()
