"""span_attention against the literal equations of FLAT, forward and backward, compiled and in PyTorch."""

import math
from functools import cache

import kernel_forms
import pytest
import torch

from cige.nn import native, position_scores, span_attention
from cige.nn.relative_spans import relative_spans
from cige.nn.span_attention import SpanPairs, biased_attention

H, D_HEAD = 3, 5


def literal(query, position_query, key, value, relation, relation_key, index, n_nodes, hidden, n_queries=None):
    """Loops over every sentence, head and query, in float64."""
    out = torch.zeros(*query.shape[1:3], H * D_HEAD, dtype=query.dtype)
    for b, n in enumerate(n_nodes.tolist()):
        for h in range(H):
            for i in range(n if n_queries is None else int(n_queries[b])):
                relations = relation[index[b, i, :n]] @ relation_key[h].T  # [n, D_HEAD]: W_kR R_ij of every key j
                score = key[h, b, :n] @ query[h, b, i] + relations @ position_query[h, b, i]
                if hidden is not None:
                    score = score - 1e9 * hidden[b, i, :n]
                out[b, i, h * D_HEAD : (h + 1) * D_HEAD] = torch.softmax(score, 0) @ value[h, b, :n]
    return out


@pytest.fixture(params=kernel_forms.FORMS)
def form(request, monkeypatch):
    kernel_forms.use(request.param, monkeypatch)
    if request.param == "torch":
        monkeypatch.setattr(position_scores, "CHUNK_FLOATS", 700)  # several chunks
    return request.param


def example(*, n_heads=H, with_mask: bool, seed: int = 0, n: int = 11):
    generator = torch.Generator().manual_seed(seed)
    n_batch, width = 3, 32
    head = torch.randint(0, 7, (n_batch, n), generator=generator)
    tail = head + torch.randint(0, 4, (n_batch, n), generator=generator)
    spans = relative_spans(head, tail)
    n_nodes = torch.tensor([n, 4, 1])
    hidden = None
    if with_mask:
        hidden = torch.rand(n_batch, n, n, generator=generator) < 0.3
        hidden[:, torch.arange(n), torch.arange(n)] = False
    tensors = [torch.randn(n_heads, n_batch, n, D_HEAD, generator=generator) for _ in range(4)]
    tensors.append(torch.relu(torch.randn(len(spans.head_distance), width, generator=generator)))
    tensors.append(torch.randn(n_heads, D_HEAD, width, generator=generator) / 2)
    return [t.requires_grad_() for t in tensors], spans, n_nodes, hidden


def attend(tensors, spans, n_nodes, hidden=None, n_queries=None, **settings):
    *inputs, relation, relation_key = tensors
    pairs = SpanPairs(relation, spans, n_nodes, hidden, n_queries)
    return span_attention.span_attention(*inputs, pairs, relation_key, **settings)


@pytest.mark.parametrize(("n", "with_mask"), [(11, False), (11, True), (37, True), (64, False)])
def test_equals_literal_equations_forward_and_backward(form, n, with_mask):
    """Lengths below a vector, above several, and of whole vectors; 37 and 64 rows make several forward tasks."""
    tensors, spans, n_nodes, hidden = example(with_mask=with_mask, n=n)
    expected, direction, gradients = literally(n, with_mask)
    out, _ = attend(tensors, spans, n_nodes, hidden)
    real = torch.arange(out.shape[1]) < n_nodes[:, None]
    torch.testing.assert_close(out[real].double(), expected[real], atol=1e-5, rtol=1e-5)
    (out * direction).sum().backward()
    for mine, theirs in zip(tensors, gradients, strict=True):
        torch.testing.assert_close(mine.grad.double(), theirs, atol=1e-4, rtol=1e-4)


@cache
def literally(n, with_mask):
    """What the equations give for an example, for all forms: the output, a direction, and the gradients in it."""
    tensors, spans, n_nodes, hidden = example(with_mask=with_mask, n=n)
    exact = [t.detach().double().requires_grad_() for t in tensors]
    out = literal(*exact, spans.index.long(), n_nodes, hidden)
    real = torch.arange(out.shape[1]) < n_nodes[:, None]
    direction = torch.randn(out.shape, generator=torch.Generator().manual_seed(9)) * real[:, :, None]
    (out * direction).sum().backward()
    return out.detach(), direction, [t.grad for t in exact]


