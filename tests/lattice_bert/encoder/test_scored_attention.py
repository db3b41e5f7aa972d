"""Attention with scores of its own: against loops, its gradients, hidden keys, and dropout in the compiled form."""

from __future__ import annotations

import math

import kernel_forms
import pytest
import torch

from cige.lattice_bert.encoder.scored_attention import scored_attention, scored_probabilities
from cige.nn import native
from cige.nn.dropout import Dropout

B, H, M, N, D = 2, 3, 4, 6, 5
SCALE = 0.4


@pytest.fixture(params=kernel_forms.LEVELS)
def compiled(request, monkeypatch) -> None:
    kernel_forms.use(request.param, monkeypatch)


@pytest.fixture(params=kernel_forms.FORMS)
def form(request, monkeypatch) -> None:
    kernel_forms.use(request.param, monkeypatch)


def example(dtype: torch.dtype) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    query, key, value = (torch.randn(B, n, H, D, generator=generator, dtype=torch.float64) for n in (M, N, N))
    scores = torch.randn(H, B, M, N, generator=generator, dtype=torch.float64).transpose(0, 1)
    scores[1, :, :, 4:] = -torch.inf  # padding of the second sequence
    return [x.to(dtype).requires_grad_() for x in (*(x.transpose(1, 2) for x in (query, key, value)), scores)]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_equals_loops_over_queries(form, dtype):
    query, key, value, scores = (x.detach() for x in example(dtype))
    found = scored_attention(query, key, value, scores, scale=SCALE, dropout=Dropout(0.5).eval())
    shares = scored_probabilities(query, key, scores, scale=SCALE)
    for b in range(B):
        for h in range(H):
            for i in range(M):
                seen = [j for j in range(N) if scores[b, h, i, j].isfinite()]
                raw = [math.exp(SCALE * float(query[b, h, i] @ key[b, h, j]) + float(scores[b, h, i, j])) for j in seen]
                expected = sum(x / sum(raw) * value[b, h, j] for x, j in zip(raw, seen, strict=True))
                torch.testing.assert_close(found[b, h, i], expected, rtol=1e-5, atol=1e-6)
                assert shares[b, h, i, seen].tolist() == pytest.approx([x / sum(raw) for x in raw], rel=1e-5)
    assert len(seen) == 4 and not shares[1, :, :, 4:].any()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])  # the first has no compiled form
@pytest.mark.parametrize("prob", [0.0, 0.5])
def test_a_query_that_sees_nothing_reads_zeros(dtype, prob):
    query, key, value, scores = example(dtype)
    with torch.no_grad():
        scores[0, 1, 2] = scores[1, :, 3] = -torch.inf
    found = scored_attention(query, key, value, scores, scale=SCALE, dropout=Dropout(prob))
    assert found.isfinite().all() and not found[0, 1, 2].any() and not found[1, :, 3].any()
    shares = scored_probabilities(query, key, scores, scale=SCALE)
    assert shares.isfinite().all() and not shares[0, 1, 2].any() and not shares[1, :, 3].any()
    gradients = torch.autograd.grad(found.float().square().sum(), (query, key, value, scores))
    assert all(g.isfinite().all() for g in gradients)
    assert not gradients[0][0, 1, 2].any() and not gradients[3][1, :, 3].any()


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-6), (torch.bfloat16, 0.03)])
def test_gradients_reach_all_four(form, dtype, tolerance):
    tensors = example(dtype)
    weight = torch.randn(B, H, M, D, generator=torch.Generator().manual_seed(3))
    found = scored_attention(*tensors, scale=SCALE, dropout=Dropout(0.0))
    gradients = torch.autograd.grad((found.float() * weight).sum(), tensors)
    wide = [x.detach().double().requires_grad_() for x in tensors]
    query, key, value, scores = wide
    exact = torch.softmax(SCALE * query @ key.transpose(2, 3) + scores, -1) @ value
    expected = torch.autograd.grad((exact * weight).sum(), wide)
    torch.testing.assert_close(found.double(), exact, rtol=tolerance, atol=tolerance)
    for ours, theirs in zip(gradients, expected, strict=True):
        torch.testing.assert_close(ours.double(), theirs, rtol=tolerance, atol=2 * tolerance)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.bfloat16, 0.03)])
def test_gradients_follow_what_dropout_kept(compiled, dtype, tolerance):
    """With the identity as values the output is what dropout left of the probabilities: it tells what was kept."""
    tensors = example(dtype)
    query, key, _, scores = tensors
    value = torch.eye(N, dtype=dtype).expand(B, H, N, N)
    torch.manual_seed(5)
    found = scored_attention(query, key, value, scores, scale=SCALE, dropout=Dropout(0.3))
    kept = (found != 0).double() / 0.7
    weight = torch.randn(found.shape, generator=torch.Generator().manual_seed(3))
    gradients = torch.autograd.grad((found.float() * weight).sum(), (query, key, scores))
    wide = [x.detach().double().requires_grad_() for x in (query, key, scores)]
    exact = torch.softmax(SCALE * wide[0] @ wide[1].transpose(2, 3) + wide[2], -1) * kept
    torch.testing.assert_close(found.double(), exact, rtol=tolerance, atol=tolerance)
    for ours, theirs in zip(gradients, torch.autograd.grad((exact * weight).sum(), wide), strict=True):
        torch.testing.assert_close(ours.double(), theirs, rtol=tolerance, atol=2 * tolerance)


