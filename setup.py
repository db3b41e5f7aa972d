"""Builds the optional C parts: the CPU kernels, matching words, reading vectors; all else is in pyproject.toml.

`optional=True`: where there is no C compiler, or it does not know an instruction set, the installation goes on without
that part. Another level is used then, if it was built, or NumPy, PyTorch operations and Python, with the same results.
Where no part could be built, the wheel is one for any platform.

No part is built for the processor of the machine that builds it. The kernels are compiled once per level of
instruction sets, each level into a library of its own, and cige.instruction_sets chooses one when the program runs.
Walking and parsing wait for memory and branch on every byte; wider vectors would do nothing for them.

The environment variable CIGE_BUILD says which parts to build: `all` (the default), `here` for the level that programs
on this machine use, `core` for the same without the kernels of training, which takes least time, or `none`.
"""

import os
import re
import shutil
import subprocess
import sys
import zlib
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from itertools import chain
from pathlib import Path
from sysconfig import get_platform

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext

ABI = {"py_limited_api": True, "define_macros": [("Py_LIMITED_API", "0x030A0000")], "optional": True}
NATIVE, RUNTIME, LEXICON = "src/cige/nn/native", "src/cige/runtime/native", "src/cige/lexicon"
PROCESSOR = "src/cige/instruction_sets"

# Levels by architecture, from slow to fast. -march is what the architecture guarantees, whatever the environment's
# CFLAGS ask for, since the last option counts; Apple's processors all have more than the first of ARM. GCC has the
# functions of dotprod and bf16 for ARMv8.2 only. GCC 12 moves instructions before it gives out ARM's registers, so that
# sums no longer stay in theirs; other systems have Clang.
AVX2 = ["-march=x86-64", "-mavx2", "-mfma"]
NEON = ["-fno-schedule-insns"] if sys.platform == "linux" else []
DOTPROD = "-march=armv8.2-a+dotprod"
LEVELS_OF = {
    "x86_64": {
        "portable": ["-march=x86-64"],
        "avx2": AVX2,
        "avx512": [*AVX2, "-mavx512f", "-mavx512vl", "-mavx512bw", "-mavx512dq"],
    },
    "aarch64": {
        "portable": [] if sys.platform == "darwin" else [*NEON, "-march=armv8-a"],
        "dotprod": [*NEON, DOTPROD],
        "i8mm": [*NEON, f"{DOTPROD}+i8mm+bf16"],
    },
}
FEATURES = {  # of the processor, by Linux's names
    "portable": set(),
    "avx2": {"avx2", "fma"},
    "avx512": {"avx2", "fma", "avx512f", "avx512vl", "avx512bw", "avx512dq"},
    "dotprod": {"asimddp"},
    "i8mm": {"asimddp", "i8mm", "bf16"},
}
NAMES = {"amd64": "x86_64", "arm64": "aarch64"}  # of Windows and macOS


def architectures(platform: str) -> list[str]:
    """Those that one build is for, most often one; macOS compiles for two at once where Python was built so."""
    if platform.startswith("macosx"):
        named = re.findall(r"-arch\s+(\S+)", os.environ.get("ARCHFLAGS", ""))
        if not named and platform.endswith("universal2"):
            named = ["x86_64", "arm64"]
        if named:
            return [NAMES.get(name, name) for name in dict.fromkeys(named)]
    name = platform.rpartition("-")[2]
    name = NAMES.get(name, name)
    return [name if sys.maxsize > 2**32 else "of 32 bits"]


def levels_of(platform: str) -> dict[str, list[str]]:
    """{level: flags} for a platform as sysconfig names it, such as linux-x86_64, win-amd64 or macosx-11.0-arm64."""
    known = {name: LEVELS_OF.get(name, {"portable": []}) for name in architectures(platform)}
    if len(known) == 1:
        return next(iter(known.values()))
    apple = {"aarch64": "arm64"}
    return {  # each half of the library gets flags of its own, and one that has no such level is like the portable one
        level: [
            part
            for name, own in known.items()
            for flag in own.get(level, ())
            for part in (f"-Xarch_{apple.get(name, name)}", flag)
        ]
        for level in dict.fromkeys(chain(*known.values()))
    }


LEVELS = levels_of(get_platform())

PARTS = os.environ.get("CIGE_BUILD", "") or "all"
if PARTS not in ("all", "here", "core", "none"):
    sys.exit(f"CIGE_BUILD={PARTS}: expected all, here, core or none")