@pytest.mark.parametrize("level", kernel_forms.LEVELS)
def test_more_than_one_group_of_heads_and_several_threads(level):
    tensors, spans, n_nodes, hidden = example(n_heads=12, with_mask=True)
    real = (torch.arange(11) < n_nodes[:, None])[:, :, None]
    results = []
    threads = torch.get_num_threads()
    for form, n_threads in ((level, 1), (level, 3), ("torch", 1)):
        with pytest.MonkeyPatch.context() as patch:
            kernel_forms.use(form, patch)
            torch.set_num_threads(n_threads)
            out, probabilities = attend(tensors, spans, n_nodes, hidden)
            gradients = torch.autograd.grad((out * real).square().sum(), tensors)
            torch.set_num_threads(threads)
        results.append([(out * real).detach(), (probabilities * real[None]).detach(), *gradients])
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            torch.testing.assert_close(a, b, atol=2e-5, rtol=2e-5)


def test_probabilities_sum_to_one_and_respect_the_mask(form):
    tensors, spans, n_nodes, hidden = example(with_mask=True)
    _, probabilities = attend(tensors, spans, n_nodes, hidden)
    for b, n in enumerate(n_nodes.tolist()):
        block = probabilities[:, b, :n]
        torch.testing.assert_close(block.sum(-1), torch.ones(H, n))
        assert float(block[:, :, n:].abs().max() if n < block.shape[2] else 0) == 0
        assert float(block[:, :, :n][:, hidden[b, :n, :n]].abs().max()) == 0 if hidden[b, :n, :n].any() else True


def blinded(hidden, n_nodes):
    """`hidden` with nothing left to see for two nodes, one of them the only one of its sentence."""
    hidden = hidden.clone()
    hidden[0, 3] = hidden[2, 0] = True
    hidden[1, 2, : n_nodes[1]] = True  # all real nodes; beyond them is padding, which nobody sees
    return hidden, [(0, 3), (2, 0), (1, 2)]


def test_a_node_that_sees_nothing_reads_zeros(form):
    tensors, spans, n_nodes, hidden = example(with_mask=True)
    hidden, blind = blinded(hidden, n_nodes)
    out, probabilities = attend(tensors, spans, n_nodes, hidden)
    exact = [t.detach().double().requires_grad_() for t in tensors]
    expected = literal(*exact, spans.index.long(), n_nodes, hidden)
    real = torch.arange(out.shape[1]) < n_nodes[:, None]
    for b, i in blind:
        assert not out[b, i].any() and not probabilities[:, b, i].any()
        real[b, i] = False
    torch.testing.assert_close(out[real].double(), expected[real], atol=1e-5, rtol=1e-5)
    (out.square().sum(2) * (torch.arange(out.shape[1]) < n_nodes[:, None])).sum().backward()
    expected[real].square().sum().backward()
    for mine, theirs in zip(tensors, exact, strict=True):
        torch.testing.assert_close(mine.grad.double(), theirs.grad, atol=1e-4, rtol=1e-4)


def test_a_node_that_sees_nothing_reads_zeros_with_biases_too():
    (query, _, key, value, relation, _), spans, n_nodes, hidden = example(with_mask=True)
    hidden, blind = blinded(hidden, n_nodes)
    bias = torch.randn(H, len(relation), generator=torch.Generator().manual_seed(3)).requires_grad_()
    for mask in (hidden, torch.ones_like(hidden)):
        pairs = SpanPairs(relation.detach(), spans, n_nodes, mask)
        out, probabilities = biased_attention(query, bias, key, value, pairs, with_attention=True)
        for b, i in blind:
            assert not out[b, i].any() and not probabilities[:, b, i].any()
        gradients = torch.autograd.grad(out.square().sum(), (query, bias, key, value))
        assert out.isfinite().all() and all(g.isfinite().all() for g in gradients)


def test_empty_sentence_gives_finite_values_and_gradients(form):
    tensors, spans, _, _ = example(with_mask=False)
    out, _ = attend(tensors, spans, torch.tensor([3, 0, 0]))
    assert out.isfinite().all()
    out[0, :3].sum().backward()
    assert all(t.grad.isfinite().all() for t in tensors)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("which", range(6))
