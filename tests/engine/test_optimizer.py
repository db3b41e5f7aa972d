"""Parameter groups and clipping."""

from __future__ import annotations

import copy

import pytest
import tiny
import torch
from torch import nn

from cige.data.batch import collate
from cige.data.tag_sets import GoldTags, TagSets
from cige.engine.optimizer import clip_gradients, finish_updates, make_optimizer, set_learning_rate
from cige.engine.row_adam import RowAdamW
from cige.engine.settings import OptimizerConfig
from cige.nn.embeddings import SplitEmbedding


def batch_of(model, *, seed: int = 0) -> object:
    known = tiny.sentences(6, seed=seed)
    encoded = [model.vocabulary.encode(lattice) for lattice in model.lattices([s.text for s in known])]
    gold = GoldTags(TagSets(model.tagger.tags), "BMES")
    return collate(encoded, [gold.ids(sentence) for sentence in known])


def test_tables_biases_and_matrices_are_treated_apart() -> None:
    model = tiny.model().tagger
    scales = {module: 0.5 for module in model.modules() if isinstance(module, SplitEmbedding)}
    optimizer = make_optimizer(model, OptimizerConfig(learning_rate=0.1, weight_decay=0.2), scales=scales)
    names = {id(p): name for name, p in model.named_parameters()}
    groups = {(g["lr"], g["weight_decay"]): {names[id(p)] for p in g["params"]} for g in optimizer.param_groups}
    assert set(groups) == {(0.05, 0.0), (0.1, 0.2), (0.1, 0.0)}
    assert all(name.endswith(".tuned") for name in groups[0.05, 0.0]) and len(groups[0.05, 0.0]) == 3
    assert "output.weight" in groups[0.1, 0.2] and "output.bias" in groups[0.1, 0.0]
    set_learning_rate(optimizer, 0.02)
    assert {g["lr"] for g in optimizer.param_groups} == {0.01, 0.02}
    assert sum(map(len, groups.values())) == sum(p.requires_grad for p in model.parameters())


def test_tables_by_rows_learn_what_dense_tables_learn() -> None:
    made = tiny.model()
    batches = [batch_of(made, seed=seed) for seed in range(3)]
    models = [copy.deepcopy(made.tagger).eval() for _ in range(2)]
    by_rows = make_optimizer(models[0], OptimizerConfig(learning_rate=0.002))
    tables = [p for name, p in models[1].named_parameters() if name.endswith(".tuned")]
    rest = [p for name, p in models[1].named_parameters() if not name.endswith(".tuned") and p.requires_grad]
    dense = torch.optim.AdamW(
        [
            {"params": tables, "weight_decay": 0.0},
            {"params": [p for p in rest if p.ndim > 1], "weight_decay": 0.01},
            {"params": [p for p in rest if p.ndim <= 1], "weight_decay": 0.0},
        ],
        lr=0.002,
    )
    for step in range(15):
        losses = []
        for model, optimizer in zip(models, (by_rows, dense), strict=True):
            model.zero_grad()
            losses.append(model.loss(batches[step % 3]))
            losses[-1].backward()
            clip_gradients(model.parameters(), OptimizerConfig())
            optimizer.step()
        torch.testing.assert_close(*losses, rtol=1e-3, atol=1e-4)
    finish_updates(by_rows)
    start = dict(made.tagger.named_parameters())
    for (name, a), b in zip(models[0].named_parameters(), models[1].parameters(), strict=True):
        assert (a - b).norm() <= 0.02 * (b - start[name]).norm(), name


def test_sgd_is_the_papers() -> None:
    model = tiny.model().tagger
    optimizer = make_optimizer(model, OptimizerConfig(name="sgd", momentum=0.9))
    assert isinstance(optimizer, torch.optim.SGD) and {g["momentum"] for g in optimizer.param_groups} == {0.9}
    model.loss(batch_of(tiny.model())).backward()
    assert not any(p.grad is not None and p.grad.is_sparse for p in model.parameters())


def gradients() -> list[nn.Parameter]:
    """A dense gradient of [3, -4] and a sparse one whose row 1 comes twice: 6 + 6 = 12, norm 13 in all."""
    dense, table = nn.Parameter(torch.zeros(2)), nn.Parameter(torch.zeros(3, 1))
    dense.grad = torch.tensor([3.0, -4.0])
    rows, values = torch.tensor([[1, 1]]), torch.tensor([[6.0], [6.0]])
    table.grad = torch.sparse_coo_tensor(rows, values, (3, 1), check_invariants=True)
    return [dense, table, nn.Parameter(torch.zeros(1))]


@pytest.mark.parametrize(
    ("norm", "value", "expected"),
    [
        (6.5, None, [1.5, -2.0, 6.0]),
        (20.0, None, [3.0, -4.0, 12.0]),
        (None, 3.5, [3.0, -3.5, 3.5]),
        (None, None, [3.0, -4.0, 12.0]),
    ],
)
def test_clipping(norm: float | None, value: float | None, expected: list[float]) -> None:
    dense, table, untouched = gradients()
    found_norm = clip_gradients([dense, table, untouched], OptimizerConfig(clip_norm=norm, clip_value=value))
    found = [*dense.grad.tolist(), table.grad.to_dense()[1].item()]
    assert found == pytest.approx(expected, rel=1e-5) and untouched.grad is None
    assert float(found_norm) == pytest.approx(13.0)


def test_settle_brings_tables_up_to_date() -> None:
    made = tiny.model()
    model = made.tagger
    optimizer = make_optimizer(model, OptimizerConfig(learning_rate=0.1))
    assert isinstance(optimizer, RowAdamW)
    batch = batch_of(made)
    model.loss(batch).backward()
    optimizer.step()
    table = made.tagger.encoder.embeddings.char.tuned
    model.zero_grad()
    optimizer.step()  # a step that reads nothing still moves what the last one moved
    before = table.detach().clone()
    finish_updates(optimizer)
    assert not torch.equal(before, table)
    after = table.detach().clone()
    finish_updates(optimizer)
    assert torch.equal(after, table)
