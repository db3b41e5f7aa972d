"""Every form of the position term against its definition, forward and backward."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from cige.nn import position_scores as module
from cige.nn.position_scores import GatheredScores, GroupedScores, choose_form, position_scores
from cige.nn.relative_spans import relative_spans


def example(*, dtype=torch.float32, n_heads: int = 3, width: int = 20, n: int = 11, seed: int = 0):
    generator = torch.Generator().manual_seed(seed)
    head = torch.randint(0, 7, (3, n), generator=generator)
    tail = head + torch.randint(0, 4, (3, n), generator=generator)
    spans = relative_spans(head, tail)
    query = torch.randn(n_heads, 3, n, width, generator=generator, dtype=dtype)
    relation = torch.randn(len(spans.head_distance), width, generator=generator, dtype=dtype)
    return query.requires_grad_(), relation.requires_grad_(), spans.index, spans.query_reach


def by_definition(query, relation, index):
    return torch.einsum("hbid,bijd->hbij", query, relation[index.long()])


def apply(form: str, query, relation, index, reach):
    if form == "grouped":
        return GroupedScores.apply(query, relation, index, reach)
    return GatheredScores.apply(query, relation, index)


@pytest.mark.parametrize("chunk", [300, 4_000_000])
@pytest.mark.parametrize("n_asking", [11, 4])
@pytest.mark.parametrize("form", ["gathered", "grouped"])
def test_equals_the_definition_forward_and_backward(form, n_asking, chunk, monkeypatch):
    monkeypatch.setattr(module, "CHUNK_FLOATS", chunk)
    query, relation, index, reach = example()
    query, index = query[:, :, :n_asking].detach().requires_grad_(), index[:, :n_asking]
    found, expected = apply(form, query, relation, index, reach), by_definition(query, relation, index)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    direction = torch.randn(found.shape, generator=torch.Generator().manual_seed(1))
    mine = torch.autograd.grad((found * direction).sum(), (query, relation))
    theirs = torch.autograd.grad((expected * direction).sum(), (query, relation))
    for a, b in zip(mine, theirs, strict=True):
        torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("form", ["gathered", "grouped"])
def test_gradcheck(form):
    query, relation, index, reach = example(dtype=torch.float64, n_heads=2, width=3, n=4)
    assert torch.autograd.gradcheck(lambda q, r: apply(form, q, r, index, reach), (query, relation))


def test_the_choice_follows_size_and_how_many_distinct_rows_there_are(monkeypatch):
    query, relation, index, reach = example()
    assert choose_form(query, relation, reach, n_keys=11) == "gathered"  # all of it stays in the cache
    monkeypatch.setattr(module, "CHUNK_FLOATS", 300)
    assert choose_form(query, relation, reach, n_keys=11) == "grouped"
    many = relation.repeat(50, 1)
    assert choose_form(query, many, reach, n_keys=11) == "gathered"  # too many rows for each span length
    torch.testing.assert_close(position_scores(query, relation, index, reach), by_definition(query, relation, index))


@pytest.mark.parametrize("form", ["gathered", "grouped", "triton"])
def test_the_chosen_form_is_the_one_that_runs(form, monkeypatch):
    ran = []

    def recorder(name: str):
        return SimpleNamespace(apply=lambda query, relation, index, *rest: ran.append((name, len(rest))))

    monkeypatch.setattr(module, "choose_form", lambda *given, **more: form)
    monkeypatch.setattr(module, "GatheredScores", recorder("gathered"))
    monkeypatch.setattr(module, "GroupedScores", recorder("grouped"))
    triton = SimpleNamespace(PositionScores=recorder("triton"))
    monkeypatch.setitem(sys.modules, "cige.nn.position_scores_triton", triton)
    position_scores(*example())
    assert ran == [(form, 1 if form == "grouped" else 0)]  # the reach of each row is what grouping goes by


class OnCuda(torch.Tensor):
    """A tensor that says it is on CUDA, where there is none."""

    is_cuda = True


@pytest.mark.parametrize(
    ("on_cuda", "has_triton", "form"),
    [(True, True, "triton"), (True, False, "gathered"), (False, True, "gathered")],
)
def test_triton_is_for_cuda_and_where_it_is_installed(on_cuda, has_triton, form, monkeypatch):
    query, relation, index, reach = example()
    found = SimpleNamespace(name="triton") if has_triton else None
    monkeypatch.setattr("importlib.util.find_spec", lambda name: found if name == "triton" else None)
    query = query.as_subclass(OnCuda) if on_cuda else query
    assert choose_form(query, relation, reach, n_keys=index.shape[2]) == form


INTERPRETED = """
import torch
from test_position_scores import by_definition, example
from cige.nn.position_scores_triton import PositionScores

for n_heads, width, n in ((3, 20, 11), (8, 40, 37), (1, 16, 1)):
    query, relation, index, _ = example(n_heads=n_heads, width=width, n=n)
    query = query[:, :, : (n + 1) // 2].detach().requires_grad_()  # fewer nodes ask than are asked
    index = index[:, : (n + 1) // 2]
    found, expected = PositionScores.apply(query, relation, index), by_definition(query, relation, index)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    direction = torch.randn(found.shape)
    mine = torch.autograd.grad((found * direction).sum(), (query, relation))
    theirs = torch.autograd.grad((expected * direction).sum(), (query, relation))
    for a, b in zip(mine, theirs):
        torch.testing.assert_close(a, b, atol=1e-4, rtol=1e-4)

from cige.nn import span_attention
from test_span_attention import blinded, example as attention_example

tensors, spans, n_nodes, hidden = attention_example(with_mask=True)
hidden, blind = blinded(hidden, n_nodes)
pairs = span_attention.SpanPairs(tensors[4], spans, n_nodes, hidden)
span_attention._native_for = lambda query: None
expected = span_attention.span_attention(*tensors[:4], pairs, tensors[5])
span_attention.position_scores = lambda query, relation, index, reach: PositionScores.apply(query, relation, index)
found = span_attention.span_attention(*tensors[:4], pairs, tensors[5])
for a, b in zip(found, expected):
    torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-5)
for sentence, node in blind:  # a node that sees nothing reads zeros in this form too
    assert not found[0][sentence, node].any() and not found[1][:, sentence, node].any()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="Triton is made for Linux alone")
def test_the_triton_kernel_in_its_interpreter():
    # In a process of its own: Triton reads the variable when it is imported.
    folders = (Path(__file__).parent, Path(__file__).parents[1] / "helpers", Path(module.__file__).parents[2])
    environment = {"TRITON_INTERPRET": "1", "PYTHONPATH": os.pathsep.join(map(str, folders)), "PATH": ""}
    done = subprocess.run([sys.executable, "-c", INTERPRETED], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.parametrize("form", ["gathered", "grouped"])
def test_autocast_on_the_cpu_leaves_the_forms_in_float32(form):
    query, relation, index, reach = example()
    expected = apply(form, query, relation, index, reach)
    query.requires_grad_()
    relation.requires_grad_()
    with torch.autocast("cpu", torch.bfloat16):
        found = apply(form, query, relation, index, reach)
        gradients = torch.autograd.grad(found.square().sum(), (query, relation))
    assert found.dtype == torch.float32 and torch.equal(found, expected)
    outside = torch.autograd.grad(apply(form, query, relation, index, reach).square().sum(), (query, relation))
    for inside, plain in zip(gradients, outside, strict=True):
        torch.testing.assert_close(inside, plain, rtol=1e-5, atol=1e-5)
