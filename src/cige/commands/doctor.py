"""Check this installation: versions, processor, threads, GPU, caches, and a prediction of the bundled model.

The exit code is 0 if everything that cige requires works, and 1 if not. Missing packages that only some commands need
are listed as notes.

Examples:
  cige doctor
  cige doctor --model runs/own
  cige doctor --json > doctor.json      # for bug reports
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from cige.commands.options import make_console
from cige.errors import CigeError
from cige.extras import install_command
from cige.json_text import to_json

State = Literal["ok", "note", "wrong"]
NEEDED = ("numpy", "safetensors", "rich")
OPTIONAL = {
    "torch": "train", "transformers": "bert", "huggingface_hub": "hub", "onnxruntime": "onnx", "resvg_py": "plots",
    "spacy": "spacy", "scikit-learn": "sklearn", "fastapi": "serve", "pyarrow": "documents",
    "argcomplete": "completion",
}  # fmt: skip
SENTENCE, EXPECTED = "李明在北京。", (("李明", "PER"), ("北京", "LOC"))
LITTLE_SPACE = 2_000_000_000  # bytes; enough for a data set with its vectors


@dataclass(frozen=True)
class Finding:
    """The result of one check, and what to do if there is a problem."""

    name: str
    state: State
    detail: str
    advice: str = ""


def _judged(name: str, is_well: object, detail: str, advice: str) -> Finding:
    """The finding of a check that went well, or else a note with advice."""
    return Finding(name, "ok", detail) if is_well else Finding(name, "note", detail, advice)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", "-m", metavar="M", help="also check this model (a folder or hub id)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")


def run(args: argparse.Namespace) -> int:
    findings = list(examine(args.model))
    is_well = all(finding.state != "wrong" for finding in findings)
    if args.json:
        print(to_json({"ok": is_well, "findings": [asdict(finding) for finding in findings]}, indent=1))
    else:
        _print(findings)
        not_well = "something that cige requires does not work; see above"
        print("everything that cige requires works" if is_well else not_well)
    return 0 if is_well else 1


def examine(model: str | None = None) -> Iterator[Finding]:
    """Run all checks; an unexpected exception in a check is reported as a finding."""
    checks: dict[str, Callable[[], Iterator[Finding]]] = {
        "versions": _versions, "packages": _packages, "compiled parts": _compiled, "threads": _threads, "GPU": _gpu,
        "terminal": _terminal, "caches": _caches, "bundled model": lambda: _model(None),
    }  # fmt: skip
    if model is not None:
        checks["model"] = lambda: _model(model)
    for name, check in checks.items():
        try:
            yield from check()
        except CigeError as error:
            yield Finding(name, "wrong", str(error))
        except Exception as error:  # continue with the other checks
            report = "please report this with the output of `cige doctor --json`"
            yield Finding(name, "wrong", f"{type(error).__name__}: {error}", report)


def _versions() -> Iterator[Finding]:
    from cige import __version__

    yield Finding("cige", "ok", f"{__version__} in {Path(__file__).parents[1]}")
    yield Finding("python", "ok", f"{platform.python_version()} in {sys.prefix}")
    yield Finding("system", "ok", f"{platform.platform()}, {platform.machine()}")


def _packages() -> Iterator[Finding]:
    advice: dict[str, tuple[str, State]] = {name: (f"reinstall cige: {install_command()}", "wrong") for name in NEEDED}
    for name, extra in OPTIONAL.items():
        advice[name] = (f"only needed by some commands: {install_command(extra)}", "note")
    for name, (what_to_do, otherwise) in advice.items():
        try:
            yield Finding(name, "ok", version(name))
        except PackageNotFoundError:
            yield Finding(name, otherwise, "not installed", what_to_do)


def _compiled() -> Iterator[Finding]:
    from cige import instruction_sets
    from cige.nn.native import level as training_level
    from cige.runtime import native
    from cige.runtime.precision import available, chosen

    slow = "slower; if a C compiler is installed, `pip install --force-reinstall --no-deps .` compiles these parts"
    variable = instruction_sets.VARIABLE
    if os.environ.get(variable) == "off":
        yield Finding("instruction sets", "note", f"switched off by {variable}=off", f"unset {variable}")
    elif native.load() is None:
        yield Finding("instruction sets", "note", "not compiled", slow)
    else:
        yield Finding("instruction sets", "ok", f"{native.level()}, of {', '.join(native.levels())}")
        sets = available(native.load())
        yield Finding("precision of FLAT", "ok", f"{chosen('auto', sets)}, of {', '.join(sets)}")
        if find_spec("torch") is not None:
            kernels = training_level()
            yield _judged("training kernels", kernels, kernels or "not compiled", slow)
    for name, module in (("matching of words", "_walk"), ("reading of vectors", "_parse")):
        there = find_spec(f"cige.lexicon.{module}") is not None
        yield _judged(name, there, "compiled" if there else "in Python", slow)


def _threads() -> Iterator[Finding]:
    from cige.runtime.native import n_cores, n_threads, omp_threads

    given = os.environ.get("OMP_NUM_THREADS", "")
    if given and omp_threads() is None:
        yield Finding("threads", "note", f"OMP_NUM_THREADS={given} is not a number", "set it to 1 or more, or unset it")
        return
    setting = f"OMP_NUM_THREADS={given}" if given else "OMP_NUM_THREADS is not set"
    detail = f"{n_threads()} of {n_cores()} cores; {setting}"
    advice = "more threads than cores are slower than one thread per core"
    yield _judged("threads", n_threads() <= n_cores(), detail, advice)


def _gpu() -> Iterator[Finding]:
    if find_spec("torch") is None:
        yield Finding("GPU", "note", "not used: PyTorch is not installed", "the bundled model does not need one")
        return
    import torch

    if not torch.cuda.is_available():
        built = f"built for CUDA {torch.version.cuda}" if torch.version.cuda else "built for the CPU only"
        yield Finding(
            "GPU", "note", f"PyTorch does not find one; it is {built}", "only training of large models needs one"
        )
        return
    for k in range(torch.cuda.device_count()):
        facts = torch.cuda.get_device_properties(k)
        yield Finding(f"GPU {k}", "ok", f"{facts.name}, {facts.total_memory / 2**30:.0f} GiB; --device cuda:{k}")


def _terminal() -> Iterator[Finding]:
    encoding = (sys.stdout.encoding or "unknown").lower()
    wide = encoding.replace("-", "") in ("utf8", "gb18030")
    advice = "Chinese may not be shown; set PYTHONUTF8=1 or a UTF-8 locale"
    yield _judged("terminal", wide, f"encoding {encoding}", advice)


def _caches() -> Iterator[Finding]:
    from cige.data.registry import cache_folder

    yield _folder("cache of data", cache_folder(), "CIGE_CACHE")
    if find_spec("huggingface_hub") is not None:
        from huggingface_hub.constants import HF_HUB_CACHE

        yield _folder("cache of the hub", Path(HF_HUB_CACHE), "HF_HOME")
    data = os.environ.get("CIGE_DATA")
    if data is not None:
        advice = "CIGE_DATA is not a folder; set it to the folder of your data sets, or unset it"
        yield _judged("CIGE_DATA", Path(data).is_dir(), data, advice)


def _folder(name: str, folder: Path, variable: str) -> Finding:
    import shutil

    first = next(path for path in (folder, *folder.parents) if path.exists())
    if not first.is_dir() or not os.access(first, os.W_OK):
        return Finding(name, "note", f"{folder} is not writable", f"set {variable} to a folder that you can write to")
    free = shutil.disk_usage(first).free
    detail = f"{folder}{'' if folder.is_dir() else ' (not created yet)'}, {free / 1e9:,.1f} GB free"
    advice = f"little free space; set {variable} to a folder on another disk"
    return _judged(name, free >= LITTLE_SPACE, detail, advice)


def _model(name: str | None) -> Iterator[Finding]:
    """Compare all files of the folder with the checksums in its manifest, and check a prediction."""
    from cige.api import load
    from cige.folders.hub import model_folder
    from cige.folders.manifest import MANIFEST, kind_of, read_manifest

    title = "bundled model" if name is None else f"model {name}"
    again = "reinstall cige" if name is None else "copy, download or train the model again"
    try:
        folder = model_folder(name)
        n_files = 0
        for part in sorted({folder, *(path.parent for path in folder.rglob(MANIFEST))}):
            kind = kind_of(part) or "model"
            facts = read_manifest(part, kind=kind, version=sys.maxsize, error=CigeError, check_contents=True)
            n_files += len(facts["files"])
        yield Finding(f"{title}: files", "ok", f"{n_files} files match the manifest (sha256), in {folder}")
        began = time.perf_counter()
        finder = load(folder)
        loaded = time.perf_counter()
        entities = [(entity.text, entity.label) for entity in finder(SENTENCE)]
        seconds = time.perf_counter() - loaded
    except CigeError as error:
        is_of_kernels = str(error).startswith("CIGE_KERNELS")  # the error says what to set it to
        yield Finding(title, "wrong", str(error), "" if is_of_kernels else again)
        return
    shown = ", ".join(f"{text} {label}" for text, label in entities) or "nothing"
    result = f"{SENTENCE} has {shown}; loaded in {loaded - began:.2f} s, answered in {1000 * seconds:.0f} ms"
    if name is None and tuple(entities) != EXPECTED:
        expected = ", ".join(f"{text} {label}" for text, label in EXPECTED)
        advice = "try CIGE_KERNELS=off, and please report this"
        yield Finding(f"{title}: answer", "wrong", f"{result}; expected {expected}", advice)
    else:
        yield Finding(f"{title}: answer", "ok", result)


def _print(findings: list[Finding]) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    styles = {"ok": "green", "note": "yellow", "wrong": "bold red"}
    table = Table(box=box.SIMPLE_HEAD)
    for title in ("", "checked", "found", "what to do"):
        table.add_column(title, overflow="fold")
    for finding in findings:
        table.add_row(
            Text(finding.state, style=styles[finding.state]), finding.name, Text(finding.detail), Text(finding.advice)
        )
    make_console().print(table)
