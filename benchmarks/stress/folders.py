"""Folders whose author means harm: model folders, lexicons, vectors and shards, all with right checksums.

They have other shapes, number types, values, headers and facts. All but a right answer or a CigeError of one line is a
fault, and so is a crash, a folder that takes long, and one that takes much memory. The folders of
tests/helpers/crafted_folders.py come first, then changed ones, each determined by the seed and its number. What opens
reads some odd texts; then the sound folders read odd texts until there are as many as were asked for. Processes are
started anew when one is killed, so a crash is one fault. `make sanitize` runs this on a runtime compiled with
AddressSanitizer and UndefinedBehaviorSanitizer.

  python -m benchmarks folders --case 123               one folder again, and where it went wrong
  python -m benchmarks folders --kinds checkpoint       with PyTorch
  .ci/sanitize --folders 10000 --texts 100000
"""

import faulthandler
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from benchmarks.measure import line, megabytes
from benchmarks.parts.folder_changes import change, sign
from benchmarks.parts.folder_seeds import MODELS, WITHOUT_TORCH, check_model, reader, write_sound
from benchmarks.parts.odd_texts import NEWS, check_message, odd_texts, scratch
from cige.errors import CigeError

PER_FOLDER = 6  # texts
SLOW_S, STALLED_S = 10.0, 60  # of the processor, since machines are busy with other work
MUCH_MB = 1500.0  # more memory than before
TEXTS_AT_ONCE = 50


def bench(
    *,
    folders: Annotated[int, "changed ones, with those of tests/helpers/crafted_folders.py"] = 500,
    texts: Annotated[int, "at least so many"] = 2000,
    seed: int = 0,
    kinds: Annotated[Sequence[str], "of folders; all but checkpoint by default"] = WITHOUT_TORCH,
    processes: int = 2,
    seeds: Annotated[Path | None, "sound folders, written there if it does not exist"] = None,
    write_seeds: Annotated[bool, "only write the sound folders"] = False,
    case: Annotated[int | None, "run only this case, and print what comes of it"] = None,
    keep: Annotated[Path | None, "with --case: keep the folder here instead of reading it"] = None,
    only_changed: Annotated[bool, "leave out tests/helpers/crafted_folders.py"] = False,
    work: Annotated[Sequence[int], "first case, step and end of one process"] = (),
) -> dict[str, Any] | None:
    """How many faults there were."""
    os.environ.setdefault("OMP_NUM_THREADS", "2")
    with tempfile.TemporaryDirectory() as folder:
        place = seeds or Path(folder) / "seeds"
        if not place.is_dir():
            place.mkdir(parents=True)
            write_sound(place)
        cases = Cases(place, kinds, seed, folders, [] if only_changed else corpus())
        if work:
            cases.run_all(range(work[0], work[2], work[1]))
        elif case is not None and keep:
            print(cases.make(case, keep))
            sign(keep)
        elif case is not None:
            print(line(cases.run(case)))
        elif not write_seeds:
            options = [f"--seeds={place}", f"--seed={seed}", f"--folders={folders}", "--kinds", *kinds]
            options += ["--only-changed"] if only_changed else []
            more = -(-texts // TEXTS_AT_ONCE) if cases.models else 0  # besides those that changed folders read
            return {"faults": fuzz(options, folders + more, processes, Path(folder))}
    return None


def corpus() -> list[tuple[str, Callable[[Path], None]]]:
    """(name, change of a copy of the folder `flat`) of the folders of tests/helpers/crafted_folders.py."""
    import crafted_folders as crafted

    def of_config(folder: Path, name: str) -> None:
        config = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["config"]
        crafted.sign(folder, config=config | {name: crafted.CONFIG[name]})

    found: list[tuple[str, Callable[[Path], None]]] = []
    for what, file, changes in (("weights", "model", crafted.WEIGHTS), ("words", "vocabulary", crafted.VOCABULARY)):
        path = f"{file}.safetensors"
        found += [(f"{what}: {x}", partial(crafted.rewrite, name=path, change=y)) for x, y in changes.items()]
    found += [(f"config: {name}", partial(of_config, name=name)) for name in crafted.CONFIG]
    return found + [(f"facts: {name}", partial(crafted.sign, **facts)) for name, facts in crafted.FACTS.items()]


@dataclass(frozen=True)
class Cases:
    """All cases of a seed: the crafted folders, changed ones up to `n_folders`, then odd texts for sound folders."""

    seeds: Path
    kinds: Sequence[str]
    seed: int
    n_folders: int
    crafted: Sequence[tuple[str, Callable[[Path], None]]]

    @property
    def models(self) -> list[str]:
        return [kind for kind in self.kinds if kind in MODELS]

    def run_all(self, numbers: range) -> None:
        """The cases of one process, one JSON line each before and after it."""
        faulthandler.enable()
        for case in numbers:
            print(json.dumps({"begins": case}), flush=True)
            limit = int(time.process_time()) + STALLED_S  # then the system ends this process
            resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))
            print(json.dumps(self.run(case)), flush=True)

    def kind(self, case: int) -> str:
        if case >= self.n_folders:
            return self.models[(case - self.n_folders) % len(self.models)]
        return "flat" if case < len(self.crafted) else self.kinds[case % len(self.kinds)]

    def make(self, case: int, folder: Path) -> str:
        """Make the folder of a case; returns what was done to it."""
        shutil.copytree(self.seeds / self.kind(case), folder)
        if case >= len(self.crafted):
            return change(folder, random.Random(f"{self.seed} {case}"))
        what, apply = self.crafted[case]
        apply(folder)
        return what

    def run(self, case: int) -> dict[str, Any]:
        """Make a folder and read it, or read odd texts with a sound one; returns what came of it."""
        result: dict[str, Any] = {"case": case, "kind": self.kind(case), "n_texts": 0, "outcome": "answer", "fault": ""}
        started, before = time.process_time(), megabytes()["VmHWM"]
        with scratch() as memory, warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                if case < self.n_folders:
                    result["what"] = self.make(case, memory / "folder")
                    result["n_texts"] = self.read(case, memory / "folder")
                else:
                    result |= {"what": "odd texts", "outcome": "read", "n_texts": self.read_sound(case)}
            except CigeError as told:
                result["outcome"] = type(told).__name__
                try:
                    assert case < self.n_folders, told
                    check_message(told)
                except AssertionError as fault:
                    result["fault"] = str(fault)
            except Exception:
                result["outcome"], result["fault"] = "fault", traceback.format_exc(limit=-5)
        took, grown = time.process_time() - started, megabytes()["VmHWM"] - before
        if took > SLOW_S or grown > MUCH_MB:
            result["fault"] += f" {took:.1f} s, {grown:.0f} MB more memory"
        return result

    def read(self, case: int, folder: Path) -> int:
        """A made folder reads some odd texts: short, long, and often none at all."""
        rng = random.Random(self.seed * 1_000_003 + case)
        length = rng.choice((0, 1, 5, 20, 20, 60, 300))
        texts = list(odd_texts(NEWS, PER_FOLDER, seed=rng.randrange(1 << 30), length=length))
        return reader(self.kind(case))(folder, texts, case)

    def read_sound(self, case: int) -> int:
        """A sound folder reads TEXTS_AT_ONCE odd texts."""
        from cige.runtime.native_model import NativeModel

        rng = random.Random(f"{self.seed} texts {case - self.n_folders}")
        length = rng.choice((3, 20, 40, 200))
        texts = list(odd_texts(NEWS, TEXTS_AT_ONCE, seed=rng.randrange(1 << 30), length=length))
        model = NativeModel.load(self.seeds / self.kind(case), precision=rng.choice(("auto", "float32")))
        check_model(model, texts, rng.randrange(5))
        reader("lexicon")(self.seeds / "lexicon-stored", texts[:PER_FOLDER], 0)
        return len(texts)


