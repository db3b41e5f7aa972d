"""FLAT's encoder against a literal transcription of the paper's equations, same weights, one run.

Sentences are made up with the shape of Weibo's lattices (0.45 words a character, two to four characters a word).
The two forms take turns, so that a busy machine slows both; the ratio is what counts.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.measure import in_turns
from benchmarks.parts.literal_flat import literal_encode
from cige.data.batch import LatticeBatch, collate
from cige.data.vocabulary import EncodedLattice
from cige.models.flat import FlatConfig, FlatEncoder
from cige.nn import native
from cige.nn.embeddings import InputSizes, SplitEmbedding

TABLES = {"cases": "FLAT's encoder, compiled kernels: {compiled_kernel}"}
N_ROWS = 5000
SIZES = InputSizes(n_rows=(N_ROWS,) * 3, n_tuned=(N_ROWS,) * 3, widths=(50, 50, 50))


def bench(*, rounds: int = 7, threads: int = 2, device: str = "cpu") -> dict[str, Any]:
    """Per case the milliseconds of both forms, their ratio and largest difference."""
    encoder = make_encoder(FlatConfig()).to(device)
    weibo = weibo_nodes(16)
    cases = [
        ("Weibo-like, batch 1", [79], False),
        ("Weibo-like, batch 16", weibo, False),
        ("200 nodes, batch 8", [200] * 8, False),
        ("400 nodes, batch 4", [400] * 4, False),
        ("Weibo-like, batch 16", weibo, True),
    ]
    common: dict[str, Any] = {"n_rounds": rounds, "device": device}
    rows = [{"case": name} | compare(encoder, nodes, train=train, **common) for name, nodes, train in cases]
    return {"compiled_kernel": native.level() or "none", "cases": rows}


def compare(
    encoder: FlatEncoder, n_nodes: list[int], *, n_rounds: int, train: bool, device: str = "cpu"
) -> dict[str, Any]:
    batch = make_batch(n_nodes, seed=len(n_nodes)).to(device)
    forms: dict[str, Callable[[], Tensor]] = {"shipped": lambda: encoder(batch)}
    forms["literal"] = lambda: literal_encode(encoder, batch)
    with torch.no_grad():
        difference = float((forms["shipped"]() - forms["literal"]())[batch.char_mask].abs().max())

    def run(encode: Callable[[], Tensor]) -> None:
        if train:
            encoder.zero_grad()
            (encode() * batch.char_mask[:, :, None]).square().mean().backward()
        else:
            with torch.inference_mode():
                encode()

    ways = {name: partial(run, encode) for name, encode in forms.items()}
    taken = in_turns(ways, n_rounds=n_rounds, device=device)
    shipped, literal = taken["shipped"], taken["literal"]
    row = {"n_sentences": len(n_nodes), "n_nodes": max(n_nodes), "pass": "forward + backward" if train else "forward"}
    row |= {"literal_ms": literal.clock * 1e3, "shipped_ms": shipped.clock * 1e3}
    row |= {"ratio": literal.clock / shipped.clock, "processor_ratio": literal.processor / shipped.processor}
    return row | {"max_difference": difference}


def weibo_nodes(n: int) -> list[int]:
    """Nodes of sentences like Weibo's, with a mean of 79."""
    return np.clip(np.random.default_rng(0).gamma(2.2, 36, n), 10, 240).astype(int).tolist()


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
    return with_vectors(FlatEncoder(config=config, sizes=SIZES)).eval()


def with_vectors(encoder: Any) -> Any:
    """The encoder with random vectors in its tables."""
    for table in encoder.modules():
        if isinstance(table, SplitEmbedding):
            table.load_vectors(torch.randn(N_ROWS, 50))
    return encoder