# -ffast-math would let the compiler take NaN and infinity for impossible; a kernel hid a NaN that way once. One of its
# parts is needed for speed: without -fno-trapping-math, GCC 12 leaves loops with a selection unvectorised, and
# softmax.c is up to six times slower. It changes no value. Sums are kept in lanes by the sources themselves (rows.h).
# -ffp-contract=fast, a product and a sum in one step, is what GCC does unasked and Clang does not.
# -g0, since what Python was built with may ask for debugging information, which takes a sixth of the time.
# CIGE_CFLAGS adds to them, for sanitizers (.ci/sanitize).
OWN = os.environ.get("CIGE_CFLAGS", "").split()
FLAGS = ["-O3", "-g0", "-std=gnu11", "-fno-fast-math", "-fno-trapping-math", "-ffp-contract=fast", "-pthread", *OWN]
LINKED = ["-pthread", "-lm"]

# What Python calls besides PyInit_*. Windows exports nothing else; other systems export every function.
CALLED = {
    "kernels": [
        *("span_attention_forward", "span_attention_backward", "softmax_dropout_forward", "softmax_dropout_backward"),
        "vocabulary_gradient",
    ],
    "runtime": [
        *("panel_width", "group_bytes", "has_precision", "whole_bytes", "int8_offset", "one_product", "fill_codes"),
        *("rows_of_lattices", "flat_emissions", "read_chain", "lstm_layer", "read_lattices", "source_checksum"),
        *("layout_of_structs", "check_model"),
    ],
    "cpu": ["cpu_has_avx2", "cpu_has_avx512", "cpu_has_dotprod", "cpu_has_i8mm"],
}


def for_compiler(kind: str, flags: list[str]) -> list[str]:
    """Flags of GCC and Clang, for setuptools' kinds of compilers: "unix", "mingw32", or "msvc", which is clang-cl here.

    Windows has its own threads, and its mathematics are in the C library.
    """
    if kind == "unix":
        return flags
    flags = [flag for flag in flags if flag not in LINKED]
    return [f"/clang:{flag}" for flag in flags] if kind == "msvc" else flags


CLANG_FOLDERS = [rf"{os.environ.get('PROGRAMFILES', '')}\LLVM\bin"]  # where its installer puts it


class BuildExtensions(build_ext):
    """Compiles the sources of all extensions side by side, one per core."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.parallel = self.parallel or True  # True: as many as there are cores
        self.pool = ThreadPoolExecutor(None if self.parallel is True else self.parallel)

    def build_extensions(self) -> None:
        """Take clang-cl for Microsoft's compiler, which has no vectors as types; its linker stays."""
        kind = self.compiler.compiler_type
        if kind == "msvc":
            if not self.compiler.initialized:
                self.compiler.initialize(self.plat_name)
            clang = shutil.which("clang-cl", path=os.pathsep.join([os.environ.get("PATH", ""), *CLANG_FOLDERS]))
            if clang is None:
                self.warn("no clang-cl was found, so nothing is compiled and NumPy is used; install LLVM from llvm.org")
                self.extensions = []
            self.compiler.cc = clang
        for ext in self.extensions:
            ext.extra_compile_args = for_compiler(kind, ext.extra_compile_args)
            ext.extra_link_args = [] if kind == "msvc" else for_compiler(kind, ext.extra_link_args)
        super().build_extensions()

    def get_libraries(self, ext: Extension) -> list[str]:
        """For MinGW the stable interface's library, not one version's; Python's headers name it to clang-cl."""
        return [*ext.libraries, "python3"] if self.compiler.compiler_type == "mingw32" else super().get_libraries(ext)

    def build_extension(self, ext: Extension) -> None:
        """Compile into one folder per extension, since the levels of the kernels share sources."""
        own = copy(self)  # others are compiled at the same time
        own.build_temp = f"{self.build_temp}/{ext.name}"
        own.compiler = copy(self.compiler)
        own.compiler.compile = self.compile_all
        super(BuildExtensions, own).build_extension(ext)

    def compile_all(self, sources: list[str], **options) -> list[str]:
        """The objects of sources; as `compile` of setuptools, which compiles one after the other."""
        return [*chain(*self.pool.map(lambda source: self.compiler.compile([source], **options), sources))]


class BuildWheel(bdist_wheel):
    """A wheel into which no compiled part came says that it runs anywhere."""

    def get_tag(self) -> tuple[str, str, str]:
        if not any(map(os.path.exists, self.get_finalized_command("build_ext").get_outputs())):
            self.root_is_pure = True
        return super().get_tag()


