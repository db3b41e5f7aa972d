"""vocabulary_loss against F.cross_entropy, loss and gradients, in one chunk and in many."""

from __future__ import annotations

import math
import subprocess
import sys
from functools import partial
from pathlib import Path

import kernel_forms
import pytest
import torch
from torch.nn import functional as F

from cige.lattice_bert.encoder import vocabulary_loss as module
from cige.lattice_bert.encoder.vocabulary_loss import vocabulary_loss
from cige.nn import native

S, V, E = 23, 301, 7


def example(dtype: torch.dtype = torch.float64) -> tuple[list[torch.Tensor], torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    shapes = ((S, E), (V, E), (V,))
    tensors = [torch.randn(shape, generator=generator, dtype=dtype).requires_grad_() for shape in shapes]
    return tensors, torch.randint(0, V, (S,), generator=generator)


@pytest.mark.parametrize("chunk_rows", [1, 5, 1000])
def test_loss_and_gradients_equal_cross_entropy(monkeypatch, chunk_rows):
    monkeypatch.setattr(module, "CHUNK_FLOATS", {"cpu": V * chunk_rows})
    tensors, targets = example()
    found = vocabulary_loss(*tensors, targets)
    (3 * found.loss).backward()
    gradients = [tensor.grad.clone() for tensor in tensors]
    for tensor in tensors:
        tensor.grad = None
    vectors, table, bias = tensors
    scores = vectors @ table.t() + bias
    expected = F.cross_entropy(scores, targets, reduction="sum")
    (3 * expected).backward()
    torch.testing.assert_close(found.loss, expected)
    for gradient, tensor in zip(gradients, tensors, strict=True):
        torch.testing.assert_close(gradient, tensor.grad)
    assert int(found.n_right) == int((scores.argmax(1) == targets).sum())


def test_single_precision():
    tensors, targets = example(torch.float32)
    found = vocabulary_loss(*tensors, targets).loss
    wide = [tensor.double() for tensor in tensors]
    expected = F.cross_entropy(wide[0] @ wide[1].t() + wide[2], targets, reduction="sum")
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-5)


def test_a_target_that_is_all_but_impossible_has_a_finite_loss():
    vectors, table, bias = torch.ones(1, 1), torch.tensor([[200.0], [-200.0]]), torch.zeros(2)
    found = vocabulary_loss(vectors, table, bias, torch.tensor([1]))
    assert found.loss.item() == pytest.approx(400.0) and int(found.n_right) == 0


def test_no_target():
    tensors, _ = example()
    tensors[0] = torch.zeros(0, E, dtype=torch.float64, requires_grad=True)
    found = vocabulary_loss(*tensors, torch.zeros(0, dtype=torch.int64))
    found.loss.backward()
    assert found.loss.item() == 0 and int(found.n_right) == 0
    assert not tensors[1].grad.any() and not tensors[2].grad.any()


def test_without_gradients_none_are_made():
    tensors, targets = example()
    with torch.no_grad():
        found = vocabulary_loss(*tensors, targets)
    assert not found.loss.requires_grad
    torch.testing.assert_close(found.loss, vocabulary_loss(*tensors, targets).loss)


