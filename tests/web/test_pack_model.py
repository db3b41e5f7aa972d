"""web/pack_model.py and web/packed.js: what is packed for a browser is the same model, to the bit."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file
from web_build import WEB, pack_model

from cige.folders.hub import model_folder

NODE = shutil.which("node") or shutil.which("nodejs")
needs_node = pytest.mark.skipif(NODE is None, reason="no node (apt-get install nodejs)")
FILES, PACKED = (WEB / "files.js").as_uri(), (WEB / "packed.js").as_uri()
SCRIPT = f"""
import {{ readFileSync }} from "node:fs";
import {{ safetensors }} from "{FILES}";
import {{ unzipped }} from "{PACKED}";
const file = readFileSync(process.argv[1]), bytes = file.buffer.slice(file.byteOffset, file.byteOffset + file.length);
const arrays = safetensors(await unzipped(bytes, "x"), "x"), hex = {{}};
for (const [name, {{ data }}] of Object.entries(arrays))
  hex[name] = Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("hex");
process.stdout.write(JSON.stringify(hex));
"""


def in_javascript(path: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([NODE, "--input-type=module", "-e", SCRIPT, path], capture_output=True, text=True)


@needs_node
def test_javascript_reads_the_same_bytes(tmp_path):
    rng = np.random.default_rng(0)
    arrays = {
        "int8": rng.integers(-128, 128, (700, 50), np.int8),
        "none": np.zeros((0, 50), np.int8),
        "float32": rng.normal(size=(37, 5)).astype(np.float32),
        "float16": rng.normal(size=(37, 1)).astype(np.float16),
        "bool": rng.integers(0, 2, 9).astype(bool),
        "up": np.sort(rng.integers(0, 2**42, 600)),
        "down": np.array([5, -7, 2**62, -(2**62), 0, -1], np.int64),
        "rows": np.array([3, 4, 5, 1, 6, -(2**31), 2**31 - 1], np.int32),
        "one": np.array([7], np.int32),
        "keys": rng.integers(0, 2**63, 300).astype(np.uint64),
        "numbers": rng.integers(0, 2**32, 300).astype(np.uint32),
    }
    pack_model.write_gzip(tmp_path / "x", pack_model.packed(arrays))
    done = in_javascript(tmp_path / "x.gz")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {name: array.tobytes().hex() for name, array in arrays.items()}
    codings = json.loads(gzip.decompress((tmp_path / "x.gz").read_bytes())[8:].partition(b"}}")[0].decode() + "}}")
    assert {*json.loads(codings["__metadata__"]["codings"]).values()} == {"columns", "planes", "steps"}


@needs_node
def test_a_file_that_is_cut_short_is_reported(tmp_path):
    pack_model.write_gzip(tmp_path / "x", pack_model.packed({"a": np.arange(5000)}))
    (tmp_path / "x.gz").write_bytes((tmp_path / "x.gz").read_bytes()[:-20])
    done = in_javascript(tmp_path / "x.gz")
    assert done.returncode and "x.gz: cut short or damaged; copy it again" in done.stderr


def test_every_word_and_bigram_has_the_vector_that_it_had():
    weights, vocabulary = (load_file(model_folder() / f"{name}.safetensors") for name in ("model", "vocabulary"))
    before = weights | vocabulary
    for table, rows in pack_model.TABLES.items():
        pack_model.order_rows(weights, table, vocabulary, rows)
        n_tuned, old, new = len(weights[f"{table}.tuned"]), before[rows], vocabulary[rows]
        np.testing.assert_array_equal(new[old < n_tuned], old[old < n_tuned])
        is_fixed = old >= n_tuned
        assert is_fixed.sum() > 100_000
        for part in ("fixed", "scale"):
            expected = before[f"{table}.{part}"][old[is_fixed] - n_tuned]
            np.testing.assert_array_equal(weights[f"{table}.{part}"][new[is_fixed] - n_tuned], expected)
        assert (np.diff(new[is_fixed]) == 1).mean() > 0.9  # and so they compress to nearly nothing


def test_a_table_without_fixed_rows_stays_as_it_is():
    weights = {"t.tuned": np.ones((4, 2), np.float32), "t.fixed": np.zeros((0, 2), np.int8)}
    weights["t.scale"] = np.zeros((0, 1), np.float16)
    vocabulary = {"rows": np.array([3, 1, 2], np.int32)}
    pack_model.order_rows(weights, "t", vocabulary, "rows")
    assert vocabulary["rows"].tolist() == [3, 1, 2] and weights["t.fixed"].shape == (0, 2)
