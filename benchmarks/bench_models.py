"""Sentences a second of every architecture, one at a time and sixteen at a time, with the widths of a recipe (Weibo's).

    python benchmarks/bench_models.py --json models.json

Sentences are made up with the shape of Weibo's lattices, batches hold sentences of like size as prediction's do.
"forward" is a batch to tag scores, "predict" with the CRF's best tags besides. Models take turns and each figure is
the best of the rounds, so that what else the machine does falls on all alike; the ratios are what counts. On a busy
machine `--clock cpu` counts the process's own seconds. Freed memory is kept, as `cige predict` keeps it.
"""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from bench_flat import N_ROWS, make_batch

from cige.data.batch import LatticeBatch
from cige.data.tags import tag_set
from cige.json_text import to_json
from cige.models.registry import ARCHITECTURES
from cige.models.tagger import Tagger
from cige.nn import native
from cige.nn.embeddings import InputSizes, SplitEmbedding
from cige.nn.memory import keep_freed_memory
from cige.training.recipe import load_recipe

LABELS = [f"{kind}.{form}" for kind in ("GPE", "LOC", "ORG", "PER") for form in ("NAM", "NOM")]
BATCH_SIZES = (1, 16)
CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}
EXPECTED = (  # ratios of two speeds: (what, speed, speed that it is measured by, at least how many times)
    ("lattice_lstm at 16 by itself at 1", ("lattice_lstm", "forward", 16), ("lattice_lstm", "forward", 1), 5.0),
    ("nflat by flat, both at 16", ("nflat", "forward", 16), ("flat", "forward", 16), 1.5),
    ("dcsan by lattice_lstm, both at 16", ("dcsan", "forward", 16), ("lattice_lstm", "forward", 16), 3.0),
)


def make_tagger(name: str, device: str = "cpu", dataset: str = "weibo") -> Tagger:
    """An untrained tagger as the recipe of that name for a data set has it, over random vectors."""
    recipe = load_recipe(f"{dataset}/{name}")
    torch.manual_seed(0)
    sizes = InputSizes(n_rows=(N_ROWS,) * 3, n_tuned=(N_ROWS,) * 3, widths=(50, 50, 50))
    encoder = ARCHITECTURES[name].make_encoder(recipe.model, sizes, None)
    for table in encoder.modules():
        if isinstance(table, SplitEmbedding):
            table.load_vectors(torch.randn(N_ROWS, 50))
    tagger = Tagger(encoder=encoder, tags=tag_set(LABELS, "BMES"), output_dropout_prob=0.0)
    return tagger.eval().to(device)


def make_batches(n_sentences: int, device: str = "cpu") -> dict[int, list[LatticeBatch]]:
    """The same sentences in batches of each size; their nodes are distributed as Weibo's, with a mean of 79."""
    sizes = np.random.default_rng(0).gamma(2.2, 36, n_sentences)
    n_nodes = sorted(np.clip(sizes, 10, 240).astype(int).tolist())
    return {
        size: [make_batch(n_nodes[k : k + size], seed=k).to(device) for k in range(0, n_sentences, size)]
        for size in BATCH_SIZES
    }


@torch.inference_mode()
def seconds(tagger: Tagger, batches: list[LatticeBatch], *, clock: str, predict: bool) -> float:
    crf, now = tagger.crf.in_numpy(), CLOCKS[clock]
    begin = now()
    for batch in batches:
        emissions = tagger(batch).emissions.cpu()  # to the CPU in any case: then a GPU has finished
        if predict:
            crf.decode(emissions.numpy(), batch.n_chars.tolist())
    return now() - begin


def bench_models(
    names: Sequence[str],
    *,
    n_sentences: int = 64,
    n_rounds: int = 5,
    threads: int = 1,
    clock: str = "wall",
    device: str = "cpu",
    dataset: str = "weibo",
) -> dict[str, Any]:
    """All models as a JSON-ready dict: of each its parameters and sentences per second, and the expected ratios."""
    torch.set_num_threads(threads)
    taggers = {name: make_tagger(name, device, dataset) for name in names}
    batches = make_batches(n_sentences, device)
    best: dict[tuple[str, str, int], float] = {}
    for round_number in range(n_rounds + 1):  # the first is warm-up
        for name, tagger in taggers.items():
            for size in BATCH_SIZES:
                for kind in ("forward", "predict"):
                    taken = seconds(tagger, batches[size], clock=clock, predict=kind == "predict")
                    if round_number:
                        best[name, kind, size] = min(taken, best.get((name, kind, size), taken))
    speeds = {key: n_sentences / taken for key, taken in best.items()}
    rows = [
        {
            "model": name,
            "n_parameters": sum(
                w.numel() for key, w in tagger.named_parameters() if not key.startswith("encoder.embeddings.")
            ),
            **{f"{kind}_{size}": speeds[name, kind, size] for kind in ("forward", "predict") for size in BATCH_SIZES},
        }
        for name, tagger in taggers.items()
    ]
    return {
        "machine": platform.processor() or platform.machine(),
        "threads": threads,
        "clock": clock,
        "device": torch.cuda.get_device_name() if device.startswith("cuda") else device,
        "torch": torch.__version__,
        "compiled_kernel": native.level() or "none",
        "recipes": dataset,
        "n_sentences": n_sentences,
        "models": rows,
        "expected": [
            {"what": what, "ratio": speeds[fast] / speeds[slow], "least": least}
            for what, fast, slow, least in EXPECTED
            if fast[0] in taggers and slow[0] in taggers
        ],
    }


def main() -> None:
    known = sorted(name for name in ARCHITECTURES if "bert" not in name)  # a BERT's own speed would be all to see
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", help=f"some of {', '.join(known)} (default: all)")
    parser.add_argument("--sentences", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--clock", choices=sorted(CLOCKS), default="wall")
    parser.add_argument("--device", default="cpu", help="cpu (default) or cuda")
    parser.add_argument("--dataset", default="weibo", help="whose recipes have the widths (default: weibo)")
    parser.add_argument("--json", help="write the result to this file")
    arguments = parser.parse_args()
    unknown = sorted(set(arguments.models) - set(known))
    if unknown:
        parser.error(f"no model {', '.join(unknown)}; expected some of {', '.join(known)}")
    keep_freed_memory()
    result = bench_models(
        arguments.models or known,
        n_sentences=arguments.sentences,
        n_rounds=arguments.rounds,
        threads=arguments.threads,
        clock=arguments.clock,
        device=arguments.device,
        dataset=arguments.dataset,
    )
    print(f"torch {result['torch']}, {result['device']}, {result['threads']} threads, {result['clock']} clock")
    print("sentences a second")
    print(f"{'':14} {'parameters':>10}   {'forward':>17}  {'':>6}  {'predict':>17}")
    print(f"{'':14} {'':>10}   {'at 1':>8} {'at 16':>8}  {'16 / 1':>6}  {'at 1':>8} {'at 16':>8}")
    for row in sorted(result["models"], key=lambda row: -row["forward_16"]):
        print(
            f"{row['model']:14} {row['n_parameters']:10,}   {row['forward_1']:8.0f} {row['forward_16']:8.0f}  "
            f"{row['forward_16'] / row['forward_1']:6.1f}  {row['predict_1']:8.0f} {row['predict_16']:8.0f}"
        )
    for row in result["expected"]:
        print(f"{row['what']}: {row['ratio']:.1f}x, expected at least {row['least']:g}x")
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            file.write(to_json(result, indent=1))


if __name__ == "__main__":
    main()