def test_bfloat16_products_under_autocast():
    tensors, targets = example(torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        found = vocabulary_loss(*tensors, targets)
    found.loss.backward()
    exact = F.cross_entropy(tensors[0] @ tensors[1].t() + tensors[2], targets, reduction="sum")
    assert found.loss.dtype == torch.float32 and found.loss.item() == pytest.approx(exact.item(), rel=0.01)
    gradients = torch.autograd.grad(exact, tensors)
    for tensor, gradient in zip(tensors, gradients, strict=True):
        assert tensor.grad.dtype == torch.float32
        assert float((tensor.grad - gradient).norm() / gradient.norm()) < 0.02


@pytest.mark.parametrize("with_autocast", [False, True])
def test_products_are_in_the_dtype_of_autocast(with_autocast, monkeypatch):
    tensors, targets = example(torch.float32)
    chosen, in_place = [], []
    turning, addmm = module._loss_function, torch.Tensor.addmm_
    monkeypatch.setattr(module, "_loss_function", lambda *given: chosen.append(given) or turning(*given))
    monkeypatch.setattr(torch.Tensor, "addmm_", lambda *given: in_place.append(given) or addmm(*given))
    monkeypatch.setattr(module, "CHUNK_FLOATS", {"cpu": V * 10})  # three chunks
    with torch.autocast("cpu", torch.bfloat16, enabled=with_autocast):
        vocabulary_loss(*tensors, targets)
    assert chosen == [("cpu", torch.bfloat16 if with_autocast else torch.float32, torch.float32)]
    # In one dtype the gradient of the table is summed where it lies, without a second array of its size.
    assert len(in_place) == (0 if with_autocast else 3)


def test_without_gradients_there_is_no_room_for_them(monkeypatch):
    made = []
    zeros_like = torch.zeros_like
    monkeypatch.setattr(torch, "zeros_like", lambda x: made.append(x.shape) or zeros_like(x))
    tensors, targets = example()
    with torch.no_grad():
        vocabulary_loss(*tensors, targets)
    assert not made
    vocabulary_loss(*tensors, targets)
    assert made == [(S, E), (V, E), (V,)]


@pytest.mark.parametrize(
    ("device", "dtype", "wide", "is_built", "is_compiled"),
    [
        ("cpu", torch.float32, torch.float32, True, True),
        ("cpu", torch.bfloat16, torch.float32, True, True),
        ("cpu", torch.float32, torch.float32, False, False),
        ("cuda", torch.float32, torch.float32, True, False),  # where Triton is missing
        ("cpu", torch.float16, torch.float32, True, False),
        ("cpu", torch.float64, torch.float64, True, False),
        ("cpu", torch.float32, torch.float64, True, False),
    ],
)
def test_where_the_compiled_form_applies(device, dtype, wide, is_built, is_compiled, monkeypatch):
    monkeypatch.setattr(native, "load", lambda: "library" if is_built else None)
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: None)
    loss_and_gradient = module._loss_function(device, dtype, wide)
    assert loss_and_gradient.func is (module._compiled_loss if is_compiled else module._torch_loss)
    assert loss_and_gradient.args == (("library",) if is_compiled else (wide,))


@pytest.mark.skipif(sys.platform != "linux", reason="Triton is made for Linux alone")
def test_where_the_triton_kernel_applies():
    from cige.lattice_bert.encoder.vocabulary_loss_triton import loss_and_gradient

    for dtype in (torch.float32, torch.bfloat16):
        assert module._loss_function("cuda", dtype, torch.float32) is loss_and_gradient
    assert module._loss_function("cuda", torch.float64, torch.float64) is not loss_and_gradient


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_scores_become_their_gradient_only_where_one_is_wanted(dtype):
    scores, targets = torch.randn(S, V, generator=torch.Generator().manual_seed(4)).to(dtype), torch.arange(S)
    changed, of_bias = scores.clone(), torch.zeros(V)
    module._torch_loss(torch.float32, changed, targets, of_bias)
    expected = torch.softmax(scores.float(), 1) - F.one_hot(targets, V)
    torch.testing.assert_close(changed.float(), expected, rtol=2**-7, atol=1e-6)
    torch.testing.assert_close(of_bias, expected.sum(0), rtol=1e-4, atol=1e-5)
    loss, right = module._torch_loss(torch.float32, scores.clone(), targets, None)
    torch.testing.assert_close(loss, F.cross_entropy(scores.float(), targets, reduction="sum"))
    assert int(right) == int((scores.argmax(1) == targets).sum())


