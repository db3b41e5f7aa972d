"""Sentences a second of every architecture, one at a time and sixteen at a time, with the widths of a recipe (Weibo's).

Sentences are made up with the shape of Weibo's lattices, batches hold sentences of like size as prediction's do.
"forward" is a batch to tag scores, "predict" with the CRF's best tags besides; "mflops" are the million operations of
PyTorch's products for a sentence in batches of 16. Models take turns and each figure is the best of the rounds, so that
what else the machine does falls on all alike; the ratios are what counts. On a busy machine `--clock cpu` counts the
process's own seconds. Freed memory is kept, as `cige predict` keeps it.
"""

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any

import torch

from benchmarks.measure import in_turns
from benchmarks.speed.flat import SIZES, make_batch, weibo_nodes, with_vectors
from cige.data.batch import LatticeBatch
from cige.data.tags import tag_set
from cige.models.registry import ARCHITECTURES
from cige.models.tagger import Tagger
from cige.nn import native
from cige.nn.memory import keep_freed_memory
from cige.training.recipe import load_recipe

TABLES = {"models": "sentences a second, {clock} clock", "expected": "ratios of two speeds"}
FLAT = True
KNOWN = sorted(name for name in ARCHITECTURES if "bert" not in name)  # a BERT's own speed would be all to see
LABELS = [f"{kind}.{form}" for kind in ("GPE", "LOC", "ORG", "PER") for form in ("NAM", "NOM")]
BATCH_SIZES = (1, 16)
EXPECTED = (  # ratios of two speeds: (what, speed, speed that it is measured by, at least how many times)
    ("lattice_lstm at 16 by itself at 1", ("lattice_lstm", 16), ("lattice_lstm", 1), 5.0),
    ("nflat by flat, both at 16", ("nflat", 16), ("flat", 16), 1.5),
    ("dcsan by lattice_lstm, both at 16", ("dcsan", 16), ("lattice_lstm", 16), 3.0),
)


def bench(
    models: Annotated[Sequence[str], KNOWN, "architectures"] = tuple(KNOWN),
    *,
    sentences: Annotated[int, "how many of them"] = 64,
    rounds: int = 5,
    threads: int = 1,
    clock: Annotated[str, ("cpu", "wall"), "cpu counts seconds of the processor"] = "wall",
    device: str = "cpu",
    dataset: Annotated[str, "whose recipes have the widths"] = "weibo",
) -> dict[str, Any]:
    """Of each model its parameters and sentences per second, and the expected ratios."""
    keep_freed_memory()
    taggers = {name: make_tagger(name, device, dataset) for name in models}
    batches = make_batches(sentences, device)
    ways = {
        (name, kind, size): partial(read, tagger, batches[size], kind)
        for name, tagger in taggers.items()
        for size in BATCH_SIZES
        for kind in ("forward", "predict")
    }
    taken = in_turns(ways, n_rounds=rounds, device=device)
    speeds = {key: sentences / min(t.clocks if clock == "wall" else t.processors) for key, t in taken.items()}
    rows = [
        {"model": name, "n_parameters": n_parameters(tagger), "mflops": n_operations(tagger, batches[16]) / 1e6}
        | {f"{kind}_{size}": speeds[name, kind, size] for kind in ("forward", "predict") for size in BATCH_SIZES}
        for name, tagger in taggers.items()
    ]
    ratios = [
        {"what": what, "ratio": speeds[fast, "forward", n_fast] / speeds[slow, "forward", n_slow], "least": least}
        for what, (fast, n_fast), (slow, n_slow), least in EXPECTED
        if {fast, slow} <= taggers.keys()
    ]
    facts = {"clock": clock, "compiled_kernel": native.level() or "none", "recipes": dataset, "n_sentences": sentences}
    return facts | {"models": sorted(rows, key=lambda row: -row["forward_16"]), "expected": ratios}


def make_tagger(name: str, device: str = "cpu", dataset: str = "weibo") -> Tagger:
    """An untrained tagger as the recipe of that name for a data set has it, over random vectors."""
    torch.manual_seed(0)
    encoder = with_vectors(ARCHITECTURES[name].make_encoder(load_recipe(f"{dataset}/{name}").model, SIZES, None))
    tagger = Tagger(encoder=encoder, tags=tag_set(LABELS, "BMES"), output_dropout_prob=0.0)
    return tagger.eval().to(device)


def n_parameters(tagger: Tagger) -> int:
    """Without the vectors."""
    return sum(w.numel() for key, w in tagger.named_parameters() if not key.startswith("encoder.embeddings."))


def n_operations(tagger: Tagger, batches: list[LatticeBatch]) -> float:
    """Floating-point operations per sentence of PyTorch's products, with padding and without our compiled kernels."""
    from torch.utils.flop_counter import FlopCounterMode  # imports Triton, if it is installed

    with FlopCounterMode(display=False) as counter:
        for batch in batches:
            tagger(batch)
    return counter.get_total_flops() / sum(len(batch.chars) for batch in batches)


def make_batches(n_sentences: int, device: str = "cpu") -> dict[int, list[LatticeBatch]]:
    """The same sentences in batches of each size."""
    n_nodes = sorted(weibo_nodes(n_sentences))
    return {
        size: [make_batch(n_nodes[k : k + size], seed=k).to(device) for k in range(0, n_sentences, size)]
        for size in BATCH_SIZES
    }


@torch.inference_mode()
def read(tagger: Tagger, batches: list[LatticeBatch], kind: str) -> None:
    crf = tagger.crf.in_numpy()
    for batch in batches:
        emissions = tagger(batch).emissions.cpu()  # to the CPU in any case: then a GPU has finished
        if kind == "predict":
            crf.decode(emissions.numpy(), batch.n_chars.tolist())
