"""Checks compiled libraries of any system: that all are there, what they export, and what they ask of the system.

    python .ci/check_libraries.py win-amd64 portable,avx2,avx512 FOLDER    # FOLDER: --build-lib of setup.py build_ext
    python .ci/check_libraries.py --stub-of-python                         # C with what the sources call of Python

Needs the package lief, which reads the libraries of Linux, macOS and Windows. A problem is printed, and the exit status
is 1.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import lief

ROOT = Path(__file__).resolve().parents[1]
PYTHONS = r"\b_?Py[A-Z]?[A-Za-z0-9]*_[A-Za-z0-9_]+"
# What may be asked of the system, as patterns of names; .ci/cross builds for the oldest systems that wheels promise.
SYSTEM = {
    "ELF": r"lib(c|m|pthread)\.so\.6|libpthread\.so\.0|libc\.so|ld-linux.*",
    "MACHO": r"/usr/lib/libSystem\.B\.dylib",
    "PE": r"(?i)python3\.dll|kernel32\.dll|msvcrt\.dll|ucrtbase\.dll|api-ms-win-crt-.*\.dll",
}
MACHINES = {"amd64": ("amd64",), "x86_64": ("x86_64",), "arm64": ("arm64",), "aarch64": ("aarch64",)}  # lief's names


def called_of_python() -> list[str]:
    """The functions and objects of Python's stable interface in the sources."""
    sources = [*ROOT.glob("src/cige/**/native/module.c"), *ROOT.glob("src/cige/lexicon/*.c")]
    return sorted({name for path in sources for name in re.findall(PYTHONS, path.read_text(encoding="utf-8"))})


def stub() -> str:
    """C for a python3.dll in which nothing works: for linking, and for what does not call Python."""
    others = r"PyInit_.*|Py(MODINIT_FUNC|ModuleDef_HEAD_INIT)|Py_(UCS4|ssize_t|RETURN_NONE|None|INCREF|LIMITED_API)"
    names = [name for name in called_of_python() if not re.fullmatch(others, name)]
    names += ["PyModule_Create2", "PyType_GetFlags", "_PyArg_ParseTuple_SizeT", "_Py_BuildValue_SizeT"]  # behind macros
    names += ["_Py_NoneStruct", "Py_IncRef"]
    return "\n".join(
        f"__declspec(dllexport) void {name}(void) {{ __builtin_trap(); }}" for name in dict.fromkeys(names)
    )


def expected(levels: list[str]) -> dict[str, list[str]]:
    """{module: functions} of setup.py."""
    import runpy

    import setuptools

    setuptools.setup = lambda **_: None
    os.chdir(ROOT)
    called = runpy.run_path("setup.py")["CALLED"]
    of_training = [level for level in levels if level not in ("dotprod", "i8mm")]  # which use the portable form
    modules = {f"nn/native/_kernels_{level}": called["kernels"] for level in of_training}
    modules |= {f"runtime/native/_runtime_{level}": called["runtime"] for level in levels}
    modules |= {"instruction_sets/_cpu": called["cpu"]}
    return modules | {f"lexicon/_{name}": [] for name in ("walk", "packed", "parse")}


def main(platform: str, levels: str, folder: str) -> int:
    kind = "PE" if platform.startswith("win") else "MACHO" if platform.startswith("macosx") else "ELF"
    problems, n_functions = [], 0
    modules = expected(levels.split(","))
    for module, functions in modules.items():
        found = [*Path(folder, "cige").glob(f"{module}.*")]
        if len(found) != 1:
            problems.append(f"{module} is there {len(found)} times")
            continue
        library = lief.parse(str(found[0]))
        if library.format.name != kind:
            problems.append(f"{module} is {library.format.name}, expected {kind}")
        exported = {
            function.name.removeprefix("_" if kind == "MACHO" else "") for function in library.exported_functions
        }
        for name in (f"PyInit_{module.rpartition('/')[2]}", *functions):
            n_functions += 1
            if name not in exported:
                problems.append(f"{module} does not export {name}")
        header = library.header
        machine = {"PE": "machine", "MACHO": "cpu_type", "ELF": "machine_type"}[kind]
        if getattr(header, machine).name.lower() not in MACHINES[platform.rpartition("-")[2]]:
            problems.append(f"{module} is for {getattr(header, machine).name}")
        needed = (
            library.libraries
            if kind != "MACHO"
            else [part.name for part in library.libraries if part.command.name != "ID_DYLIB"]
        )
        for name in needed:
            if not re.fullmatch(SYSTEM[kind], name):
                problems.append(f"{module} needs {name}")
    for problem in problems:
        print(f"WRONG: {problem}")
    print(f"{platform}: {len(modules)} libraries ({kind}) export {n_functions} functions")
    return int(bool(problems))


if __name__ == "__main__":
    if sys.argv[1:] == ["--stub-of-python"]:
        print(stub())
    else:
        sys.exit(main(*sys.argv[1:]))
