"""Lattice-BERT against its equations, token by token; its sizes; what padding, rows and switches change."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from slow_lattice_bert import linear, slow_encode

from cige.lattice_bert.encoder import network as module
from cige.lattice_bert.encoder.costs import describe
from cige.lattice_bert.encoder.heads import LatticeBertForPreTraining
from cige.lattice_bert.encoder.joint_vocabulary import JointVocabulary
from cige.lattice_bert.encoder.network import LatticeAttention, LatticeBert
from cige.lattice_bert.encoder.network_config import BASELINE, PAPER_N_PIECES, RELEASED, SIZES, LatticeBertConfig
from cige.lattice_bert.encoder.token_batch import TokenBatch, collate_tokens
from cige.lattice_bert.encoder.tokenizer import LatticeTokenizer

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"研究生活很充实他去北京"]
VOCABULARY = JointVocabulary.build(PIECES, ["研究", "研究生", "生活", "充实", "北京"])
SMALL = LatticeBertConfig(
    n_tokens=len(VOCABULARY),
    n_layers=2,
    n_heads=2,
    width=12,
    embedding_width=6,
    position_width=4,
    max_positions=32,
    clip_distance=3,
)


def network(config: LatticeBertConfig = SMALL, *, seed: int = 0) -> LatticeBert:
    """With weights so large that every term of the scores matters."""
    torch.manual_seed(seed)
    model = LatticeBert(config).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    return model


def batch_of(*texts: str | tuple[str, str]) -> TokenBatch:
    tokenizer = LatticeTokenizer(VOCABULARY)
    return collate_tokens([tokenizer.encode(*((text,) if isinstance(text, str) else text)) for text in texts])


@torch.no_grad()
@pytest.mark.parametrize(
    "changes",
    [{}, RELEASED, BASELINE, {"distances": False, "relations": None}, {"embedding_width": None}, {"cls_reset": False}],
    ids=["paper", "released", "-Rel", "-Dis -Rel", "-EmbDe", "no reset"],
)
def test_equal_to_the_equations(changes):
    model = network(replace(SMALL, **changes)).double()
    batch = batch_of(("研究生活", "他去"), "充实")
    found = model(batch)
    for row in range(2):
        n = int(batch.n_tokens[row])
        starts, ends = batch.starts[row, :n].tolist(), batch.ends[row, :n].tolist()
        spans = list(zip(starts, ends, strict=True))
        expected = slow_encode(model, batch.ids[row, :n].tolist(), spans, batch.types[row, :n].tolist())
        torch.testing.assert_close(found.hidden[row, :n], torch.tensor(expected).double(), rtol=1e-5, atol=1e-5)
        pooled = [math.tanh(v) for v in linear(model.pooler, expected[0])]
        torch.testing.assert_close(found.pooled[row], torch.tensor(pooled).double(), rtol=1e-5, atol=1e-5)


@torch.no_grad()
def test_neighbours_and_padding_change_nothing():
    model, texts = network(), ["研究生活很充实", "他", ("北京", "研究生")]
    together = model(batch_of(*texts))
    for row, text in enumerate(texts):
        alone = model(batch_of(text))
        n = alone.hidden.shape[1]
        torch.testing.assert_close(together.hidden[row, :n], alone.hidden[0], rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(together.pooled[row], alone.pooled[0], rtol=1e-5, atol=1e-5)
    assert torch.isfinite(together.hidden).all()


@pytest.mark.parametrize("with_gradients", [False, True], ids=["fused attention", "attention with gradients"])
def test_rows_asked_for_are_those_of_all(with_gradients):
    model, batch = network(), batch_of("研究生活很充实", "他去北京")
    rows = torch.tensor([[0, 3, 1], [0, 2, 2]])
    with torch.set_grad_enabled(with_gradients):
        whole, part = model(batch), model(batch, rows)
    expected = whole.hidden.gather(1, rows[:, :, None].expand(-1, -1, SMALL.width))
    torch.testing.assert_close(part.hidden, expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(part.pooled, whole.pooled, rtol=1e-5, atol=1e-5)


def test_fused_and_plain_attention_agree():
    model, batch = network(), batch_of("研究生活很充实", "他去北京")
    plain = model(batch).hidden.detach()
    with torch.no_grad():
        fused = model(batch).hidden
    torch.testing.assert_close(fused[batch.mask], plain[batch.mask], rtol=1e-5, atol=1e-5)


class Calls(list):
    """Takes the place of a function and notes its arguments by name."""

    def __init__(self, usual):
        super().__init__()
        self.usual = usual

    def __call__(self, *given, **named):
        self.append(named)
        return self.usual(*given, **named)


def attention_example(device: str, *, wants_gradient: bool, dropout_prob: float = 0.5) -> tuple:
    layer = LatticeAttention(replace(SMALL, attention_dropout_prob=dropout_prob)).to(device)
    scores = torch.zeros(1, SMALL.n_heads, 3, 3, device=device, requires_grad=wants_gradient)
    return layer, torch.ones(1, 3, SMALL.width, device=device), scores


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize(
    ("device", "wants_gradient", "is_fused"), [("cpu", True, False), ("cpu", False, True), ("meta", True, True)]
)
def test_attention_is_fused_but_where_a_cpu_needs_the_gradient_of_the_scores(
    device, wants_gradient, is_fused, training, monkeypatch
):
    scored, fused = Calls(module.scored_attention), Calls(torch.nn.functional.scaled_dot_product_attention)
    monkeypatch.setattr(module, "scored_attention", scored)
    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", fused)
    layer, hidden, scores = attention_example(device, wants_gradient=wants_gradient)
    layer.train(training)(hidden, hidden, scores)
    assert (len(scored), len(fused)) == ((0, 1) if is_fused else (1, 0))
    if is_fused:
        assert fused[0]["dropout_p"] == (0.5 if training else 0.0)
    else:
        assert scored[0]["dropout"] is layer.dropout


@pytest.mark.parametrize("wants_gradient", [False, True])
def test_dropout_of_attention_is_for_training_in_both_forms(wants_gradient):
    layer, hidden, scores = attention_example("cpu", wants_gradient=wants_gradient)
    hidden = torch.randn(hidden.shape, generator=torch.Generator().manual_seed(0))
    torch.manual_seed(0)
    plain, again = (layer.eval()(hidden, hidden, scores) for _ in range(2))
    first, second = (layer.train()(hidden, hidden, scores) for _ in range(2))
    assert torch.equal(plain, again)
    assert not torch.allclose(first, plain) and not torch.allclose(first, second)


@torch.no_grad()
def test_position_scores_are_in_the_dtype_of_autocast():
    model, batch = network(), batch_of("研究生活", "他")
    exact = model._scores(batch)
    with torch.autocast("cpu", torch.bfloat16):
        narrow = model._scores(batch)
    assert (exact.dtype, narrow.dtype) == (torch.float32, torch.bfloat16)
    assert torch.equal(narrow, exact.to(torch.bfloat16))  # cast once, after they are computed in float32


def test_position_scores_are_computed_once():
    model, calls = network(), []
    model.positions.register_forward_hook(lambda *_: calls.append(1))
    model(batch_of("研究生活"))
    assert len(calls) == 1


@pytest.mark.parametrize(
    ("size", "n_words", "settings", "millions"),
    [("base", 81_000, {}, 100), ("lite", 81_000, {}, 33), ("base", 0, BASELINE, 90), ("lite", 0, BASELINE, 23)],
)
def test_parameters_as_in_the_paper(size, n_words, settings, millions):
    config = replace(SIZES[size], n_tokens=PAPER_N_PIECES + n_words, **settings)
    facts = describe(config)
    assert abs(facts["n_parameters"] / 1e6 - millions) < 1  # the paper rounds up: 99.3, 32.7, 89.0 and 22.4
    assert facts["n_parameters"] == sum(facts["parameters"].values())


def test_attention_received_sums_to_one():
    model, batch = network(), batch_of("研究生活很充实", "他去")
    received = model.attention_received(batch)
    torch.testing.assert_close(received.sum(1), torch.ones(2))
    assert (received[~batch.mask] == 0).all() and (received[batch.mask] > 0).all()
    alone = model.attention_received(batch_of("他去"))
    torch.testing.assert_close(received[1, : alone.shape[1]], alone[0])


@torch.no_grad()
def test_attention_received_of_one_layer_is_the_mean_over_queries_and_heads():
    model, batch = network(replace(SMALL, n_layers=1)), batch_of("生活很")
    hidden, scores = model.embeddings(batch), model.positions(batch)
    weights = model.layers[0].attention.probabilities(hidden, scores)[0]
    torch.testing.assert_close(model.attention_received(batch)[0], weights.mean((0, 1)))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"width": 13}, "width 13 cannot be shared by 2 heads"),
        ({"n_layers": 0}, "n_layers is 0, expected 1 or more"),
        ({"position_scale": "paper"}, "position_scale is 'paper', expected 'single' or 'double'"),
    ],
)
def test_settings_that_make_no_sense(changes, message):
    with pytest.raises(ValueError, match=message):
        LatticeBert(replace(SMALL, **changes))


# the heads of pre-training


def masked_example() -> tuple[TokenBatch, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Two pairs and a text alone; masked tokens, their ids, and the order of the pairs."""
    batch = batch_of(("研究生活", "很充实"), ("他去", "北京"), "研究生")
    positions = torch.tensor([[1, 2, 3], [2, 5, 0], [4, 0, 0]])
    is_target = torch.tensor([[True, True, True], [True, True, False], [True, False, False]])
    targets = batch.ids.gather(1, positions).masked_fill(~is_target, -1)
    ids = batch.ids.clone()
    for row, columns in enumerate(positions.tolist()):
        for column, asked in zip(columns, is_target[row].tolist(), strict=True):
            if asked:
                ids[row, column] = VOCABULARY.mask_id
    return replace(batch, ids=ids), positions, targets, torch.tensor([0, 1, -1])


