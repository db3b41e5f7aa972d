"""Folders whose author means harm: model folders, lexicons, vectors and shards with other shapes, number types, values,
headers and facts, and right checksums. All but a right answer or a CigeError of one line is a fault, and so is a
crash, a folder that takes long, and one that takes much memory.

The folders of tests/helpers/crafted_folders.py come first, then changed ones, each determined by the seed and its
number. What opens reads some odd texts; then the sound folders read odd texts until there are as many as were asked
for. Processes are started anew when one is killed, so a crash is one fault. `make sanitize` runs this on a runtime
compiled with
AddressSanitizer and UndefinedBehaviorSanitizer.

  python benchmarks/fuzz_folders.py --folders 500 --texts 2000
  python benchmarks/fuzz_folders.py --case 123               # one folder again, and where it went wrong
  python benchmarks/fuzz_folders.py --kinds checkpoint       # with PyTorch
  .ci/sanitize --folders 10000 --texts 100000
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from fuzz_folder_changes import change, sign
from fuzz_folder_seeds import ROOT, WITHOUT_TORCH, check_model, reader, write_seeds
from odd_texts import odd_texts

NEWS = ROOT / "examples" / "news.txt"
PER_FOLDER = 6  # texts
SLOW_S, STALLED_S = 10.0, 60.0  # of the processor, since machines are busy with other work
MUCH_KB = 1_500_000  # more memory than before
MOST_TOLD = 2000  # characters of a message
TEXTS_AT_ONCE = 50


def corpus() -> list[tuple[str, Any]]:
    """(name, change of a copy of the folder `flat`) of the folders of tests/helpers/crafted_folders.py."""
    import crafted_folders as crafted

    def of_config(name: str) -> Any:
        def apply(folder: Path) -> None:
            config = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["config"]
            crafted.sign(folder, config=config | {name: crafted.CONFIG[name]})

        return apply

    def of_arrays(file: str, own: Any) -> Any:
        return lambda folder: crafted.rewrite(folder, file, own)

    found = [(f"weights: {name}", of_arrays("model.safetensors", own)) for name, own in crafted.WEIGHTS.items()]
    found += [(f"words: {name}", of_arrays("vocabulary.safetensors", own)) for name, own in crafted.VOCABULARY.items()]
    found += [(f"config: {name}", of_config(name)) for name in crafted.CONFIG]
    for name, facts in crafted.FACTS.items():
        found.append((f"facts: {name}", lambda folder, facts=facts: crafted.sign(folder, **facts)))
    return found


def text_of(seed: int, number: int) -> list[str]:
    """Some odd texts: short, long, and often none at all."""
    rng = random.Random(seed * 1_000_003 + number)
    length = rng.choice((0, 1, 5, 20, 20, 60, 300))
    return list(odd_texts(NEWS, PER_FOLDER, seed=rng.randrange(1 << 30), length=length))


def run_case(seeds: Path, kinds: Sequence[str], seed: int, case: int, made: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make a folder and read it; returns what came of it."""
    from cige.errors import CigeError

    rng = random.Random(f"{seed} {case}")
    kind = "flat" if case < len(made) else kinds[case % len(kinds)]
    result: dict[str, Any] = {"case": case, "kind": kind, "n_texts": 0, "outcome": "answer", "fault": ""}
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as scratch:
        folder = Path(scratch) / "folder"
        shutil.copytree(seeds / kind, folder)
        if case < len(made):
            result["what"] = made[case][0]
            made[case][1](folder)
        else:
            result["what"] = change(folder, rng)
        started, before = time.process_time(), peak_kb()
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                result["n_texts"] = reader(kind)(folder, text_of(seed, case), case)
        except CigeError as told:
            lines = str(told).splitlines()
            result["outcome"] = type(told).__name__
            if len(lines) != 1 or len(lines[0]) > MOST_TOLD:
                result["fault"] = f"a message of {len(lines)} lines and {len(str(told))} characters"
        except Exception:
            result["outcome"], result["fault"] = "fault", traceback.format_exc(limit=-5)
        took, grown = time.process_time() - started, peak_kb() - before
        if took > SLOW_S or grown > MUCH_KB:
            result["fault"] += f" {took:.1f} s, {grown // 1000} MB more memory"
    return result


def peak_kb() -> int:
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def read_sound(seeds: Path, kind: str, seed: int, number: int) -> dict[str, Any]:
    """A sound folder reads TEXTS_AT_ONCE odd texts."""
    from cige.runtime.native_model import NativeModel

    rng = random.Random(f"{seed} texts {number}")
    texts = list(odd_texts(NEWS, TEXTS_AT_ONCE, seed=rng.randrange(1 << 30), length=rng.choice((3, 20, 40, 200))))
    result: dict[str, Any] = {"case": -number - 1, "kind": kind, "n_texts": len(texts), "outcome": "read", "fault": ""}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = NativeModel.load(seeds / kind, precision=rng.choice(("auto", "float32")))
            check_model(model, texts, rng.randrange(5))
            reader("lexicon")(seeds / "lexicon-stored", texts[:PER_FOLDER], 0)
    except Exception:
        result["outcome"], result["fault"] = "fault", traceback.format_exc(limit=-5)
    return result | {"what": "odd texts"}


def work(args: argparse.Namespace) -> None:
    """The cases of one process, one JSON line each before and after it."""
    faulthandler.enable()
    made = [] if args.only_changed else corpus()
    models = [kind for kind in args.kinds if kind in WITHOUT_TORCH and not kind.startswith(("lex", "vec", "data"))]
    first, step, last = args.work
    for case in range(first, last, step):
        print(json.dumps({"begins": case}), flush=True)
        if case < args.folders:
            result = run_case(args.seeds, args.kinds, args.seed, case, made)
        else:
            number = case - args.folders
            result = read_sound(args.seeds, models[number % len(models)], args.seed, number)
        print(json.dumps(result), flush=True)


