"""What a character costs Lattice-BERT in a step of pre-training, by what it costs BERT-our at equal width and length.

A pass is all that training does for some instances: they are made and masked, then the losses and their gradient. On a
GPU they are made beforehand, as a training run has processes that make them while the GPU is at work. An update
(clipping, Adam) is shared by --batch instances, those of the size's recipe. Both models read the same made-up text, in
documents of 128 (or --n-chars) characters with 35% more lattice tokens; "encoder" is a pass through the network
without its vocabulary (a table of 102,128 rows to 21,128). "longer" is BERT-our over as many characters as the other
has lattice tokens, an instance by an instance: how the paper got its 1.48. On a GPU "share of peak" is arithmetic a
second by that of a large matrix product. Freed memory is kept, as pre-training keeps it. A character should cost
at most 1.35 times as much.
"""

import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import cycle
from typing import Annotated, Any

import numpy as np
import torch
from torch import nn

from benchmarks.measure import in_turns
from cige.engine.optimizer import make_optimizer
from cige.engine.settings import OptimizerConfig
from cige.lattice_bert.encoder.costs import describe
from cige.lattice_bert.encoder.heads import LatticeBertForPreTraining
from cige.lattice_bert.encoder.network_config import BASELINE, PAPER_N_PIECES, PAPER_N_WORDS, SIZES, LatticeBertConfig
from cige.lattice_bert.pretraining.dataset import InstanceConfig, InstanceSet, TokenIds
from cige.lattice_bert.pretraining.objective import MaskedBatch, collate_masked
from cige.lattice_bert.pretraining.packing import Room
from cige.lattice_bert.pretraining.shards import Shard
from cige.nn.contexts import autocast
from cige.nn.memory import keep_freed_memory

TABLES = {"rows": "{size}, {n_chars} characters, {micro_batch} instances a pass, {batch:,} an update, {device}"}
MOST, PAPER = 1.35, 1.48  # times the cost of a character: what this code should keep to, what the paper reports
BATCH = {"tiny": 256, "lite": 8192, "base": 8192}
TOKENS_PER_CHAR = 1.35
WORD_LENGTHS, SHARES = (2, 3, 4, 5, 6), (72, 15, 10, 2, 1)
N_INSTANCES = 512
N_READY = 4  # batches made beforehand for a GPU
GPU = "cuda" if torch.cuda.is_available() else "cpu"
Way = Callable[[], None]


def bench(
    *,
    size: Annotated[str, SIZES, "of the networks"] = "lite",
    n_chars: Annotated[int, "characters an instance"] = 128,
    micro_batch: Annotated[int, "instances a pass"] = 32,
    batch: Annotated[int | None, "instances an update (that of the recipe)"] = None,
    precision: Annotated[str, ("fp32", "bf16"), "of passes"] = "fp32",
    device: str = GPU,
    rounds: int = 5,
    threads: int = 2,
) -> dict[str, Any]:
    """What an instance costs each model."""
    keep_freed_memory()
    batch = batch or BATCH[size]
    longer = round(n_chars * TOKENS_PER_CHAR)
    config = replace(SIZES[size], max_positions=max(SIZES[size].max_positions, longer + 3, n_chars + 3))
    plain = replace(config, n_tokens=PAPER_N_PIECES, **BASELINE)
    # name -> the network, and what it reads
    forms = {
        "lattice": (config, make_instances(n_chars, with_words=True), n_chars),
        "characters": (plain, make_instances(n_chars, with_words=False), n_chars),
        "characters, longer": (plain, make_instances(longer, with_words=False), longer),
    }
    make: dict[str, Any] = {"precision": precision, "device": device, "size": micro_batch}
    ways: dict[str, Way] = {}
    for name, (own, instances, _) in forms.items():
        ways[name], ways[f"{name}, update"] = training(own, instances, **make)
    for name in ("lattice", "characters"):
        ways[f"encoder, {name}"] = encoding(*forms[name][:2], **make)
    on_gpu = device.startswith("cuda")  # elsewhere other processes hardly change the processor's seconds
    taken = in_turns(ways, n_rounds=rounds, device=device)
    seconds = {name: t.clock if on_gpu else t.processor for name, t in taken.items()}
    updates = {name.removesuffix(", update"): s for name, s in seconds.items() if name.endswith(", update")}
    # Of an instance; each holds the same text, but for those of "longer".
    cost = {
        name: s / micro_batch + updates.get(name, 0.0) / batch for name, s in seconds.items() if "update" not in name
    }
    rows = []
    for name, own in cost.items():
        length, base = longer if "longer" in name else n_chars, cost["encoder, " * ("encoder" in name) + "characters"]
        row: dict[str, Any] = {"what": name, "characters a second": length / own, "ms an instance": 1e3 * own}
        row["ms an update"] = 1e3 * updates[name] if name in updates else None
        rows.append(row | {"times the cost": own / base})
    ratio = cost["lattice"] / cost["characters"]
    print(f"expected: at most {MOST} times the cost of a character (the paper: {PAPER}): {_met(ratio, ratio <= MOST)}")
    result: dict[str, Any] = {"rows": rows, "ratio": ratio, "most": MOST, "micro_batch": micro_batch, "batch": batch}
    result |= {"device": device, "size": size, "n_chars": n_chars}
    if on_gpu:
        flops = describe(config, n_chars=n_chars)["training_flops"] * n_chars / cost["lattice"]
        result["share_of_peak"] = share = flops / peak_flops(precision)
        print(f"expected: at least 0.4 of the peak of matrix products: {_met(share, share >= 0.4)}")
    return result


