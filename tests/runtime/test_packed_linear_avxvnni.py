"""Products by AVX-VNNI, also on processors that have the same instructions in the encoding of AVX-512 only.

There, the avx2 level is compiled anew, and the prefix that asks the assembler for AVX-VNNI's encoding is left out.
"""

from __future__ import annotations

import platform
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from runtime_forms import LEVELS

import cige
from cige.runtime import native
from cige.runtime.native import Library, address
from cige.runtime.packed_linear import PackedLinear, aligned
from cige.runtime.precision import FLOAT32, INT8, INT16, available, chosen

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src" / "cige" / "runtime" / "native"
COMPILER = shutil.which("gcc")
FLAGS = ["-O3", "-std=gnu11", "-fno-fast-math", "-fno-trapping-math", "-ffp-contract=fast", "-fPIC"]
FLAGS += ["-march=x86-64", "-mavx2", "-mfma"]
OWN = "product_avxvnni.c"
FEATURES = Path("/proc/cpuinfo")
HAS = set(FEATURES.read_text(encoding="utf-8").split() if FEATURES.exists() else ())
IS_THERE = "avx_vnni" in HAS

pytestmark = pytest.mark.skipif("avx2" not in LEVELS, reason="the level avx2 was not built or does not run here")


@pytest.fixture(scope="module")
def library(tmp_path_factory) -> Library:
    if IS_THERE:
        return native.load("avx2")
    if not {"avx512_vnni", "avx512vl"} <= HAS or platform.machine() != "x86_64":
        pytest.skip("this processor has VNNI in no encoding")
    if COMPILER is None or not SOURCES.is_dir():
        pytest.skip("needs GCC and the sources")
    folder = tmp_path_factory.mktemp("avxvnni")
    assembly, answer = folder / "avxvnni.s", folder / "answer.c"
    command = [COMPILER, *FLAGS, "-DSOURCE_CHECKSUM=0u"]
    subprocess.run([*command, "-Dhas_avxvnni=is_here", "-S", str(SOURCES / OWN), "-o", str(assembly)], check=True)
    text = assembly.read_text()
    if "{vex}" not in text:
        pytest.skip("this compiler does not know AVX-VNNI")
    assembly.write_text(text.replace("{vex}", ""))
    answer.write_text("int has_avxvnni(void) { return 1; }\n")
    others = [str(path) for path in SOURCES.glob("*.c") if path.name != OWN]
    path = folder / "library.so"
    subprocess.run([*command, *others, str(assembly), str(answer), "-shared", "-o", str(path), "-lm"], check=True)
    return Library(str(path))


def test_a_processor_with_avxvnni_is_recognised():
    whole_bytes = native.load("avx2").whole_bytes
    assert [whole_bytes(k) for k in (2, 3)] == [1 if IS_THERE else 2, 2]
    assert chosen("auto", available(native.load("avx2"))) == (INT8 if IS_THERE else INT16)


def test_int8_is_the_fastest_precision(library):
    assert available(library) == (FLOAT32, INT16, INT8)


@pytest.mark.parametrize("mode", [0, 1, 2])  # plain, added, with ReLU
@pytest.mark.parametrize("shape", [(1, 1, 1), (5, 3, 7), (7, 31, 16), (13, 257, 33), (61, 700, 160), (5, 512, 48)])
def test_products_are_those_of_other_levels(library, shape, mode):
    n_rows, n_in, n_out = shape
    rng, results = np.random.default_rng(sum(shape)), []
    weight, bias = rng.normal(size=(n_out, n_in)).astype(np.float32), rng.normal(size=n_out).astype(np.float32)
    weight[0] = 0
    rows, start = rng.normal(size=(n_rows, n_in)).astype(np.float32), rng.normal(size=(n_rows, n_out))
    rows[-1] = 0
    rows[0] = np.abs(rows[0]).max()  # the highest sums that there can be
    portable = [native.load(level) for level in LEVELS if INT8 in available(native.load(level))]
    for one in (library, *portable):
        packed = PackedLinear(one, weight, bias, precision=INT8)
        x, y = aligned(rows.size), aligned(n_rows * packed.n_out)
        x[:], y.reshape(n_rows, -1)[:, :n_out] = rows.ravel(), start
        one.one_product(packed.struct, address(x), n_rows, address(y), mode)
        results.append(y.reshape(n_rows, -1)[:, :n_out])
    for other in results[1:]:
        np.testing.assert_allclose(results[0], other, rtol=1e-6, atol=1e-5)


def test_the_bundled_model_finds_the_same_entities(library, monkeypatch):
    texts = ["普京在莫斯科会见了小米公司的雷军。", "阿莫西林由罗氏公司生产,iPhone 15 Pro在上海开售。" * 9, "", "a"]
    monkeypatch.setattr(native, "load", lambda kernels=None: library)
    ner = cige.load()
    assert ner.model.precision == INT8
    found = [[(e.start, e.end, e.label, e.score) for e in of_text] for of_text in ner.pipe(texts)]
    monkeypatch.undo()
    other = cige.load(precision=INT8)
    for one, expected in zip(found, other.pipe(texts), strict=True):
        assert [e[:3] for e in one] == [(e.start, e.end, e.label) for e in expected]
        np.testing.assert_allclose([e[3] for e in one], [e.score for e in expected], atol=0.02)