def test_losses_are_cross_entropies_of_targets_and_of_pairs():
    torch.manual_seed(0)
    model = LatticeBertForPreTraining(SMALL).eval()
    torch.nn.init.normal_(model.token_bias)
    batch, positions, targets, labels = masked_example()
    with torch.no_grad():
        found = model(batch, positions, targets, labels)
        hidden = model.bert(batch)
        vectors = model.transform_norm(torch.nn.functional.gelu(model.transform(hidden.hidden), approximate="tanh"))
        scores = vectors @ model.bert.embeddings.tokens.weight.t() + model.token_bias
        order = model.sentence(hidden.pooled)
    losses, right = [], 0
    for row, column in np.argwhere(targets.numpy() >= 0).tolist():
        asked, expected = scores[row, int(positions[row, column])], int(targets[row, column])
        losses.append(float(torch.logsumexp(asked, 0) - asked[expected]))
        right += int(asked.argmax()) == expected
    assert float(found.mlm_loss) == pytest.approx(sum(losses) / 6, rel=1e-5)
    assert (int(found.n_targets), int(found.n_targets_right)) == (6, right)
    pairs = [float(torch.logsumexp(order[row], 0) - order[row, label]) for row, label in ((0, 0), (1, 1))]
    assert float(found.sentence_loss) == pytest.approx(sum(pairs) / 2, rel=1e-5)
    assert int(found.n_sentences) == 2