@pytest.mark.parametrize("level", kernel_forms.LEVELS)
@pytest.mark.parametrize("n_scores", [1, 301, 3000])
@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_compiled_form_gives_the_same_loss_and_gradients(dtype, n_threads, n_scores, level, monkeypatch):
    generator = torch.Generator().manual_seed(2)
    scores = (5 * torch.randn(S, n_scores, generator=generator)).to(dtype)
    targets = torch.randint(0, n_scores, (S,), generator=generator)
    kernel_forms.use(level, monkeypatch)
    targets[:4] = scores[:4].argmax(1)
    monkeypatch.setattr(torch, "get_num_threads", lambda: n_threads)
    results = []
    for loss_and_gradient in (
        module._loss_function("cpu", dtype, torch.float32),
        partial(module._torch_loss, torch.float32),
    ):
        changed, of_bias = scores.clone(), torch.ones(n_scores)
        results.append((*loss_and_gradient(changed, targets, of_bias), changed.float(), of_bias))
        unchanged_loss, _ = loss_and_gradient(scores.clone(), targets, None)
        torch.testing.assert_close(unchanged_loss, results[-1][0])
    assert module._loss_function("cpu", dtype, torch.float32).func is module._compiled_loss
    (loss, right, gradient, of_bias), expected = results
    torch.testing.assert_close(loss, expected[0])
    assert int(right) == int(expected[1]) >= 4
    torch.testing.assert_close(gradient, expected[2], rtol=2**-7, atol=1e-6)  # one step of bfloat16
    torch.testing.assert_close(of_bias, expected[3], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("form", kernel_forms.FORMS)
@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_score_that_is_no_number_makes_the_loss_none(bad, dtype, form, monkeypatch):
    kernel_forms.use(form, monkeypatch)
    tensors, targets = example(torch.float32)
    with torch.no_grad():
        tensors[2][3] = bad
    with torch.autocast("cpu", torch.bfloat16, enabled=dtype == torch.bfloat16):
        assert vocabulary_loss(*tensors, targets).loss.isnan()


INTERPRETED = """
import torch
from functools import partial
from cige.lattice_bert.encoder.vocabulary_loss import _torch_loss
from cige.lattice_bert.encoder.vocabulary_loss_triton import BLOCK, score_buffer, loss_and_gradient

torch.manual_seed(3)
for dtype in (torch.float32, torch.bfloat16):
    for n_rows, n_tokens in ((3, 7), (4, BLOCK), (5, 2 * BLOCK + 1)):
        scores = score_buffer(n_rows, n_tokens, like=torch.empty(0, dtype=dtype))
        for _ in range(2):  # the buffer is used again
            given = (5 * torch.randn(n_rows, n_tokens)).to(dtype)
            targets = torch.randint(0, n_tokens, (n_rows,))
            targets[:2] = given[:2].argmax(1)
            scores.copy_(given)
            expected, of_bias, own = given.clone(), torch.ones(n_tokens), torch.ones(n_tokens)
            loss, right = _torch_loss(torch.float32, expected, targets, of_bias)
            torch.testing.assert_close(loss_and_gradient(scores, targets, None), (loss, right))
            torch.testing.assert_close(scores, given)
            torch.testing.assert_close(loss_and_gradient(scores, targets, own), (loss, right))
            torch.testing.assert_close(scores, expected, rtol=2**-7, atol=1e-6)
            torch.testing.assert_close(own, of_bias, rtol=2**-7, atol=2**-7)
    scores[1, 2] = float("nan")
    assert loss_and_gradient(scores, targets, None)[0].isnan()
assert loss_and_gradient(scores[:0], targets[:0], own)[0] == 0
"""


@pytest.mark.skipif(sys.platform != "linux", reason="Triton is made for Linux alone")
def test_the_triton_kernel_in_its_interpreter():
    # In a process of its own: Triton reads the variable when it is imported.
    source = Path(module.__file__).parents[3]
    environment = {"TRITON_INTERPRET": "1", "PYTHONPATH": str(source), "PATH": ""}
    done = subprocess.run([sys.executable, "-c", INTERPRETED], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