def features_here() -> set[str] | None:
    """What this processor has, by Linux's names; None on systems that do not tell a script."""
    if sys.platform == "darwin":
        command = ["sysctl", "-n", "machdep.cpu.features", "machdep.cpu.leaf7_features"]
        told = subprocess.run(command, capture_output=True, text=True, check=False)
        return {*told.stdout.lower().split()} if told.returncode == 0 else None
    listed = Path("/proc/cpuinfo")
    flags = re.search(r"^(?:flags|Features)\s*:(.*)", listed.read_text(), re.MULTILINE) if listed.exists() else None
    return None if flags is None else {*flags[1].split()}


def levels_here() -> list[str]:
    """The level that programs on this machine use; all levels where that is not known."""
    features = features_here()
    return [*LEVELS] if features is None else [name for name in LEVELS if features >= FEATURES[name]][-1:]


def kernels(level: str, options: list[str]) -> Extension:
    module = f"_kernels_{level}"
    return Extension(
        f"cige.nn.native.{module}",
        sources=[f"{NATIVE}/{name}.c" for name in ("kernels", "softmax", "vocabulary", "module")],
        depends=[f"{NATIVE}/{name}.h" for name in ("bf16", "maxima", "rows", "threads")],
        export_symbols=[*CALLED["kernels"]],
        extra_compile_args=[*FLAGS, *options],
        extra_link_args=LINKED,
        **ABI | {"define_macros": [*ABI["define_macros"], ("KERNELS_MODULE", module)]},
    )


def runtime(level: str, options: list[str]) -> Extension:
    names = ["product", "product_bf16", "product_int8", "product_avxvnni", "attention", "attention_bf16"]
    names += ["attention_int16", "flat", "chain", "marginals", "lengths", "rules", "rows", "spans", "lstm", "layout"]
    names += ["check_model"]
    module = f"_runtime_{level}"
    sources = sorted([*Path(RUNTIME).glob("*.[ch]"), *Path(NATIVE).glob("*.h")], key=lambda file: file.name)
    checksum = zlib.crc32(b"".join(file.read_bytes() for file in sources))  # see runtime/native/__init__.py
    return Extension(
        f"cige.runtime.native.{module}",
        sources=[f"{NATIVE}/module.c", *(f"{RUNTIME}/{name}.c" for name in names)],
        depends=[file.as_posix() for file in sources if file.suffix == ".h"],
        export_symbols=[*CALLED["runtime"]],
        extra_compile_args=[*FLAGS, *options],
        extra_link_args=LINKED,
        **ABI
        | {
            "define_macros": [
                *ABI["define_macros"],
                ("KERNELS_MODULE", module),
                ("SOURCE_CHECKSUM", f"{checksum}u"),
            ]
        },
    )


def processor() -> Extension:
    """What the processor can run, which is asked before a level is chosen."""
    return Extension(
        "cige.instruction_sets._cpu",
        sources=[f"{PROCESSOR}/cpu.c", f"{NATIVE}/module.c"],
        depends=[f"{NATIVE}/processor.h"],
        export_symbols=[*CALLED["cpu"]],
        extra_compile_args=[*FLAGS, *LEVELS["portable"]],
        **ABI | {"define_macros": [*ABI["define_macros"], ("KERNELS_MODULE", "_cpu")]},
    )


def lexicon(name: str, *others: str) -> Extension:
    sources = [f"{LEXICON}/{source}.c" for source in (name, *others)]
    depends = [f"{LEXICON}/{other}.h" for other in others]
    flags = ["-O3", "-g0", "-std=gnu11", *OWN]
    return Extension(f"cige.lexicon._{name}", sources=sources, depends=depends, extra_compile_args=flags, **ABI)


def extensions() -> list[Extension]:
    """Those of CIGE_BUILD; the ones that take longest come first."""
    if PARTS == "none":
        return []
    levels = [*LEVELS] if PARTS == "all" else levels_here()
    # Training has one form for all of arm64; see nn/native/__init__.py.
    of_training = [] if PARTS == "core" else [name for name in levels if name not in LEVELS_OF["aarch64"]]
    if PARTS != "core" and ("portable" in levels or not of_training):
        of_training.insert(0, "portable")
    return [
        *(runtime(level, LEVELS[level]) for level in reversed(levels)),
        *(kernels(level, LEVELS[level]) for level in reversed(of_training)),
        processor(),
        lexicon("walk", "trie"),
        lexicon("packed"),
        lexicon("parse"),
    ]


setup(
    cmdclass={"build_ext": BuildExtensions, "bdist_wheel": BuildWheel},
    options={"bdist_wheel": {"py_limited_api": "cp310"}},
    ext_modules=extensions(),
)
