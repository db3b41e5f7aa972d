"""The CRF as shipped against its plain forms, and whether a scan of logarithmic depth would pay.

    python benchmarks/bench_crf.py --json crf.json
    python benchmarks/bench_crf.py --device cuda --json gpu.json            where there is a GPU: log Z alone runs on it

  log Z and gradient   `steps`: a loop over the characters with a log-sum-exp of [B, L, L] each, and automatic
                       differentiation; `scan`: pairs of neighbouring characters merge into one transfer matrix [L, L]
                       until one is left, log2(T) rounds of matrix products; `shipped`: nn.crf, a loop of [B, L] x
                       [L, L] products with the gradient by hand.
  best tags            `one by one`: Viterbi a sentence at a time; `shipped`: nn.crf_numpy over the batch.
  marginals            likewise, forward and backward.

All forms give the same numbers, which is checked before anything is timed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from measure import add_device_option, environment, in_turns, options, report, use_threads, write
from torch import Tensor

from cige.data.tags import allowed_transitions, tag_set
from cige.nn.crf import CRF
from cige.nn.crf_numpy import NumpyCRF

LENGTHS = (25, 50, 100, 200, 400, 800)
LABELS = [f"label{k}" for k in range(8)]  # as many as Weibo has: 33 tags
N_BATCH = 16
_NEVER = -1e4  # in place of -inf, whose gradient under log-sum-exp is no number


def make_crf() -> CRF:
    torch.manual_seed(0)
    tags = tag_set(LABELS)
    crf = CRF(n_tags=len(tags), allowed=allowed_transitions(tags))
    for parameter in crf.parameters():
        torch.nn.init.normal_(parameter)
    return crf


def log_z_by_steps(crf: CRF, emissions: Tensor, n_chars: Tensor) -> Tensor:
    start, transitions, end = (x.clamp(min=_NEVER) for x in crf.scores())
    alpha = start + emissions[:, 0]
    for t in range(1, emissions.shape[1]):
        reached = torch.logsumexp(alpha[:, :, None] + transitions, 1) + emissions[:, t]
        alpha = torch.where((t < n_chars)[:, None], reached, alpha)
    return torch.logsumexp(alpha + end, 1)


def log_z_by_scan(crf: CRF, emissions: Tensor, n_chars: Tensor) -> Tensor:
    start, transitions, end = (x.clamp(min=_NEVER) for x in crf.scores())
    n_tags = len(start)
    nothing = emissions.new_full((n_tags, n_tags), _NEVER).fill_diagonal_(0.0)
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


def case(crf: CRF, length: int, *, n_rounds: int, device: str = "cpu") -> dict[str, Any]:
    rng = np.random.default_rng(length)
    lengths = np.sort(rng.integers(max(1, int(length * 0.8)), length + 1, N_BATCH))  # batches are of like length
    lengths[-1] = length
    n_chars = torch.from_numpy(lengths).to(device)
    emissions = (torch.randn(N_BATCH, length, len(crf.start)) * 3).to(device)
    own, arrays, listed = crf.in_numpy(), emissions.cpu().numpy(), lengths.tolist()
    forms: dict[str, Callable[[CRF, Tensor, Tensor], Tensor]] = {
        "steps": log_z_by_steps,
        "scan": log_z_by_scan,
        "shipped": CRF.log_partition,
    }
    values = {name: with_gradient(form, crf, emissions, n_chars) for name, form in forms.items()}
    for name in ("steps", "scan"):
        for found, expected in zip(values[name], values["shipped"], strict=True):
            torch.testing.assert_close(found, expected, rtol=1e-3, atol=2e-3)
    assert [path for [path] in one_by_one(own, "decode", arrays, listed)] == own.decode(arrays, listed)
    ways: dict[str, Callable[[], Any]] = {
        f"log Z, {name}": lambda form=form: with_gradient(form, crf, emissions, n_chars) for name, form in forms.items()
    }
    for name, method in (("best tags", "decode"), ("marginals", "marginals")):
        ways[f"{name}, one by one"] = lambda method=method: one_by_one(own, method, arrays, listed)
        ways[f"{name}, shipped"] = lambda method=method: getattr(own, method)(arrays, listed)
    taken = in_turns(ways, n_rounds=n_rounds, device=device)
    return {
        "n_chars": length,
        **{f"{name}_ms": timing.processor * 1e3 for name, timing in taken.items()},
        **{f"{name}_clock_ms": timing.clock * 1e3 for name, timing in taken.items()},
    }


def bench_crf(
    *, n_rounds: int = 7, threads: int = 1, lengths: tuple[int, ...] = LENGTHS, device: str = "cpu"
) -> dict[str, Any]:
    """Processor milliseconds a batch of every form, by length, and those on the clock."""
    use_threads(threads)
    crf = make_crf().to(device)
    return {
        "environment": environment(threads=threads, n_rounds=n_rounds, device=device),
        "n_sentences": N_BATCH,
        "n_tags": len(crf.start),
        "cases": [case(crf, length, n_rounds=n_rounds, device=device) for length in lengths],
    }


def main() -> None:
    parser = options(__doc__, n_rounds=7, n_threads=1)
    add_device_option(parser)
    args = parser.parse_args()
    result = bench_crf(n_rounds=args.rounds, threads=args.threads, device=args.device)
    on_gpu = args.device != "cpu"  # of which only the clock tells
    shown = [
        {
            name.removesuffix("_ms").removesuffix("_clock"): value
            for name, value in found.items()
            if name == "n_chars" or name.endswith("_clock_ms") == on_gpu
        }
        for found in result["cases"]
    ]
    size = f"{result['n_sentences']} sentences and {result['n_tags']} tags"
    clock = f"milliseconds on {result['environment']['device']}" if on_gpu else "processor milliseconds"
    report(f"{clock} for {size} (log Z with its gradient)", shown)
    write(result, args.json)


if __name__ == "__main__":
    main()
