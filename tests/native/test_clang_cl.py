"""The runtime's intrinsics compile as clang-cl compiles them: some of its versions include fewer headers than Clang.

Windows' own headers are not needed; those of the C library are replaced by the few lines that are used.
"""

import shutil
import subprocess
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[2] / "src" / "cige" / "runtime" / "native"
CLANG = shutil.which("clang")
AVX2 = ["-mavx2", "-mfma"]
LEVELS = {"avx2": AVX2, "avx512": [*AVX2, "-mavx512f", "-mavx512vl", "-mavx512bw", "-mavx512dq"]}
HEADERS = {
    "math.h": "#define INFINITY __builtin_inff()\n",
    "stdlib.h": "",
    "malloc.h": "",
    "string.h": "#include <stddef.h>\nvoid *memcpy(void *, const void *, size_t), *memset(void *, int, size_t);\n",
}

pytestmark = pytest.mark.skipif(CLANG is None or not SOURCES.is_dir(), reason="needs Clang and the sources")


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    "name", ["product_avxvnni", "product_bf16", "product_int8", "attention_bf16", "attention_int16"]
)
def test_intrinsics_are_declared(tmp_path, name, level):
    for header, text in HEADERS.items():
        (tmp_path / header).write_text(text)
    target = ["--target=x86_64-pc-windows-msvc", "-fms-compatibility-version=19.35", "-I", str(tmp_path)]
    command = [str(CLANG), *target, "-std=gnu11", "-O1", *LEVELS[level], "-Werror=implicit-function-declaration"]
    source = str(SOURCES / f"{name}.c")
    done = subprocess.run([*command, "-c", source, "-o", str(tmp_path / "object")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
