"""Damaged and odd input for all file readers and the matcher, and what takes long or much memory.

All but a right answer or a CigeError of one line is a fault. Sound files are damaged by chance: bytes are changed, put
in and taken out, pieces are repeated and exchanged with other files, numbers grow. `--seed` gives the same inputs
again. With `--atheris` (pip install atheris) inputs that reach new code are kept and damaged further; the targets then
run one after the other, --seconds each, in processes of their own.
"""

import random
import subprocess
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from benchmarks.measure import megabytes
from cige.errors import CigeError

if TYPE_CHECKING:  # imported late, so that atheris can prepare what is imported
    from benchmarks.parts.targets import Target

PIECES = (
    *(b"\x00", b"\xff", b"\xed\xa0\x80", b"9" * 30, b"9" * 5000, b"[" * 3000, b'{"a":' * 3000, b"\\ud83d"),
    *(
        x.encode()
        for x in ("\u2028", "\ufeff", "😀", "　", "\r", "\n\n", "\t", *',"{}[]', "null", "true", "NaN", "-1", "0")
    ),
    *(x.encode() for x in ("1e999", "-0.5", "B-", "M-X", "O", "T1\t", '"start": ', '"labels": ', "text")),
)
MOST_BYTES = 100_000  # of an input; longer seeds are read as they are
SLOW_S = 2.0  # an input that takes longer is reported: damage should not make a reader slow
MUCH_MB = 400.0  # an input that needs more memory than all before it by so much is reported


def bench(
    *,
    seconds: Annotated[float, "of all targets, or of each with --atheris"] = 60,
    seed: int = 0,
    only: Annotated[Sequence[str], "readers whose names begin so"] = (),
    faults: Annotated[Path, "where inputs are kept"] = Path("faults"),
    atheris: Annotated[bool, "let atheris choose the inputs"] = False,
    corpus: Annotated[Path, "what atheris keeps"] = Path("corpus"),
    atheris_target: Annotated[str | None, "run this target under atheris in this process"] = None,
) -> dict[str, Any] | None:
    """How many distinct faults there were."""
    if atheris_target:
        guide(atheris_target, seconds, seed, corpus, faults)
        return None
    from benchmarks.parts.odd_texts import scratch
    from benchmarks.parts.targets import targets

    with scratch() as folder:
        found = targets(folder, large=True)
        chosen = {name: x for name, x in found.items() if not only or name.startswith(tuple(only))}
        if not chosen:
            raise CigeError(f"--only: expected beginnings of {', '.join(found)}")
        options = [f"--seconds={seconds}", f"--seed={seed}", f"--corpus={corpus}", f"--faults={faults}"]
        return {"faults": guided(chosen, options) if atheris else fuzz(chosen, seconds, seed, faults)}


def next_input(target: "Target", others: Sequence[bytes], rng: random.Random) -> bytes:
    """A seed that is damaged by chance, or odd input of the right form, which may be damaged too."""
    if target.made is not None and rng.random() < 0.6:
        content = target.made(rng)
        if rng.random() < 0.8:
            return content
    else:
        content = rng.choice([seed for seed in target.seeds if len(seed) <= MOST_BYTES])
    return damaged(content, others, rng)


def damaged(content: bytes, others: Sequence[bytes], rng: random.Random) -> bytes:
    """The content after one to six changes."""
    made = bytearray(content)
    for _ in range(rng.randint(1, 6)):
        place = rng.randrange(len(made) + 1)
        end = min(len(made), place + rng.choice((1, 1, 2, 4, 16, 64)))
        change = rng.randrange(7)
        if change == 0 and made:
            made[place % len(made)] = rng.randrange(256)
        elif change == 1:
            made[place:place] = rng.choice(PIECES)
        elif change == 2:
            del made[place:end]
        elif change == 3:
            made[place:place] = made[place:end] * rng.randint(1, 4)
        elif change == 4:
            made[place:end] = rng.choice(PIECES)
        elif change == 5:
            other = rng.choice(others)
            start = rng.randrange(len(other) + 1)
            made[place:end] = other[start : start + rng.randint(1, 40)]
        else:
            made[place:] = made[place : max(place, len(made) - rng.randint(1, 30))]
    return bytes(made[:MOST_BYTES])


def peak_mb() -> float:
    """The most memory that the process has had at once."""
    return megabytes()["VmHWM"]


def fuzz(found: dict[str, "Target"], seconds: float, seed: int, folder: Path) -> int:
    """Damage in turns until the time is over; returns how many distinct faults there were."""
    from benchmarks.parts.targets import run

    rng, until = random.Random(seed), time.monotonic() + seconds
    others = [content for target in found.values() for content in target.seeds if content]
    faults: set[tuple[str, str]] = set()
    n_inputs = 0
    inputs = {name: list(target.seeds) for name, target in found.items()}
    while not n_inputs or time.monotonic() < until:
        for name, target in found.items():
            content = inputs[name].pop() if inputs[name] else next_input(target, others, rng)
            started, room = time.monotonic(), peak_mb()
            n_inputs += 1
            try:
                run(target, content)
                took, grown = time.monotonic() - started, peak_mb() - room
                if took < SLOW_S and grown < MUCH_MB:
                    continue
                where, told = "slow" if took >= SLOW_S else "large", f"{took:.1f} s, {grown:,.0f} MB more memory"
            except Exception as fault:
                last = traceback.extract_tb(fault.__traceback__)[-1]
                where, told = f"{last.filename}:{last.lineno}", traceback.format_exc(limit=-4)
            if (name.partition("-")[0], where) not in faults:
                faults.add((name.partition("-")[0], where))
                kept = folder / f"{name}-{len(faults)}.bin"
                folder.mkdir(parents=True, exist_ok=True)
                kept.write_bytes(content)
                print(f"{name}: {told}\n  input: {kept}", flush=True)
    print(f"{n_inputs:,} inputs for {len(found)} readers, {len(faults)} faults")
    return len(faults)


def guided(names: Sequence[str], options: Sequence[str]) -> int:
    """Each target in a process of its own, which atheris ends; returns how many had a fault."""
    n_faults = 0
    for name in names:
        command = [sys.executable, "-m", "benchmarks", "fuzz", "--atheris-target", name, *options]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        summary = next((line for line in reversed(done.stdout.splitlines()) if line.startswith("Done ")), "")
        print(f"{name}: {summary if done.returncode == 0 else done.stdout[-4000:]}", flush=True)
        n_faults += done.returncode != 0
    print(f"{len(names)} readers, {n_faults} with a fault")
    return n_faults


def guide(name: str, seconds: float, seed: int, corpus: Path, faults: Path) -> None:
    """Run one target under atheris, in this process."""
    import atheris

    with atheris.instrument_imports(include=["cige", "benchmarks.parts"]):
        from benchmarks.parts.odd_texts import scratch
        from benchmarks.parts.targets import run, targets
    with scratch() as folder:
        target, own = targets(folder)[name], corpus / name
        for made in (own, faults):
            made.mkdir(parents=True, exist_ok=True)
        for number, content in enumerate(target.seeds):
            (own / f"seed-{number}").write_bytes(content)
        options = [f"-max_total_time={round(seconds)}", f"-seed={seed + 1}", "-max_len=4096", "-timeout=20"]
        options += ["-rss_limit_mb=4000", f"-artifact_prefix={faults}/{name}-", str(own)]
        atheris.Setup([sys.argv[0], *options], lambda content: run(target, content))
        atheris.Fuzz()
