"""Training steps with freed memory kept by the process, as `cige train` keeps it, and given back, as malloc does.

A step is forward and backward of a batch of 16 made-up sentences with the shape of Weibo's lattices, the widths of each
model's Weibo recipe, one thread. Each way runs in processes of its own, turn by turn; a process counts its fastest pass
over four batches, of these the median is shown. Processor seconds, those of the system included.
"""

from collections.abc import Iterator, Sequence
from statistics import median
from typing import Annotated, Any

from benchmarks.measure import in_process, in_turns, megabytes, use_threads
from benchmarks.speed.models import KNOWN, make_batches, make_tagger
from cige.errors import CigeError
from cige.nn.memory import keep_freed_memory

TABLES = {"models": "a training step, processor milliseconds, and the most memory held"}
WAYS = ("given back", "kept")
N_PASSES = 5


def bench(
    models: Annotated[Sequence[str], KNOWN, "architectures"] = tuple(KNOWN), *, rounds: int = 3
) -> Iterator[dict[str, Any]]:
    """A row a model: milliseconds a step and megabytes, each way."""
    for name in models:
        turns = [{way: in_process(run_passes, name, way) for way in WAYS} for _ in range(rounds)]
        ms = {way: median(turn[way]["seconds"] for turn in turns) * 1e3 for way in WAYS}
        row = {"model": name} | {f"{way}, ms": ms[way] for way in WAYS}
        row["times as fast"] = ms["given back"] / ms["kept"]
        yield row | {f"{way}, MB": median(turn[way]["bytes"] for turn in turns) / 1e6 for way in WAYS}


def run_passes(name: str, way: str) -> dict[str, float]:
    """In a process of its own: processor seconds a step, and the most memory that it held, in bytes."""
    if way == "kept" and not keep_freed_memory():
        raise CigeError("this allocator cannot keep freed memory, or MALLOC_* in the environment forbids it")
    use_threads(1)
    tagger, batches = make_tagger(name).train(), make_batches(64)[16]

    def steps() -> None:
        for batch in batches:
            tagger.zero_grad(set_to_none=True)
            tagger(batch).emissions.square().mean().backward()

    taken = in_turns({way: steps}, n_rounds=N_PASSES)[way].processors
    return {"seconds": min(taken) / len(batches), "bytes": megabytes()["VmHWM"] * 1024**2}
