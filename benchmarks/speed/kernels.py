"""The CPU kernels at each level that this processor can run, and PyTorch's operations.

Ratios are the processor time of PyTorch's form divided by that of each level. `--library` adds the kernels of a file,
for example one that was compiled for this machine alone, in src/cige/nn/native:

    gcc -shared -fPIC -O3 -march=native -fno-trapping-math -std=gnu11 kernels.c softmax.c vocabulary.c -o native.so -lm
"""

import ctypes
from collections.abc import Callable, Iterator
from functools import partial
from typing import Annotated, Any
from unittest import mock

import torch

from benchmarks.measure import in_turns
from cige.nn import native
from cige.nn.dropout import Dropout
from cige.nn.relative_spans import relative_spans
from cige.nn.span_attention import SpanPairs, span_attention

TABLES = {"cases": "CPU kernels: times as fast as PyTorch's form"}
Case = Callable[[], None]


def flat_case(n_batch: int, n: int, *, train: bool) -> Case:
    """FLAT's attention in the paper's sizes: 8 heads of 20, relations of 160."""
    generator = torch.Generator().manual_seed(0)
    draw = partial(torch.randn, generator=generator)
    head = torch.randint(0, n, (n_batch, n), generator=generator)
    spans = relative_spans(head, head + torch.randint(0, 4, (n_batch, n), generator=generator))
    tensors = [draw(8, n_batch, n, 20) for _ in range(4)]
    tensors += [draw(len(spans.head_distance), 160).relu(), draw(8, 20, 160) / 10]
    n_nodes = torch.full((n_batch,), n)

    def run() -> None:
        inputs = [x.requires_grad_(train) for x in tensors]
        out, _ = span_attention(*inputs[:4], SpanPairs(inputs[4], spans, n_nodes), inputs[5])
        if train:
            torch.autograd.grad(out.square().sum(), inputs)

    return run


def scored_case(dtype: torch.dtype) -> Case:
    """A layer of Lattice-BERT (lite) in training: 8 instances of 176 tokens, 12 heads of 64, dropout."""
    from cige.lattice_bert.encoder.scored_attention import scored_attention

    draw = partial(torch.randn, generator=torch.Generator().manual_seed(0))
    tensors = [draw(8, 12, 176, 64).to(dtype).requires_grad_() for _ in range(3)]
    scores = draw(12, 8, 176, 176).to(dtype).transpose(0, 1).requires_grad_()
    dropout = Dropout(0.1)

    def run() -> None:
        out = scored_attention(*tensors, scores, scale=0.125, dropout=dropout)
        torch.autograd.grad(out.float().square().sum(), [*tensors, scores])

    return run


def vocabulary_case(dtype: torch.dtype) -> Case:
    """64 targets over the 102,128 tokens of Lattice-BERT, vectors of 128."""
    from cige.lattice_bert.encoder.vocabulary_loss import vocabulary_loss

    draw = partial(torch.randn, generator=torch.Generator().manual_seed(0))
    tensors = [x.requires_grad_() for x in (draw(64, 128), draw(102_128, 128) / 10, draw(102_128))]
    targets = torch.randint(0, 102_128, (64,), generator=torch.Generator().manual_seed(1))

    def run() -> None:
        with torch.autocast("cpu", torch.bfloat16, enabled=dtype == torch.bfloat16):
            loss = vocabulary_loss(*tensors, targets).loss
        torch.autograd.grad(loss, tensors)

    return run


CASES: dict[str, Callable[[], Case]] = {
    "FLAT, 79 nodes, forward": partial(flat_case, 1, 79, train=False),
    "FLAT, 16 x 79 nodes, forward": partial(flat_case, 16, 79, train=False),
    "FLAT, 16 x 79 nodes, both ways": partial(flat_case, 16, 79, train=True),
    "FLAT, 2 x 400 nodes, both ways": partial(flat_case, 2, 400, train=True),
    "scored attention, float32, both ways": partial(scored_case, torch.float32),
    "scored attention, bfloat16, both ways": partial(scored_case, torch.bfloat16),
    "vocabulary, float32, both ways": partial(vocabulary_case, torch.float32),
    "vocabulary, bfloat16, both ways": partial(vocabulary_case, torch.bfloat16),
}


def bench(
    *,
    rounds: int = 7,
    threads: int = 1,
    library: Annotated[str | None, "file with kernels of your own, to compare with"] = None,
) -> Iterator[dict[str, Any]]:
    """Per case the milliseconds of PyTorch's form, and how many times as fast each level is."""
    libraries: dict[str, ctypes.CDLL | None] = {"torch": None}
    libraries |= {name: native.library(name) for name in native.levels()}
    if library is not None:
        libraries[library] = native.open_library(library)
    for name, make in CASES.items():
        case = make()
        taken = in_turns({form: partial(_with, own, case) for form, own in libraries.items()}, n_rounds=rounds)
        plain = taken.pop("torch").processor
        yield {"case": name, "torch_ms": plain * 1e3} | {form: plain / t.processor for form, t in taken.items()}


def _with(library: ctypes.CDLL | None, case: Case) -> None:
    with mock.patch.object(native, "load", lambda: library):
        case()