def test_what_is_no_number_goes_where_the_equations_take_it(form, which, bad):
    """A NaN or an infinity in any input reaches rows that hang on it, and no other sentence.

    A NaN reaches just the rows that it does in PyTorch. An infinity may come out as an infinity or as a NaN, which
    depends on what it is multiplied with first, and where it makes all scores of a row -inf the masked nodes are left.
    """
    tensors, spans, n_nodes, hidden = example(with_mask=True)
    with torch.no_grad():
        # the row of R for a pair, a head of W_kR, or node 2, of the first sentence
        place = {4: (int(spans.index[0, 2, 2]), 1), 5: (0, 1, 1)}.get(which, (0, 0, 2, 1))
        tensors[which][place] = bad
        out, probabilities = attend(tensors, spans, n_nodes, hidden)
        with pytest.MonkeyPatch.context() as patch:
            kernel_forms.use("torch", patch)
            expected, shares = attend(tensors, spans, n_nodes, hidden)
    real = torch.arange(out.shape[1]) < n_nodes[:, None]
    if which != 1 or bad > 0 or math.isnan(bad):
        assert not out[real].isfinite().all() and not expected[real].isfinite().all()
    if which < 4:
        assert out[1:][real[1:]].isfinite().all()
    if which in (0, 2, 3) or (which == 4 and math.isnan(bad)):
        torch.testing.assert_close(out[real], expected[real], atol=1e-5, rtol=1e-5, equal_nan=True)
        torch.testing.assert_close(
            probabilities.transpose(0, 1)[:, :, :4][0], shares.transpose(0, 1)[:, :, :4][0], equal_nan=True
        )


def test_a_gradient_that_is_no_number_reaches_every_input(form):
    tensors, spans, n_nodes, hidden = example(with_mask=True)
    out, _ = attend(tensors, spans, n_nodes, hidden)
    upstream = torch.zeros_like(out)
    upstream[0, 2] = math.nan
    for gradient in torch.autograd.grad(out, tensors, upstream):
        assert gradient.isnan().any()


def test_attention_dropout_drops_probabilities():
    """On real rows alone: what stands in rows of padding differs between the two forms as it is."""
    tensors, spans, n_nodes, _ = example(with_mask=False)
    tensors = [t.detach() for t in tensors]
    real = torch.arange(11) < n_nodes[:, None]
    torch.manual_seed(0)
    results = [attend(tensors, spans, n_nodes, dropout_prob=0.5) for _ in range(300)]
    dropped = torch.stack([out[real] for out, _ in results])
    kept, probabilities = attend(tensors, spans, n_nodes)
    assert (dropped[0] - kept[real]).abs().max() > 0.1 and (dropped[0] - dropped[1]).abs().max() > 0.1
    standard_error = dropped.std(0) / len(dropped) ** 0.5
    assert ((dropped.mean(0) - kept[real]).abs() <= 5 * standard_error + 1e-5).all()
    torch.testing.assert_close(results[0][1][:, 0], probabilities[:, 0])  # the probabilities are returned undropped


class KernelSpy:
    """Takes the place of the compiled kernel and its library, so that the choice is tested where neither is built."""

    def __init__(self, monkeypatch):
        self.dtypes: list[torch.dtype] = []
        monkeypatch.setattr(native, "load", lambda: "library")
        monkeypatch.setattr(span_attention, "_NativeAttention", self)

    def apply(self, library, query, position, key, value, table, pairs):
        assert library == "library"
        self.dtypes += [x.dtype for x in (query, position, key, value, table)]
        n_heads, n_batch, n, width = query.shape
        return query.new_zeros(n_batch, n, n_heads, width), query.new_zeros(n_heads, n_batch, n, n)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_the_compiled_kernel_is_used_in_float32_whatever_autocast_made_of_the_inputs(dtype, monkeypatch):
    spy = KernelSpy(monkeypatch)
    tensors, spans, n_nodes, _ = example(with_mask=False)
    attend([t if k == 2 else t.to(dtype) for k, t in enumerate(tensors)], spans, n_nodes)
    assert spy.dtypes == [torch.float32] * 5


def test_autocast_without_the_compiled_kernel(monkeypatch):
    monkeypatch.setattr(span_attention, "_native_for", lambda query: None)
    tensors, spans, n_nodes, _ = example(with_mask=False)
    expected, _ = attend(tensors, spans, n_nodes)
    with torch.autocast("cpu", torch.bfloat16):
        found, _ = attend(tensors, spans, n_nodes)
    torch.testing.assert_close(found.float(), expected, atol=0.05, rtol=0.05)