def test_nothing_asked_costs_nothing():
    model = LatticeBertForPreTraining(SMALL)
    found = model(batch_of("他"), torch.zeros(1, 1, dtype=torch.int64), torch.tensor([[-1]]), torch.tensor([-1]))
    assert found.total.item() == 0
    found.total.backward()
    assert all(p.grad is None or not p.grad.any() for p in model.parameters())


@pytest.mark.parametrize("settings", [{}, RELEASED, BASELINE], ids=["paper", "released", "-Rel"])
def test_one_batch_is_learned_by_heart(settings):
    torch.manual_seed(1)
    still = {"dropout_prob": 0.0, "attention_dropout_prob": 0.0}
    config = replace(SMALL, width=32, embedding_width=16, **settings, **still)
    model = LatticeBertForPreTraining(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    example = masked_example()
    for _ in range(200):
        loss = model(*example).total
        if loss < 0.05:
            break
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # else the path hangs on the last digit of a sum
        optimizer.step()
    losses = model(*example)
    assert float(losses.total.detach()) < 0.1
    assert (losses.n_targets_right, losses.n_sentences_right) == (losses.n_targets, losses.n_sentences)


@pytest.mark.parametrize("dropout_prob", [0.0, 0.2])
def test_layers_that_are_computed_again_give_the_same_gradient(dropout_prob):
    """Dropout draws the same masks again."""
    bert = network(replace(SMALL, dropout_prob=dropout_prob, attention_dropout_prob=dropout_prob)).train()
    batch, calls, gradients = batch_of("研究生活很充实", "北京"), [], []
    bert.layers[0].register_forward_pre_hook(lambda *_: calls.append(1))
    for recomputes in (False, True):
        bert.recomputes_layers = recomputes
        bert.zero_grad()
        torch.manual_seed(0)
        bert(batch).pooled.square().sum().backward()
        gradients.append({name: p.grad.clone() for name, p in bert.named_parameters() if p.grad is not None})
    assert len(calls) == 1 + 2 and gradients[0].keys() == gradients[1].keys()
    for name, gradient in gradients[0].items():
        torch.testing.assert_close(gradients[1][name], gradient, rtol=0, atol=0)
    calls.clear()
    bert.eval()(batch).pooled.sum().backward()
    assert len(calls) == 1  # only training computes them again