def fuzz(options: Sequence[str], last: int, processes: int, folder: Path) -> int:
    """Run all cases in some processes; returns how many faults there were."""
    started, n_texts, counts, n_faults = time.monotonic(), 0, Counter[str](), 0

    def watch(number: int) -> list[dict[str, Any]]:
        found = []
        for result in results(options, number, processes, last, folder / f"errors-{number}"):
            found.append(result)
            if result["fault"]:
                told = f"case {result['case']} ({result['kind']}; {result['what']})\n{result['fault']}"
                print(f"FAULT: {told}", flush=True)
        return found

    with ThreadPoolExecutor(processes) as pool:
        for result in (result for found in pool.map(watch, range(processes)) for result in found):
            n_texts += result["n_texts"]
            counts[result["outcome"]] += 1
            n_faults += bool(result["fault"])
    shown = ", ".join(f"{n:,} {name}" for name, n in counts.most_common())
    print(f"{last:,} cases, {n_texts:,} texts in {time.monotonic() - started:.0f} s: {n_faults} faults ({shown})")
    return n_faults


def results(options: Sequence[str], first: int, step: int, last: int, errors: Path) -> Iterator[dict[str, Any]]:
    """What comes of every `step`-th case; a process that ends in one is followed by one for the next."""
    while first < last:
        command = [sys.executable, "-m", "benchmarks", "folders", *options, "--work", *map(str, (first, step, last))]
        with open(errors, "wb") as told:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=told)
        assert process.stdout is not None
        for result in map(json.loads, process.stdout):
            if "begins" in result:
                first = result["begins"]
            else:
                yield result
        if (code := process.wait()) == 0:
            return
        why = f"the process ended with {code}\n{errors.read_text(encoding='utf-8', errors='replace')[:6000]}"
        yield {"case": first, "kind": "?", "what": "", "n_texts": 0, "outcome": "crash", "fault": why}
        first += step
