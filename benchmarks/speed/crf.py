"""The CRF as shipped against its plain forms, and whether a scan of logarithmic depth would pay.

  log Z and gradient   `steps`: a loop over the characters with a log-sum-exp of [B, L, L] each, and automatic
                       differentiation; `scan`: pairs of neighbouring characters merge into one transfer matrix [L, L]
                       until one is left, log2(T) rounds of matrix products; `shipped`: nn.crf, a loop of [B, L] x
                       [L, L] products with the gradient by hand.
  best tags            `one by one`: Viterbi a sentence at a time; `shipped`: nn.crf_numpy over the batch.
  marginals            likewise, forward and backward.

All forms give the same numbers, which is checked before anything is timed. On a GPU log Z alone runs there; `clock` is
what counts then, and processor milliseconds elsewhere.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.measure import in_turns
from cige.data.tags import allowed_transitions, tag_set
from cige.nn.crf import CRF
from cige.nn.crf_numpy import NumpyCRF

TABLES = {"cases": "milliseconds for {n_sentences} sentences and {n_tags} tags (log Z with its gradient)"}
LENGTHS = (25, 50, 100, 200, 400, 800)
LABELS = [f"label{k}" for k in range(8)]  # as many as Weibo has: 33 tags
N_BATCH = 16
_NEVER = -1e4  # in place of -inf, whose gradient under log-sum-exp is no number


def bench(
    *,
    rounds: int = 7,
    threads: int = 1,
    device: str = "cpu",
    lengths: Annotated[Sequence[int], "characters of the longest sentence"] = LENGTHS,
) -> dict[str, Any]:
    """Milliseconds a batch of every form, of the processor and on the clock."""
    torch.manual_seed(0)
    tags = tag_set(LABELS)
    crf = CRF(n_tags=len(tags), allowed=allowed_transitions(tags))
    for parameter in crf.parameters():
        torch.nn.init.normal_(parameter)
    crf.to(device)
    cases = [case(crf, length, n_rounds=rounds, device=device) for length in lengths]
    return {"n_sentences": N_BATCH, "n_tags": len(tags), "cases": cases}


def case(crf: CRF, length: int, *, n_rounds: int, device: str) -> dict[str, Any]:
    rng = np.random.default_rng(length)
    lengths = np.sort(rng.integers(max(1, int(length * 0.8)), length + 1, N_BATCH))  # batches are of like length
    lengths[-1] = length
    n_chars = torch.from_numpy(lengths).to(device)
    emissions = (torch.randn(N_BATCH, length, len(crf.start)) * 3).to(device)
    own, arrays, listed = crf.in_numpy(), emissions.cpu().numpy(), lengths.tolist()
    forms = {"steps": log_z_by_steps, "scan": log_z_by_scan, "shipped": CRF.log_partition}
    values = {name: with_gradient(form, crf, emissions, n_chars) for name, form in forms.items()}
    for name in ("steps", "scan"):
        for found, expected in zip(values[name], values["shipped"], strict=True):
            torch.testing.assert_close(found, expected, rtol=1e-3, atol=2e-3)
    assert [path for [path] in one_by_one(own, "decode", arrays, listed)] == own.decode(arrays, listed)
    ways: dict[str, Callable[[], Any]] = {
        f"log Z, {name}": partial(with_gradient, form, crf, emissions, n_chars) for name, form in forms.items()
    }
    for name, method in (("best tags", "decode"), ("marginals", "marginals")):
        ways[f"{name}, one by one"] = partial(one_by_one, own, method, arrays, listed)
        ways[f"{name}, shipped"] = partial(getattr(own, method), arrays, listed)
    taken = in_turns(ways, n_rounds=n_rounds, device=device)
    row = {"n_chars": length} | {f"{name}_ms": timing.processor * 1e3 for name, timing in taken.items()}
    return row | {f"{name}_clock_ms": timing.clock * 1e3 for name, timing in taken.items()}


def log_z_by_steps(crf: CRF, emissions: Tensor, n_chars: Tensor) -> Tensor:
    start, transitions, end = (x.clamp(min=_NEVER) for x in crf.scores())
    alpha = start + emissions[:, 0]
    for t in range(1, emissions.shape[1]):
        reached = torch.logsumexp(alpha[:, :, None] + transitions, 1) + emissions[:, t]
        alpha = torch.where((t < n_chars)[:, None], reached, alpha)
    return torch.logsumexp(alpha + end, 1)


def log_z_by_scan(crf: CRF, emissions: Tensor, n_chars: Tensor) -> Tensor:
    start, transitions, end = (x.clamp(min=_NEVER) for x in crf.scores())
    nothing = emissions.new_full((len(start), len(start)), _NEVER).fill_diagonal_(0.0)
    inside = torch.arange(1, emissions.shape[1], device=emissions.device) < n_chars[:, None]
    moves = torch.where(inside[:, :, None, None], transitions + emissions[:, 1:, None, :], nothing)  # [B, T-1, L, L]
    while moves.shape[1] > 1:
        if moves.shape[1] % 2:
            moves = torch.cat([moves, nothing.expand(len(moves), 1, -1, -1)], 1)
        moves = log_product(moves[:, 0::2], moves[:, 1::2])
    alpha = torch.logsumexp((start + emissions[:, 0])[:, :, None] + moves[:, 0], 1)
    return torch.logsumexp(alpha + end, 1)


def log_product(first: Tensor, second: Tensor) -> Tensor:
    """log(exp(first) @ exp(second)) of [..., L, L], by one matrix product of numbers that are at most 1."""
    rows, columns = first.amax(-1, keepdim=True).detach(), second.amax(-2, keepdim=True).detach()
    product = (first - rows).exp().double() @ (second - columns).exp().double()
    return product.clamp(min=1e-300).log().float() + rows + columns


def with_gradient(log_z: Callable[[CRF, Tensor, Tensor], Tensor], crf: CRF, emissions: Tensor, n_chars: Tensor) -> Any:
    crf.zero_grad()
    leaf = emissions.clone().requires_grad_()
    value = log_z(crf, leaf, n_chars)
    value.sum().backward()
    return value.detach(), leaf.grad


def one_by_one(crf: NumpyCRF, method: str, emissions: np.ndarray, n_chars: list[int]) -> list[Any]:
    """`decode` or `marginals` a sentence at a time."""
    return [getattr(crf, method)(emissions[k : k + 1, :n], [n]) for k, n in enumerate(n_chars)]