@pytest.mark.parametrize(
    ("dtype", "dropout_prob"), [(torch.float64, 0.0), (torch.float32, 0.5)], ids=["float64", "dropout"]
)
def test_the_compiled_kernel_is_not_used_where_it_does_not_apply(dtype, dropout_prob, monkeypatch):
    spy = KernelSpy(monkeypatch)
    tensors, spans, n_nodes, _ = example(with_mask=False)
    tensors = [t.detach().to(dtype) for t in tensors]
    torch.manual_seed(0)
    out, _ = attend(tensors, spans, n_nodes, dropout_prob=dropout_prob)
    assert not spy.dtypes and out.dtype == dtype
    if not dropout_prob:
        expected = literal(*tensors, spans.index.long(), n_nodes, None)
        real = torch.arange(out.shape[1]) < n_nodes[:, None]
        torch.testing.assert_close(out[real].double(), expected[real], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("with_mask", [False, True])
def test_where_characters_alone_ask(form, with_mask):
    """Forward and backward: the rows of the characters among all that ask, and nothing of the other rows."""
    tensors, _, n_nodes, hidden = example(with_mask=with_mask, n=37)
    n_queries, n_chars = 20, torch.tensor([20, 3, 1])
    head = torch.arange(37).expand(3, -1).clamp(max=19).contiguous()
    tail = head + torch.where(torch.arange(37) < 20, 0, torch.arange(37) % 4)
    spans = relative_spans(head, tail, n_char_queries=n_queries)
    relation = torch.relu(torch.randn(len(spans.head_distance), 32)).requires_grad_()
    asking = [t.detach()[:, :, :n_queries].clone().requires_grad_() for t in tensors[:2]]
    tensors = [*asking, *tensors[2:4], relation, tensors[5]]
    hidden = None if hidden is None else hidden[:, :n_queries]
    out, probabilities = attend(tensors, spans, n_nodes, hidden, n_chars)
    assert out.shape == (3, n_queries, H * D_HEAD) and probabilities.shape == (H, 3, n_queries, 37)
    exact = [t.detach().double().requires_grad_() for t in tensors]
    expected = literal(*exact, spans.index.long(), n_nodes, hidden, n_chars)
    real = torch.arange(n_queries) < n_chars[:, None]
    torch.testing.assert_close(out[real].double(), expected[real], atol=1e-5, rtol=1e-5)
    direction = torch.randn(out.shape, generator=torch.Generator().manual_seed(9)) * real[:, :, None]
    (out * direction).sum().backward()
    (expected * direction).sum().backward()
    for mine, theirs in zip(tensors, exact, strict=True):
        torch.testing.assert_close(mine.grad.double(), theirs.grad, atol=1e-4, rtol=1e-4)


def test_the_compiled_kernel_is_for_the_cpu(monkeypatch):
    monkeypatch.setattr(native, "load", lambda: "library")
    for device, library in (("cpu", "library"), ("meta", None)):
        assert span_attention._native_for(torch.zeros(1, device=device)) == library


@pytest.mark.parametrize("with_mask", [False, True])
def test_biased_attention_equals_literal_equations_forward_and_backward(with_mask):
    """A position score that is a number a head: the literal form with one-hot relations and that number as query."""
    (query, _, key, value, relation, _), spans, n_nodes, hidden = example(with_mask=with_mask)
    n_rows = len(relation)
    bias = torch.randn(H, n_rows, generator=torch.Generator().manual_seed(3)).requires_grad_()
    pairs = SpanPairs(relation.detach(), spans, n_nodes, hidden)
    out, probabilities = biased_attention(query, bias, key, value, pairs, with_attention=True)
    one = torch.zeros(H, *query.shape[1:3], D_HEAD).double()
    one[..., 0] = 1  # whatever the node: the first number of a head, which W_kR makes the bias of the row
    doubles = [x.double() for x in (query, key, value)]
    by_row = torch.cat([bias.double()[:, None], torch.zeros(H, D_HEAD - 1, n_rows).double()], 1)
    rows = torch.eye(n_rows).double()
    expected = literal(doubles[0], one, *doubles[1:], rows, by_row, spans.index, n_nodes, hidden)
    real = torch.arange(query.shape[2]) < n_nodes[:, None]
    torch.testing.assert_close(out[real].double(), expected[real], atol=1e-5, rtol=0)
    torch.testing.assert_close(probabilities.sum(3), torch.ones(probabilities.shape[:3]))
    weight = torch.randn(expected.shape, generator=torch.Generator().manual_seed(4)).double() * real[..., None]
    inputs = (query, bias, key, value)
    ours = torch.autograd.grad((out * weight.float()).sum(), inputs)
    theirs = torch.autograd.grad((expected * weight).sum(), inputs)
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, atol=1e-4, rtol=1e-4)
    assert biased_attention(query, bias, key, value, pairs)[1] is None