def _met(figure: float, is_met: bool) -> str:
    return f"{figure:.2f}, {'met' if is_met else 'missed'}"


def training(
    config: LatticeBertConfig, instances: InstanceSet, *, size: int, precision: str, device: str
) -> tuple[Way, Way]:
    """Passes and updates over instances that are made as they are read."""
    torch.manual_seed(0)
    network = LatticeBertForPreTraining(config).to(device)
    optimizer = make_optimizer(network, OptimizerConfig(learning_rate=6e-4, epsilon=1e-6))
    batches = batches_for(instances, size, device=device)

    def step() -> None:
        batch = next(batches).to(device)
        network.zero_grad(set_to_none=True)
        with autocast(network, precision):
            loss = network(batch.tokens, batch.positions, batch.targets, batch.sentence_labels).total
        loss.backward()

    def update() -> None:
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()

    return step, update


def encoding(config: LatticeBertConfig, instances: InstanceSet, *, size: int, precision: str, device: str) -> Way:
    """The encoder alone, forward and backward, every token of the last layer too."""
    torch.manual_seed(0)
    network = LatticeBertForPreTraining(replace(config, n_tokens=PAPER_N_PIECES)).to(device).bert
    tokens = make_batch(instances, 0, size).tokens
    batch = replace(tokens, ids=tokens.ids.clamp(max=PAPER_N_PIECES - 1)).to(device)

    def step() -> None:
        with autocast(network, precision):
            output = network(batch)
        (output.hidden.float().sum() + output.pooled.float().sum()).backward()
        network.zero_grad(set_to_none=True)

    return step


def make_instances(n_chars: int, *, with_words: bool) -> InstanceSet:
    """Documents of two lines that fill an instance each, over the paper's vocabulary."""
    rng = random.Random(0)
    lengths = [(n_chars - 3) // 2, n_chars - 3 - (n_chars - 3) // 2] * N_INSTANCES
    n_tokens_of = [round(length * TOKENS_PER_CHAR) for length in lengths]
    spans: list[tuple[int, int]] = []
    first = 0
    for length, n_tokens in zip(lengths, n_tokens_of, strict=True):
        own = {(place, 1) for place in range(length)}
        while len(own) < n_tokens:
            (n,) = rng.choices(WORD_LENGTHS, SHARES)
            own.add((rng.randrange(length - n + 1), n))
        spans += sorted(((first + s, n) for s, n in own), key=lambda span: (span[0] + span[1], span[1]))
        first += length
    starts, sizes = np.array(spans).T
    draw = np.random.default_rng(0)
    pieces, words = draw.integers(5, PAPER_N_PIECES, len(sizes)), draw.integers(0, PAPER_N_WORDS, len(sizes))
    shard = Shard(
        ids=np.where(sizes == 1, pieces, PAPER_N_PIECES + words).astype(np.int32),
        starts=starts.astype(np.int32),
        lengths=sizes.astype(np.uint16),
        line_tokens=np.cumsum([0, *n_tokens_of]),
        line_pieces=np.cumsum([0, *lengths]),
        document_lines=np.arange(0, len(lengths) + 1, 2),
        word_starts=draw.random(first) < 0.6,
    )
    config = InstanceConfig(use_words=with_words, masking="segments" if with_words else "words", short_prob=0.0)
    ids = TokenIds(cls_id=2, sep_id=3, mask_id=4, n_ids=PAPER_N_PIECES + PAPER_N_WORDS * with_words)
    return InstanceSet([shard], config=config, ids=ids, room=Room(n_chars, 2 * n_chars), seed=0)


def make_batch(instances: InstanceSet, number: int, size: int) -> MaskedBatch:
    return collate_masked([instances.masked(0, (number * size + k) % N_INSTANCES) for k in range(size)])


def batches_for(instances: InstanceSet, size: int, *, device: str) -> Iterator[MaskedBatch]:
    """Batches without end; made one by one for a CPU, and a few of them beforehand for a GPU."""
    numbers = range(sys.maxsize) if device == "cpu" else range(N_READY)
    batches = (make_batch(instances, number, size) for number in numbers)
    return batches if device == "cpu" else cycle(list(batches))


def peak_flops(precision: str) -> float:
    """Operations a second of a product of two large matrices on the GPU."""
    n, dtype = 8192, torch.bfloat16 if precision == "bf16" else None
    a, b = (torch.randn(n, n, device="cuda", dtype=dtype) for _ in range(2))
    return 2 * n**3 / min(in_turns({"": lambda: a @ b}, n_rounds=20, device="cuda")[""].clocks)