def processor_s(pid: int) -> float:
    """How many seconds of the processor a process has used; 0 once it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Process:
    """One process of two or more, which goes on with its next case after it was killed."""

    def __init__(self, args: argparse.Namespace, first: int, last: int, errors: Path):
        self._args, self._first, self._last, self._errors = args, first, last, errors
        self.is_done = first >= last
        if not self.is_done:
            self._start(first)

    def _start(self, first: int) -> None:
        args = self._args
        command = [sys.executable, __file__, "--seeds", args.seeds, "--seed", args.seed, "--folders", args.folders]
        command += ["--work", first, args.processes, self._last, "--kinds", *args.kinds]
        command += ["--only-changed"] if args.only_changed else []
        with open(self._errors, "wb") as errors:
            self._process = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=errors)
        assert self._process.stdout is not None
        os.set_blocking(self._process.stdout.fileno(), False)
        self.case, self._rest, self._since = first, b"", 0.0

    def results(self) -> list[dict[str, Any]]:
        """What it has told since the last call."""
        if self.is_done:
            return []
        assert self._process.stdout is not None
        ended = self._process.poll() is not None
        self._rest += self._process.stdout.read() or b""
        *lines, self._rest = self._rest.split(b"\n")
        found: list[dict[str, Any]] = []
        for told in map(json.loads, lines):
            self._since = processor_s(self._process.pid)
            if "begins" in told:
                self.case = told["begins"]
            else:
                found.append(told)
        stalled = processor_s(self._process.pid) - self._since > STALLED_S
        if not ended and not stalled:
            return found
        if not ended:
            self._process.kill()
        code = self._process.wait()
        if code == 0:
            self.is_done = True
            return found
        why = f"no answer after {STALLED_S:.0f} s" if stalled else f"the process ended with {code}"
        tail = self._errors.read_text(encoding="utf-8", errors="replace")[:6000]
        crash: dict[str, Any] = {"case": self.case, "kind": "?", "what": "", "n_texts": 0, "outcome": "crash"}
        crash["fault"] = f"{why}\n{tail}"
        following = self.case + self._args.processes
        self.is_done = following >= self._last
        if not self.is_done:
            self._start(following)
        return [*found, crash]


def fuzz(args: argparse.Namespace) -> int:
    """Run all cases; returns how many faults there were."""
    started, n_texts, counts, n_faults = time.monotonic(), 0, Counter[str](), 0
    models = [kind for kind in args.kinds if kind.startswith(("flat", "soft"))]
    more = -(-args.texts // TEXTS_AT_ONCE) if models else 0  # besides those that changed folders read
    last = args.folders + more
    with tempfile.TemporaryDirectory() as scratch:
        running = [Process(args, k, last, Path(scratch) / f"errors-{k}") for k in range(args.processes)]
        while not all(process.is_done for process in running):
            time.sleep(0.1)
            for result in (result for process in running for result in process.results()):
                n_texts += result["n_texts"]
                counts[result["outcome"]] += 1
                if result["fault"]:
                    n_faults += 1
                    told = f"case {result['case']} ({result['kind']}; {result['what']})\n{result['fault']}"
                    print(f"FAULT: {told}", flush=True)
    seconds = time.monotonic() - started
    shown = ", ".join(f"{n:,} {name}" for name, n in counts.most_common())
    print(f"{args.folders:,} folders and {n_texts:,} texts in {seconds:.0f} s: {n_faults} faults ({shown})")
    return n_faults


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folders", type=int, default=500, help="(default: 500)")
    parser.add_argument("--texts", type=int, default=2000, help="at least so many (default: 2000)")
    parser.add_argument("--seed", type=int, default=0, help="(default: 0)")
    parser.add_argument("--kinds", nargs="+", default=list(WITHOUT_TORCH), help="(default: all but checkpoint)")
    parser.add_argument("--processes", type=int, default=2, help="(default: 2)")
    parser.add_argument("--seeds", type=Path, help="sound folders, written there if it does not exist")
    parser.add_argument("--write-seeds", action="store_true", help="only write the sound folders")
    parser.add_argument("--case", type=int, help="run only this case, and print what comes of it")
    parser.add_argument("--keep", type=Path, help="with --case: keep the folder here instead of reading it")
    parser.add_argument("--only-changed", action="store_true", help="leave out tests/helpers/crafted_folders.py")
    parser.add_argument("--work", type=int, nargs=3, help=argparse.SUPPRESS)
    args = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "2")
    if args.work:
        work(args)
        return
    with tempfile.TemporaryDirectory() as scratch:
        args.seeds = args.seeds or Path(scratch) / "seeds"
        if not args.seeds.is_dir():
            args.seeds.mkdir(parents=True)
            write_seeds(args.seeds)
        if args.write_seeds:
            return
        if args.case is None:
            sys.exit(1 if fuzz(args) else 0)
        made = [] if args.only_changed else corpus()
        if args.keep:
            kind = "flat" if args.case < len(made) else args.kinds[args.case % len(args.kinds)]
            shutil.copytree(args.seeds / kind, args.keep)
            if args.case < len(made):
                made[args.case][1](args.keep)
            else:
                print(change(args.keep, random.Random(f"{args.seed} {args.case}")))
            sign(args.keep)
            return
        for name, value in run_case(args.seeds, args.kinds, args.seed, args.case, made).items():
            print(f"{name}: {value}")


if __name__ == "__main__":
    main()
