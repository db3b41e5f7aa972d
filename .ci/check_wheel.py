"""Builds the source distribution and the wheel, installs the wheel into a bare environment, and asks it for entities.

    python .ci/check_wheel.py              # with an interpreter whose environment holds setuptools and what cige needs

The wheel is built from the source distribution, so a file that is missing there is noticed; once with the compiler and
once with CC=/bin/false. Either must install into an environment that holds nothing else, bring its dependencies, and
find in examples/news.txt what the checkout finds. What is wrong is printed line by line, and
the exit status is 1.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tarfile
import tempfile
import time
import venv
import zipfile
from email import message_from_string
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NEWS = ROOT / "examples" / "news.txt"
X86_64, ARM64 = ("portable", "avx2", "avx512"), ("portable", "dotprod", "i8mm")
LEVELS = {"x86_64": X86_64, "aarch64": ARM64, "arm64": ARM64}.get(platform.machine(), ("portable",))
COMPILED = [f"cige/runtime/native/_runtime_{level}" for level in LEVELS]
COMPILED += [f"cige/nn/native/_kernels_{level}" for level in (LEVELS if LEVELS is X86_64 else ("portable",))]
COMPILED += ["cige/instruction_sets/_cpu", "cige/lexicon/_walk", "cige/lexicon/_packed"]
COMPILED += ["cige/lexicon/_parse"]
IN_WHEEL = [
    "cige/py.typed",
    "cige/bundled/MODEL_CARD.md",
    "cige/bundled/MODEL_CARD.zh.md",
    "cige/bundled/model.safetensors",
    "cige/bundled_research/MODEL_CARD.md",
    "cige/bundled_research/MODEL_CARD.zh.md",
    "cige/bundled_research/model.safetensors",
    "cige/data/datasets.json",
    "cige/text/traditional.txt",
    "cige/commands/chinese.json",
    "cige/lattice_bert/chinese.json",
    "cige/explain/explanation.css",
    "cige/serving/page.html",
]
IN_SOURCE = [
    *("LICENSE", "CITATION.cff", "CHANGELOG.md", "README.md", "constraints.txt", "setup.py", "pyproject.toml"),
    *("src/cige/runtime/native/flat.h", "src/cige/runtime/native/flat.c", "src/cige/nn/native/rows.h"),
    *("src/cige/nn/native/kernels.c", "src/cige/lexicon/walk.c", "src/cige/instruction_sets/cpu.c"),
    *("tests/conftest.py", "benchmarks/speed/flat.py", "examples/news.txt"),
]
NOT_OURS = ("pip", "setuptools")  # of every environment
CORE_MB = 168  # all that the core installs beside pip and setuptools; two models ship
SCORE_TOLERANCE = 1e-4  # between forms of the kernels, whose sums have other orders

problems: list[str] = []


def check(holds: bool, problem: str) -> None:
    if not holds:
        problems.append(problem)
        print(f"WRONG: {problem}", flush=True)


def step(what: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {what}", flush=True)


def call(*command: str | Path, cwd: Path, **environment: str) -> str:
    """What a command prints; its errors end the check."""
    others = ("PYTHONPATH", "CIGE_KERNELS", "CIGE_BUILD")
    kept = {name: value for name, value in os.environ.items() if name not in others}
    done = subprocess.run([*map(str, command)], cwd=cwd, env=kept | environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"WRONG: {' '.join(map(str, command))} ended with {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def build(folder: Path) -> tuple[Path, Path, Path]:
    """(source distribution, wheel, wheel without compiled parts)."""
    code = "import sys; from setuptools.build_meta import build_sdist; print(build_sdist(sys.argv[1]))"
    # From a copy of what would be committed: what lies in a working tree besides must not come in.
    listed = call("git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", cwd=ROOT).split("\0")
    tree = folder / "tree"
    for name in filter(None, listed):
        if (ROOT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            (tree / name).write_bytes((ROOT / name).read_bytes())
    call(sys.executable, "-c", code, folder, cwd=tree)
    (source,) = folder.glob("cige-*.tar.gz")
    wheels = []
    for name, environment in (("compiled", {}), ("pure", {"CC": "/bin/false"})):
        command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "--no-cache-dir"]
        call(*command, "--wheel-dir", folder / name, source, cwd=folder, **environment)
        wheels += (folder / name).glob("*.whl")
    compiled, pure = wheels
    return source, compiled, pure


def check_contents(source: Path, compiled: Path, pure: Path) -> None:
    with tarfile.open(source) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    for name in IN_SOURCE:
        check(name in inside, f"{source.name} lacks {name}")
    for wheel, is_compiled in ((compiled, True), (pure, False)):
        with zipfile.ZipFile(wheel) as archive:
            names = archive.namelist()
            (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
            fields = message_from_string(archive.read(metadata).decode("utf-8"))
        for name in IN_WHEEL:
            check(name in names, f"{wheel.name} lacks {name}")
        for name in COMPILED:
            found = any(inside.startswith(f"{name}.") and inside.endswith((".so", ".pyd")) for inside in names)
            check(found == is_compiled, f"{wheel.name} {'lacks' if is_compiled else 'holds'} {name}")
        for name in names:
            check(name.startswith(("cige/", "cige-")), f"{wheel.name} holds {name}, which is no part of the package")
            check(not name.endswith((".c", ".h")), f"{wheel.name} holds {name}, a source in C")
        check(any(name.endswith("licenses/LICENSE") for name in names), f"{wheel.name} lacks its licence")
        check(fields["License-Expression"] == "Apache-2.0", f"licence: {fields['License-Expression']}")
        check(fields["Requires-Python"] == ">=3.10", f"Requires-Python: {fields['Requires-Python']}")
    check("-cp310-abi3-" in compiled.name, f"{compiled.name} is not for every Python from 3.10 on")
    check(pure.name.endswith("-py3-none-any.whl"), f"{pure.name} is not for every platform")


def entities(python: str | Path, cwd: Path, **environment: str) -> list[dict]:
    """What `make ner` shows, with the words of the lexicon that each entity was read from."""
    code = "import sys; from cige.cli import main; main(sys.argv[1:])"
    arguments = ("predict", NEWS, "--words", "--format", "jsonl", "--precision", "float32")
    lines = call(python, "-c", code, *arguments, cwd=cwd, **environment).splitlines()
    return [entity for line in lines for entity in json.loads(line)["entities"]]


def check_size(python: Path, cwd: Path) -> None:
    """The core is small, and has no PyTorch. The bytecode that pip makes of what it installs does not count."""
    folder = Path(call(python, "-c", "import sysconfig; print(sysconfig.get_path('platlib'))", cwd=cwd).strip())
    check(not (folder / "torch").exists(), "the core installs PyTorch")
    files = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    own = [path for path in files if path.relative_to(folder).parts[0] not in NOT_OURS]
    megabytes = sum(path.stat().st_size for path in own) / 1e6
    step(f"{megabytes:.0f} MB in all")
    check(megabytes <= CORE_MB, f"the core puts {megabytes:.0f} MB on disk, at most {CORE_MB} were expected")


def check_answers(wheel: Path, bin_folder: Path, cwd: Path, expected: list[dict], *, is_compiled: bool) -> None:
    kernels = json.loads(call(bin_folder / "cige", "info", "--json", cwd=cwd))["installation"]["compiled kernels"]
    has_any = kernels in LEVELS
    check(has_any == is_compiled, f"installed from {wheel.name}, cige reports compiled kernels: {kernels}")
    forms = "from cige.lexicon import matcher as m, vector_files as v; print(m.Walk.__name__, v.parse_rows.__name__)"
    found = call(bin_folder / "python", "-c", forms, cwd=cwd).split()
    wanted = ["NativeWalk", "native_rows"] if is_compiled else ["PythonWalk", "python_rows"]
    check(found == wanted, f"installed from {wheel.name}, cige walks and parses with {found}, expected {wanted}")
    answers = entities(bin_folder / "python", cwd)
    bare = [{name: value for name, value in entity.items() if name != "score"} for entity in answers]
    bare_expected = [{name: value for name, value in entity.items() if name != "score"} for entity in expected]
    check(bare == bare_expected, f"{wheel.name} finds\n  {bare}\nwhere the checkout finds\n  {bare_expected}")
    for mine, theirs in zip(answers, expected, strict=False):
        difference = abs(mine["score"] - theirs["score"])
        check(difference <= SCORE_TOLERANCE, f"{wheel.name} scores {mine['text']} {difference:.2g} off")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", metavar="FOLDER", type=Path, help="copy the distributions there, if all is well")
    keep = parser.parse_args().keep
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        away = folder / "away"  # where no checkout can be imported by chance
        away.mkdir()
        step("building")
        source, compiled, pure = build(folder)
        check_contents(source, compiled, pure)
        expected = entities(sys.executable, away, PYTHONPATH=str(ROOT / "src"))
        check(len(expected) > 0, f"the checkout finds nothing in {NEWS}")
        step(f"installing {compiled.name} into a bare environment")
        venv.create(folder / "bare", with_pip=True)
        bin_folder = folder / "bare" / ("Scripts" if os.name == "nt" else "bin")
        install = [bin_folder / "python", "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        call(*install, "--constraint", ROOT / "constraints.txt", compiled, cwd=away)
        call(bin_folder / "python", "-m", "pip", "check", cwd=away)
        check_size(bin_folder / "python", away)
        check_answers(compiled, bin_folder, away, expected, is_compiled=True)
        step(f"installing {pure.name} in its place")
        call(*install, "--no-deps", "--force-reinstall", pure, cwd=away)
        check_answers(pure, bin_folder, away, expected, is_compiled=False)
        if keep and not problems:
            keep.mkdir(parents=True, exist_ok=True)
            for path in (source, compiled):
                (keep / path.name).write_bytes(path.read_bytes())
    step(f"{len(problems)} problems" if problems else f"{len(expected)} entities, the same from both wheels: all well")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
