"""Speed of FLAT's encoder against the literal equations, same weights, one run.

    python benchmarks/bench_flat.py --json flat.json
    python benchmarks/bench_flat.py --device cuda --json flat_gpu.json           where there is a GPU

Sentences are made up with the shape of Weibo's lattices (0.45 words a character, two to four characters a word).
The two forms take turns, so that a busy machine slows both; the ratio is what counts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from literal_flat import literal_encode
from measure import add_device_option, environment, in_turns, options, report, use_threads, write

from cige.data.batch import LatticeBatch, collate
from cige.data.vocabulary import EncodedLattice
from cige.models.flat import FlatConfig, FlatEncoder
from cige.nn import native
from cige.nn.embeddings import InputSizes

N_ROWS = 5000


def make_batch(n_nodes: list[int], seed: int) -> LatticeBatch:
    rng = np.random.default_rng(seed)
    lattices = []
    for n in n_nodes:
        n_chars = max(5, round(n / 1.45))
        n_words = max(0, n - n_chars)
        reach = rng.choice([2, 3, 4], n_words, p=[0.75, 0.15, 0.1])
        starts = rng.integers(0, n_chars - 4, n_words)
        rows = [rng.integers(3, N_ROWS, k) for k in (n_chars, n_chars, n_words)]
        lattices.append(EncodedLattice(*rows, starts, starts + reach, *[np.zeros(n_words, int)] * 2, "字" * n_chars))
    return collate(lattices)


def make_encoder(config: FlatConfig) -> FlatEncoder:
    torch.manual_seed(0)
    sizes = InputSizes(n_rows=(N_ROWS,) * 3, n_tuned=(N_ROWS,) * 3, widths=(50, 50, 50))
    encoder = FlatEncoder(config=config, sizes=sizes)
    for table in (encoder.embeddings.char, encoder.embeddings.bigram, encoder.embeddings.word):
        table.load_vectors(torch.randn(N_ROWS, 50))
    return encoder.eval()


def compare(
    encoder: FlatEncoder, name: str, n_nodes: list[int], *, n_rounds: int, train: bool, device: str = "cpu"
) -> dict[str, Any]:
    batch = make_batch(n_nodes, seed=len(n_nodes)).to(device)
    with torch.no_grad():
        mine, literal = encoder(batch), literal_encode(encoder, batch)
    real = batch.char_mask
    difference = float((mine - literal)[real].abs().max())

    def run(encode: Callable[[], torch.Tensor]) -> Callable[[], Any]:
        def forward() -> None:
            with torch.inference_mode():
                encode()

        def step() -> None:
            encoder.zero_grad()
            (encode() * real[:, :, None]).square().mean().backward()

        return step if train else forward

    taken = in_turns(
        {"shipped": run(lambda: encoder(batch)), "literal": run(lambda: literal_encode(encoder, batch))},
        n_rounds=n_rounds,
        device=device,
    )
    shipped, plain = taken["shipped"], taken["literal"]
    return {
        "case": name,
        "n_sentences": len(n_nodes),
        "n_nodes": int(max(n_nodes)),
        "pass": "forward + backward" if train else "forward",
        "literal_ms": plain.clock * 1e3,
        "shipped_ms": shipped.clock * 1e3,
        "ratio": plain.clock / shipped.clock,
        "processor_ratio": plain.processor / shipped.processor,
        "max_difference": difference,
    }


def bench_flat(*, n_rounds: int = 7, threads: int = 2, device: str = "cpu") -> dict[str, Any]:
    """All cases as a JSON-ready dict: per case the milliseconds of both forms, their ratio and largest difference."""
    use_threads(threads)
    rng = np.random.default_rng(0)
    weibo = np.clip(rng.gamma(2.2, 36, 16), 10, 240).astype(int).tolist()  # mean 79 nodes
    encoder = make_encoder(FlatConfig()).to(device)
    cases = [
        ("Weibo-like, batch 1", [79], False),
        ("Weibo-like, batch 16", weibo, False),
        ("200 nodes, batch 8", [200] * 8, False),
        ("400 nodes, batch 4", [400] * 4, False),
        ("Weibo-like, batch 16", weibo, True),
    ]
    return {
        "environment": environment(threads=threads, n_rounds=n_rounds, device=device),
        "compiled_kernel": native.level() or "none",
        "cases": [
            compare(encoder, name, nodes, n_rounds=n_rounds, train=train, device=device) for name, nodes, train in cases
        ],
    }


def main() -> None:
    parser = options(__doc__, n_rounds=7)
    add_device_option(parser)
    args = parser.parse_args()
    result = bench_flat(n_rounds=args.rounds, threads=args.threads, device=args.device)
    kernels, device = result["compiled_kernel"], result["environment"]["device"]
    where = f"compiled kernels: {kernels}" if args.device == "cpu" else device
    report(f"FLAT's encoder, {where}", result["cases"])
    write(result, args.json)


if __name__ == "__main__":
    main()