def test_dropout_hangs_on_the_seed_and_not_on_threads(compiled, monkeypatch):
    rows, n, prob = 400, 300, 0.1
    query, key, value = torch.zeros(1, 1, rows, 1), torch.zeros(1, 1, n, 1), torch.eye(n)[None, None]
    scores = torch.zeros(1, 1, rows, n)

    def kept(seed: int, n_threads: int) -> torch.Tensor:
        monkeypatch.setattr(torch, "get_num_threads", lambda: n_threads)
        torch.manual_seed(seed)
        return scored_attention(query, key, value, scores, scale=1.0, dropout=Dropout(prob))[0, 0] != 0

    first = kept(1, 1)
    assert torch.equal(first, kept(1, 3)) and not torch.equal(first, kept(2, 1))
    share = first.double()
    spread = math.sqrt(prob * (1 - prob))
    assert share.mean().item() == pytest.approx(1 - prob, abs=4 * spread / math.sqrt(rows * n))
    for axis, count in ((0, rows), (1, n)):  # as even along rows and columns as chance makes it
        assert share.mean(axis).std().item() == pytest.approx(spread / math.sqrt(count), rel=0.25)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_what_is_no_number_is_not_hidden(form, dtype):
    """A run that diverged must be seen to have done so."""
    query, key, value, scores = example(dtype)
    with torch.no_grad():
        query[0, 0, 1, 0] = torch.nan
    found = scored_attention(query, key, value, scores, scale=SCALE, dropout=Dropout(0.1))
    assert found[0, 0, 1].isnan().all() and not found[0, 0, 0].isnan().any()


class Library:
    """Takes the place of the compiled kernels, so that what they are asked for is tested where they are not built."""

    def __init__(self) -> None:
        self.calls: list[tuple[float, bool]] = []

    def softmax_dropout_forward(self, sizes, prob, probabilities, dropped) -> int:
        self.calls.append((prob, dropped is not None))
        return 0


@pytest.mark.parametrize(
    ("dtype", "device", "is_built", "is_compiled"),
    [
        (torch.float32, "cpu", True, True),
        (torch.bfloat16, "cpu", True, True),
        (torch.float32, "cpu", False, False),
        (torch.float64, "cpu", True, False),
        (torch.float32, "meta", True, False),
    ],
)
def test_where_the_compiled_form_applies(dtype, device, is_built, is_compiled, monkeypatch):
    library = Library()
    monkeypatch.setattr(native, "load", lambda: library if is_built else None)
    tensors = [x.detach().to(device) for x in example(dtype)]
    found = scored_attention(*tensors, scale=SCALE, dropout=Dropout(0.0))
    assert found.shape == (B, H, M, D) and bool(library.calls) == is_compiled


@pytest.mark.parametrize("dropout", [Dropout(0.0), Dropout(0.5).eval(), Dropout(0.5)], ids=["none", "eval", "training"])
def test_only_dropout_takes_a_random_number_and_room_for_what_it_leaves(dropout, monkeypatch):
    library = Library()
    monkeypatch.setattr(native, "load", lambda: library)
    torch.manual_seed(0)
    before = torch.get_rng_state()
    scored_attention(*example(torch.float32), scale=SCALE, dropout=dropout)
    drops = dropout.training and dropout.prob > 0
    assert torch.equal(torch.get_rng_state(), before) != drops
    assert library.calls == [(0.5, True) if drops else (0.0, False)]


def test_dropout_is_off_outside_training_and_on_in_it_in_every_form(form):
    tensors = [x.detach() for x in example(torch.float32)]
    torch.manual_seed(0)
    plain, still, first, second = (
        scored_attention(*tensors, scale=SCALE, dropout=dropout)
        for dropout in (Dropout(0.0), Dropout(0.5).eval(), Dropout(0.5), Dropout(0.5))
    )
    assert torch.equal(plain, still) and not torch.allclose(first, plain) and not torch.allclose(first, second)
    drawn = torch.stack([scored_attention(*tensors, scale=SCALE, dropout=Dropout(0.5)) for _ in range(400)])
    assert ((drawn.mean(0) - plain).abs() <= 5 * drawn.std(0) / 400**0.5 + 1e-5).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_gradient_that_is_no_number_is_not_hidden(form, dtype):
    tensors = example(dtype)
    found = scored_attention(*tensors, scale=SCALE, dropout=Dropout(0.1))
    upstream = torch.zeros_like(found)
    upstream[0, 0, 1] = torch.nan
    for gradient in torch.autograd.grad(found, tensors, upstream):
        assert gradient[0, 0].isnan().any() and not gradient[1].isnan().any()


@pytest.mark.parametrize("n_keys", [1, 15, 16, 17, 200])
def test_every_level_drops_the_same_and_gives_the_same(n_keys, monkeypatch):
    """Keys short of a vector, one beyond it, and many; the random numbers do not hang on the level."""
    generator = torch.Generator().manual_seed(4)
    query, key, value = (torch.randn(1, 2, n, D, generator=generator) for n in (M, n_keys, n_keys))
    scores = torch.randn(1, 2, M, n_keys, generator=generator)
    results = []
    for level in kernel_forms.LEVELS:
        kernel_forms.use(level, monkeypatch)
        torch.manual_seed(6)
        tensors = [x.clone().requires_grad_() for x in (query, key, value, scores)]
        found = scored_attention(*tensors, scale=SCALE, dropout=Dropout(0.5))
        results.append((found.detach(), *torch.autograd.grad(found.square().sum(), tensors)))
    for other in results[1:]:
        for mine, theirs in zip(results[0], other, strict=True):
            torch.testing.assert_close(mine, theirs, atol=1e-5, rtol=1e-5)


def test_no_sequence_at_all():
    query, key, value, scores = (x[:0] for x in example(torch.float32))
    assert scored_attention(query, key, value, scores, scale=SCALE, dropout=Dropout(0.1)).shape == (0, H, M, D)
