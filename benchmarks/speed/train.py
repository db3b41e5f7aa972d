"""Training: speed of a step against the literal equations, padding of the bucketed batches, memory by nodes.

steps     the Weibo recipe's own batches: forward, CRF, backward, clipping and optimiser, with the shipped encoder and
          with a literal transcription of the paper's equations (without dropout) in its place.
padding   share of what an epoch computes that is padding, over the data sets, with and without sorting by length.
memory    what forward and backward of one batch add to the memory of a fresh process, beside what `max_pairs` of a
          recipe counts on (PREDICTED_BYTES a node pair, sentences x longest squared).
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.measure import in_process, in_turns, megabytes
from benchmarks.parts.literal_flat import literal_encode
from benchmarks.speed.flat import make_batch, make_encoder
from cige.data.batch import LatticeBatch
from cige.engine.optimizer import clip_gradients, make_optimizer
from cige.engine.plan import BatchPlan
from cige.lattice.lattice import build_lattice
from cige.lexicon.lexicon import Lexicon
from cige.lexicon.vectors import VectorTable
from cige.models.flat import FlatConfig
from cige.training.dataset import TrainingSet
from cige.training.recipe import Recipe, load_recipe
from cige.training.setup import set_up
from cige.training.sources import golds_of, read_data

TABLES = {
    "steps": "a step of the Weibo recipe, milliseconds",
    "padding": "padding in the first epoch, percent",
    "memory": "memory that forward and backward of a batch add, MB",
}
DATASETS = ("weibo", "resume", "ecommerce", "cluener", "msra")
N_STEPS = 6
PREDICTED_BYTES = 250  # a node pair in training; recipes and BatchConfig.max_pairs speak of 0.25 kB
SHAPES = ((8, 50), (8, 100), (8, 200), (8, 300), (8, 400), (4, 500), (1, 1000))  # sentences, nodes
LITERAL_PAIRS = 1_500_000  # the literal form takes about 6.4 kB a pair: up to 10 GB


def bench(*, data_dir: Path, rounds: int = 3, threads: int = 2) -> dict[str, Any]:
    """All three parts."""
    steps = [bench_steps(data_dir, n_rounds=rounds)]
    return {"memory": bench_memory(), "padding": bench_padding(data_dir), "steps": steps}


def plan_of(recipe: Recipe, n_nodes: np.ndarray, *, pool_batches: int | None = None) -> BatchPlan:
    batches = recipe.batches
    return BatchPlan(n_nodes, batches if pool_batches is None else replace(batches, pool_batches=pool_batches), seed=1)


def bench_steps(data_dir: Path, *, n_rounds: int, n_steps: int = N_STEPS) -> dict[str, Any]:
    recipe = load_recipe("weibo/flat")
    setup = set_up(recipe, seed=1, data_dir=data_dir)
    tagger, encoder = setup.tagger.train(), setup.tagger.encoder
    optimizer = make_optimizer(tagger, recipe.optimizer)
    golds = golds_of(setup.sources, tagger.tags, recipe.data.scheme, setup.labels)
    options: dict[str, Any] = {"vocabulary": setup.vocabulary, "golds": golds, "regime": recipe.user_words, "seed": 1}
    train_set = TrainingSet(setup.train, setup.train_lattices, **options)
    epoch = plan_of(recipe, train_set.n_nodes(0)).batches(0)
    batches = [train_set.collate([train_set.example(number, 0) for number in batch]) for batch in epoch[:n_steps]]

    def train(forward: Callable[[LatticeBatch], torch.Tensor]) -> None:
        encoder.forward = forward
        for batch in batches:
            optimizer.zero_grad()
            tagger.loss(batch).backward()
            clip_gradients(tagger.parameters(), recipe.optimizer)
            optimizer.step()

    shipped: Any = encoder.forward
    ways = {"shipped": lambda: train(shipped), "literal": lambda: train(lambda batch: literal_encode(encoder, batch))}
    taken = in_turns(ways, n_rounds=n_rounds)
    row: dict[str, Any] = {"n_steps": n_steps, "steps_in_an_epoch": len(epoch)}
    for what, of_turns in (("", "clock"), ("processor_", "processor")):
        seconds = {name: getattr(t, of_turns) for name, t in taken.items()}
        row |= {f"{name}_{what}ms": s / n_steps * 1e3 for name, s in seconds.items()}
        row[f"{what}ratio"] = seconds["literal"] / seconds["shipped"]
    return row


def bench_padding(data_dir: Path) -> list[dict[str, Any]]:
    """Shares in percent of node pairs (attention) and of nodes (all else) that are padding, by data set."""
    rows = []
    lexicons: dict[str, Any] = {}
    for dataset in DATASETS:
        recipe = load_recipe(f"{dataset}/flat")
        name = recipe.vectors.word
        if name not in lexicons:
            words = VectorTable.load(data_dir / name).words
            lexicons[name] = Lexicon.from_words(word for word in words if len(word) >= 2).snapshot()
        train, _ = read_data(recipe.data, data_dir)
        n_nodes = np.array([build_lattice(s.text, lexicons[name]).n_nodes for s in train], np.int64)
        row = {"dataset": dataset, "n_sentences": len(train), "nodes": float(n_nodes.mean())}
        row |= {"longest": int(n_nodes.max()), "batch_size": recipe.batches.batch_size}
        row["pool_batches"] = recipe.batches.pool_batches
        for how, plan in (("", plan_of(recipe, n_nodes)), ("_shuffled", plan_of(recipe, n_nodes, pool_batches=0))):
            row[f"pairs_padded{how}_%"] = 100 * plan.padding_share()
            row[f"nodes_padded{how}_%"] = 100 * padded_nodes(plan, n_nodes)
        rows.append(row)
    return rows


def padded_nodes(plan: BatchPlan, n_nodes: np.ndarray) -> float:
    batches = [n_nodes[batch] for batch in plan.batches(0)]
    return 1 - sum(int(n.sum()) for n in batches) / sum(len(n) * int(n.max()) for n in batches)


def bench_memory(shapes: tuple[tuple[int, int], ...] = SHAPES) -> list[dict[str, Any]]:
    """Megabytes that a batch adds in each form, and what was predicted for the shipped one."""
    rows = []
    for n_sentences, n_nodes in shapes:
        n_pairs = n_sentences * n_nodes**2
        forms = ["shipped", *(["literal"] if n_pairs <= LITERAL_PAIRS else [])]
        taken = {form: added_bytes(n_sentences, n_nodes, form) / 1e6 for form in forms}
        row: dict[str, Any] = {"n_sentences": n_sentences, "n_nodes": n_nodes, "n_pairs": n_pairs}
        row |= {"predicted_mb": n_pairs * PREDICTED_BYTES / 1e6, "shipped_mb": taken["shipped"]}
        row["literal_mb"] = taken.get("literal")
        rows.append(row | {"ratio": taken["literal"] / taken["shipped"] if "literal" in taken else None})
    return rows


def added_bytes(n_sentences: int, n_nodes: int, form: str) -> float:
    return in_process(memory_step, n_sentences, n_nodes, form, MALLOC_TRIM_THRESHOLD_="0")


def memory_step(n_sentences: int, n_nodes: int, form: str) -> float:
    """In a process of its own: bytes that one forward and backward adds, after one on two small sentences."""
    torch.set_num_threads(1)
    encoder = make_encoder(FlatConfig()).train()
    encode = encoder if form == "shipped" else lambda batch: literal_encode(encoder, batch)
    encode(make_batch([8, 8], seed=0)).square().mean().backward()
    batch = make_batch([n_nodes] * n_sentences, seed=1)
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")  # man 5 proc: resets VmHWM
    before = megabytes()["VmHWM"]
    encode(batch).square().mean().backward()
    return (megabytes()["VmHWM"] - before) * 1024**2
