"""Damaged and odd input for every reader of files, and for the matcher: all but a right answer or a CigeError of one
line is a fault, and so is input that takes long or much memory.

Sound files are damaged by chance: bytes are changed, put in and taken out, pieces are repeated and exchanged with other
files, numbers grow. `--seed` gives the same inputs again. With `--atheris` (pip install atheris) inputs that reach new
code are kept and damaged further; the targets then run one after the other, each in a process of its own.

  cige bench fuzz --seconds 300
  cige bench fuzz --only words vectors --seed 7
  cige bench fuzz --atheris --seconds 20 --corpus corpus/     # 20 seconds for each target
"""

from __future__ import annotations

import argparse
import random
import resource
import subprocess
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # imported late, so that atheris can prepare what is imported
    from fuzz_targets import Target

PIECES = (
    *(
        b"\x00",
        b"\xff",
        b"\xed\xa0\x80",
        "\u2028".encode(),
        "\ufeff".encode(),
        "😀".encode(),
        "　".encode(),
        b"\r",
        b"\n\n",
    ),
    *(
        b"\t",
        b",",
        b'"',
        b"{",
        b"}",
        b"[",
        b"]",
        b"null",
        b"true",
        b"NaN",
        b"-1",
        b"0",
        b"1e999",
        b"9" * 30,
        b"9" * 5000,
    ),
    *(
        b"[" * 3000,
        b'{"a":' * 3000,
        b"\\ud83d",
        b"-0.5",
        b"B-",
        b"M-X",
        b"O",
        b"T1\t",
        b'"start": ',
        b'"labels": ',
        b"text",
    ),
)
MOST_BYTES = 100_000  # of an input; longer seeds are read as they are
SLOW_S = 2.0  # an input that takes longer is reported: damage should not make a reader slow


MUCH_BYTES = 400 << 20  # an input that needs more memory than all before it by so much is reported


def next_input(target: Target, others: Sequence[bytes], rng: random.Random) -> bytes:
    """A seed that is damaged by chance, or odd input of the right form, which may be damaged too."""
    if target.made is not None and rng.random() < 0.6:
        content = target.made(rng)
        if rng.random() < 0.8:
            return content
    else:
        content = rng.choice([seed for seed in target.seeds if len(seed) <= MOST_BYTES])
    return damaged(content, others, rng)


def peak_bytes() -> int:
    """The most memory that the process has had at once."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


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


def fuzz(found: dict[str, Target], seconds: float, seed: int, folder: Path) -> int:
    """Damage in turns until the time is over; returns how many distinct faults there were."""
    from fuzz_targets import run

    rng, until = random.Random(seed), time.monotonic() + seconds
    others = [content for target in found.values() for content in target.seeds if content]
    faults: dict[tuple[str, str], str] = {}
    n_inputs = 0
    inputs = {name: list(target.seeds) for name, target in found.items()}
    while time.monotonic() < until:
        for name, target in found.items():
            content = inputs[name].pop() if inputs[name] else next_input(target, others, rng)
            started, room = time.monotonic(), peak_bytes()
            n_inputs += 1
            try:
                run(target, content)
                took, grown = time.monotonic() - started, peak_bytes() - room
                if took < SLOW_S and grown < MUCH_BYTES:
                    continue
                where, told = "slow" if took >= SLOW_S else "large", f"{took:.1f} s, {grown >> 20:,} MB more memory"
            except Exception as fault:
                last = traceback.extract_tb(fault.__traceback__)[-1]
                where, told = f"{last.filename}:{last.lineno}", traceback.format_exc(limit=-4)
            if (name.partition("-")[0], where) not in faults:
                faults[name.partition("-")[0], where] = told
                kept = folder / f"{name}-{len(faults)}.bin"
                kept.parent.mkdir(parents=True, exist_ok=True)
                kept.write_bytes(content)
                print(f"{name}: {told}\n  input: {kept}", flush=True)
    print(f"{n_inputs:,} inputs for {len(found)} readers, {len(faults)} faults")
    return len(faults)


def guided(names: Sequence[str], args: argparse.Namespace) -> int:
    """Each target in a process of its own, which atheris ends; returns how many had a fault."""
    n_faults = 0
    for name in names:
        command = [sys.executable, __file__, "--atheris-target", name, "--seconds", str(args.seconds)]
        command += ["--seed", str(args.seed), "--corpus", str(args.corpus), "--faults", str(args.faults)]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        told = done.stdout.decode("utf-8", "replace")
        summary = next((line for line in reversed(told.splitlines()) if line.startswith("Done ")), "")
        print(f"{name}: {summary if done.returncode == 0 else told[-4000:]}", flush=True)
        n_faults += done.returncode != 0
    print(f"{len(names)} readers, {n_faults} with a fault")
    return n_faults


def guide(name: str, args: argparse.Namespace) -> None:
    """Run one target under atheris, in this process."""
    import atheris

    with atheris.instrument_imports(include=["cige", "fuzz_targets"]):
        from fuzz_targets import run, scratch, targets
    with scratch() as folder:
        target = targets(folder)[name]
        corpus = args.corpus / name
        corpus.mkdir(parents=True, exist_ok=True)
        for number, content in enumerate(target.seeds):
            (corpus / f"seed-{number}").write_bytes(content)
        options = [f"-max_total_time={round(args.seconds)}", f"-seed={args.seed + 1}", "-max_len=4096"]
        options += ["-timeout=20", "-rss_limit_mb=4000", f"-artifact_prefix={args.faults}/{name}-", str(corpus)]
        args.faults.mkdir(parents=True, exist_ok=True)
        atheris.Setup([sys.argv[0], *options], lambda content: run(target, content))
        atheris.Fuzz()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60, help="(default: 60)")
    parser.add_argument("--seed", type=int, default=0, help="(default: 0)")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="readers whose names begin so")
    parser.add_argument("--faults", type=Path, default=Path("faults"), help="where inputs are kept (default: faults)")
    parser.add_argument("--atheris", action="store_true", help="let atheris choose the inputs")
    parser.add_argument("--corpus", type=Path, default=Path("corpus"), help="what atheris keeps (default: corpus)")
    parser.add_argument("--atheris-target", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.atheris_target:
        guide(args.atheris_target, args)
        return
    from fuzz_targets import scratch, targets

    with scratch() as folder:
        found = targets(folder, large=True)
        chosen = {name: x for name, x in found.items() if not args.only or name.startswith(tuple(args.only))}
        if not chosen:
            parser.error(f"--only: expected beginnings of {', '.join(found)}")
        n_faults = guided(list(chosen), args) if args.atheris else fuzz(chosen, args.seconds, args.seed, args.faults)
    sys.exit(1 if n_faults else 0)


if __name__ == "__main__":
    main()
