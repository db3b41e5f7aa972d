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
import platform
import re
import sys
import zlib
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from itertools import chain
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext

ABI = {"py_limited_api": True, "define_macros": [("Py_LIMITED_API", "0x030A0000")], "optional": True}
NATIVE, RUNTIME, LEXICON = "src/cige/nn/native", "src/cige/runtime/native", "src/cige/lexicon"
PROCESSOR = "src/cige/instruction_sets"

HEADERS = (
    "product",
    "product_narrow",
    "product_pairs",
    "integers16",
    "bfloat16_pairs",
    "transpose",
    "attention",
    "flat",
    "chain",
    "marginals",
    "rows_of_tables",
)  # of the runtime

# What the architecture guarantees, whatever the environment's CFLAGS ask for, since the last option counts.
AVX2 = ["-march=x86-64", "-mavx2", "-mfma"]
X86_64 = {
    "portable": ["-march=x86-64"],
    "avx2": AVX2,
    "avx512": [*AVX2, "-mavx512f", "-mavx512vl", "-mavx512bw", "-mavx512dq"],
}
# GCC 12 moves instructions before it gives out registers, and sums no longer stay in theirs; other systems have Clang.
NEON = ["-fno-schedule-insns"] if sys.platform == "linux" else []
ARM64 = {
    "portable": NEON if sys.platform == "darwin" else [*NEON, "-march=armv8-a"],
    "dotprod": [*NEON, "-march=armv8.2-a+dotprod"],
    "i8mm": [*NEON, "-march=armv8.2-a+dotprod+i8mm+bf16"],
}
FEATURES = {  # of the processor, by Linux's names
    "portable": set(),
    "avx2": {"avx2", "fma"},
    "avx512": {"avx2", "fma", "avx512f", "avx512vl", "avx512bw", "avx512dq"},
    "dotprod": {"asimddp"},
    "i8mm": {"asimddp", "i8mm", "bf16"},
}
LEVELS = {"portable": []}
if sys.maxsize > 2**32 and platform.machine().lower() in ("x86_64", "amd64") and sys.platform != "darwin":
    LEVELS = X86_64
elif sys.maxsize > 2**32 and platform.machine().lower() in ("aarch64", "arm64"):
    LEVELS = ARM64

PARTS = os.environ.get("CIGE_BUILD", "") or "all"
if PARTS not in ("all", "here", "core", "none"):
    sys.exit(f"CIGE_BUILD={PARTS}: expected all, here, core or none")

# -ffast-math would let the compiler take NaN and infinity for impossible; a kernel hid a NaN that way once. One of its
# parts is needed for speed: without -fno-trapping-math, GCC 12 leaves loops with a selection unvectorised, and
# softmax.c is up to six times slower. It changes no value. Sums are kept in lanes by the sources themselves (rows.h).
# -g0, since what Python was built with may ask for debugging information, which takes a sixth of the time.
# CIGE_CFLAGS adds to them, for sanitizers (.ci/sanitize).
OWN = os.environ.get("CIGE_CFLAGS", "").split()
FLAGS = ["-O3", "-g0", "-std=gnu11", "-fno-fast-math", "-fno-trapping-math", "-pthread", *OWN]


class BuildExtensions(build_ext):
    """Compiles the sources of all extensions side by side, one per core."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.parallel = self.parallel or True  # True: as many as there are cores
        self.pool = ThreadPoolExecutor(None if self.parallel is True else self.parallel)

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


def levels_here() -> list[str]:
    """The best level whose instructions Linux lists for this processor; all levels where that is not known."""
    listed = Path("/proc/cpuinfo")
    flags = re.search(r"^(?:flags|Features)\s*:(.*)", listed.read_text(), re.MULTILINE) if listed.exists() else None
    if flags is None:
        return [*LEVELS]
    known = {*flags[1].split()}
    return [name for name in LEVELS if known >= FEATURES[name]][-1:]


def kernels(level: str, options: list[str]) -> Extension:
    module = f"_kernels_{level}"
    return Extension(
        f"cige.nn.native.{module}",
        sources=[f"{NATIVE}/{name}.c" for name in ("kernels", "softmax", "vocabulary", "module")],
        depends=[f"{NATIVE}/{name}.h" for name in ("bf16", "maxima", "rows", "threads")],
        extra_compile_args=[*FLAGS, *options],
        extra_link_args=["-pthread", "-lm"],
        **ABI | {"define_macros": [*ABI["define_macros"], ("KERNELS_MODULE", module)]},
    )


def runtime(level: str, options: list[str]) -> Extension:
    names = ["product", "product_bf16", "product_int8", "attention", "attention_bf16", "attention_int16", "flat"]
    names += ["chain", "marginals", "lengths", "rules", "rows", "spans", "lstm"]
    module = f"_runtime_{level}"
    sources = sorted([*Path(RUNTIME).glob("*.[ch]"), *Path(NATIVE).glob("*.h")], key=lambda file: file.name)
    checksum = zlib.crc32(b"".join(file.read_bytes() for file in sources))  # see runtime/native/__init__.py
    headers = [f"{NATIVE}/{name}.h" for name in ("maxima", "rows", "threads")]
    headers += [f"{RUNTIME}/{name}.h" for name in HEADERS]
    return Extension(
        f"cige.runtime.native.{module}",
        sources=[f"{NATIVE}/module.c", *(f"{RUNTIME}/{name}.c" for name in names)],
        depends=headers,
        extra_compile_args=[*FLAGS, *options],
        extra_link_args=["-pthread", "-lm"],
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
        extra_compile_args=[*FLAGS, *LEVELS["portable"]],
        **ABI | {"define_macros": [*ABI["define_macros"], ("KERNELS_MODULE", "_cpu")]},
    )


def lexicon(name: str, *others: str) -> Extension:
    sources = [f"{LEXICON}/{source}.c" for source in (name, *others)]
    depends = [f"{LEXICON}/{other}.h" for other in others]
    flags = ["-O3", "-g0", *OWN]
    return Extension(f"cige.lexicon._{name}", sources=sources, depends=depends, extra_compile_args=flags, **ABI)


def extensions() -> list[Extension]:
    """Those of CIGE_BUILD; the ones that take longest come first."""
    if PARTS == "none":
        return []
    levels = [*LEVELS] if PARTS == "all" else levels_here()
    # Training has one form for all of arm64; see nn/native/__init__.py.
    of_training = [] if PARTS == "core" else ["portable"] if LEVELS is ARM64 else levels
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
