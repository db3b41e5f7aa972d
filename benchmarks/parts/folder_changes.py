"""Changes to the files of a folder that make it hostile: shapes, number types, values, headers and facts.

Damage by chance is found by checksums, so each change is one that an author of a folder could make; `sign` then writes
the checksums anew.
"""

import hashlib
import json
import pickle
import random
import struct
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from benchmarks.parts.odd_files import ODD_VALUES, change_value
from benchmarks.stress.fuzz import damaged

MANIFEST = "manifest.json"
EXTREMES = (0, 1, -1, 2, 3, 7, 127, 255, 2**15, 2**31 - 1, -(2**31), 2**32, 2**40, 2**62, 2**63 - 1, -(2**63))
FLOATS = (0.0, -0.0, 1e-45, 1.0, -1.0, 1e4, -1e4, 65504.0, 1e30, 3e38, -3e38, float("inf"), float("-inf"), float("nan"))
DTYPES = ("f8", "f4", "f2", "i8", "i4", "i2", "i1", "u1", "?")
NPY_DTYPES = (*DTYPES, "u8", "u4", "u2", ">u8", ">i4", ">f4", "c8", "U3", "S5", "M8[s]")
SIZES = (0, 1, 2, 3, 5, 64, 257, 4096)
TEXTS = (*"x*O", "", "flat", "soft_lexicon", "bias", "exact", "BIO", "BMES", "\ud83d", "a\nb", "9" * 400, "../..")
NAMES = (
    *("encoder.gazetteers.weight", "encoder.word_labels.weight", "encoder.fusion.weight.bias", "output.weight"),
    *(f"encoder.layers.0.attention.{part}" for part in ("v", "query.bias", "key.bias", "key.weight")),
    *(f"encoder.layers.1.attention.{part}" for part in ("v", "query.bias", "key.bias", "key.weight")),
    *("encoder.layers.0.attention.relation_bias.weight", "encoder.layers.0.attention.relation_key.weight"),
    *("encoder.embeddings.char_word.fixed", "encoder.soft_lexicon.none", "word_groups", "word_counts", "crf.allowed"),
)
"""Arrays that some networks have; others must not mind them."""


def change(folder: Path, rng: random.Random) -> str:
    """Make one to three changes and sign the folder; returns what was done."""
    done = []
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        path = rng.choice(sorted(path for path in folder.rglob("*") if path.is_file()))
        done.append(f"{path.relative_to(folder)}: {_change_file(path, rng)}")
    sign(folder)
    return "; ".join(done)


def sign(folder: Path) -> None:
    """Write the sizes and checksums of all listed files into all manifests, those of inner folders first."""
    for path in sorted(folder.rglob(MANIFEST), key=lambda path: -len(path.parts)):
        try:
            facts = json.loads(path.read_text(encoding="utf-8"))
            for name, entry in facts["files"].items():
                if (path.parent / name).is_file():
                    content = (path.parent / name).read_bytes()
                    entry |= {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
            for name, entry in facts.get("shards", {}).items():
                entry["sha256"] = hashlib.sha256((path.parent / name / MANIFEST).read_bytes()).hexdigest()
            path.write_text(json.dumps(facts), encoding="utf-8")
        except (OSError, ValueError, TypeError, AttributeError, LookupError, RecursionError):
            continue  # a manifest that is no longer one


def _change_file(path: Path, rng: random.Random) -> str:
    content = path.read_bytes()
    kind = rng.random()
    if kind < 0.03:
        path.unlink()
        return "deleted"
    if kind < 0.06:
        path.write_bytes(content[: rng.randrange(len(content) + 1)])
        return "cut"
    if path.suffix == ".safetensors":
        return _change_safetensors(path, content, rng)
    if path.suffix == ".npy":
        return _change_npy(path, content, rng)
    if path.suffix == ".json" and kind < 0.9:
        return _change_json(path, content, rng)
    path.write_bytes(damaged(content[:100_000], [content], rng) or b"\n")
    return "bytes"


def _change_json(path: Path, content: bytes, rng: random.Random) -> str:
    try:
        value = json.loads(content)
    except ValueError:
        return "no JSON"
    without = ("files",) if rng.random() < 0.95 else ()  # whose changes are found at once
    told = change_value(value, rng, without=without, odd=(*EXTREMES, *TEXTS))
    path.write_text(json.dumps(value), encoding="utf-8")
    return told


def _changed_array(array: np.ndarray, rng: random.Random, dtypes: tuple[str, ...]) -> tuple[np.ndarray, str]:
    what = rng.randrange(8)
    if what == 0 and array.ndim:
        axis, n = rng.randrange(array.ndim), rng.choice(SIZES)
        n = rng.choice((n, array.shape[axis] - 1, array.shape[axis] + 1))
        shape = [*array.shape]
        shape[axis] = max(0, n)
        while np.prod(shape, dtype=float) > 1 << 20:
            shape[axis] //= 2
        return np.resize(array, shape), f"shape {shape}"
    if what == 1:
        made = [array.T, array.reshape(-1), array[None], array[..., None], *([array[:0]] if array.ndim else [])]
        found = rng.choice([*made, *([array.reshape(-1)[0].reshape(())] if array.size else [])])
        return np.ascontiguousarray(found).reshape(found.shape), f"shape {list(found.shape)}"
    if what == 2:
        dtype = np.dtype(rng.choice(dtypes))
        with np.errstate(all="ignore"):
            try:
                return array.astype(dtype), f"type {dtype}"
            except (ValueError, TypeError):
                return np.zeros(array.shape, dtype), f"zeros of type {dtype}"
    made = array.copy()
    flat = made.reshape(-1)
    if not flat.size:
        return made, "nothing in it"
    if what == 3:
        order = np.array(rng.sample(range(flat.size), flat.size)) if flat.size < 5000 else slice(None, None, -1)
        flat[:] = flat[order]
        return made, "other order"
    places = [rng.randrange(flat.size) for _ in range(rng.choice((1, 1, 3, flat.size)))]
    new = _value(made.dtype, rng)
    flat[places] = new
    return made, f"{new} at {places[:2]}"


def _value(dtype: np.dtype, rng: random.Random) -> Any:
    if dtype.kind == "f":
        with np.errstate(all="ignore"):
            return np.array(rng.choice(FLOATS)).astype(dtype)[()]
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        number = rng.choice((*EXTREMES, rng.randint(0, 1000), int(info.max), int(info.min)))
        return np.array(min(max(number, int(info.min)), int(info.max)), dtype)[()]
    return np.zeros((), dtype)[()]


def _change_safetensors(path: Path, content: bytes, rng: random.Random) -> str:
    try:
        size = int.from_bytes(content[:8], "little")
        header, arrays = json.loads(content[8 : 8 + size]), load(content)
    except (ValueError, LookupError, TypeError, SafetensorError):
        return "no .safetensors"
    if rng.random() < 0.15:
        return _change_header(path, header, content[8 + size :], rng)
    name, other, what = rng.choice(sorted(arrays)), rng.choice(sorted(arrays)), rng.randrange(12)
    if what == 0:
        del arrays[name]
        told = "deleted"
    elif what == 1:
        other = rng.choice((*NAMES, *arrays))
        arrays[other], told = arrays[name], f"also as {other}"
    elif what == 2:
        arrays[name], arrays[other] = arrays[other], arrays[name]
        told = f"for {other}"
    else:
        changed, told = _changed_array(arrays[name], rng, DTYPES)
        arrays[name] = np.ascontiguousarray(changed).reshape(changed.shape)
    path.write_bytes(save(arrays, header.get("__metadata__")))
    return f"{name} {told}"


def _change_header(path: Path, header: dict, data: bytes, rng: random.Random) -> str:
    name = rng.choice(sorted(header))
    entry = header[name]
    key = rng.choice(sorted(entry)) if entry else "dtype"
    odd: dict[str, tuple[Any, ...]] = {
        "dtype": ("F64", "BF16", "F8_E4M3", "I8", "U64", "BOOL", 7, None, ["F32"]),
        "shape": ([-1, -1], [2**62, 4], [2**32, 2**32], [0], [], [1] * 70, "ab", [True], [0.5], None, [10**30]),
        "data_offsets": ([0, 2**62], [-8, 0], [8, 0], [0], [1, 2, 3], [0, len(data) + 4], None, ["0", "4"], [0, 0]),
    }
    entry[key] = rng.choice(odd.get(key, ODD_VALUES[:10]))
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return f"header {name}.{key} = {repr(entry[key])[:60]}"


def _change_npy(path: Path, content: bytes, rng: random.Random) -> str:
    if rng.random() < 0.15:
        made: dict[str, Callable[[], bytes]] = {
            "pickle": lambda: _saved(np.save, np.array([{"a": 1}], object), allow_pickle=True),
            "npz": lambda: _saved(np.savez, np.arange(3)),
            "bare pickle": lambda: pickle.dumps([1, 2, 3]),
            "odd header": lambda: _with_header(content, rng),
        }
        name = rng.choice(sorted(made))
        path.write_bytes(made[name]())
        return name
    try:
        array = np.load(BytesIO(content), allow_pickle=False)
    except Exception:
        return "no .npy"
    if not isinstance(array, np.ndarray):
        return "an archive"
    changed, told = _changed_array(array, rng, NPY_DTYPES)
    path.write_bytes(_saved(np.save, changed, allow_pickle=False))
    return told


def _saved(save: Callable[..., None], array: np.ndarray, **options: bool) -> bytes:
    file = BytesIO()
    save(file, array, **options)
    return file.getvalue()


def _with_header(content: bytes, rng: random.Random) -> bytes:
    size = int.from_bytes(content[8:10], "little")
    data = content[10 + size :]
    text = content[10 : 10 + size].decode("latin-1")
    shape = rng.choice(("(-1,)", f"({2**62}, 4)", "(10**9,)", "(99999999999999999999,)", "()", "(True,)", "3"))
    odd = [f"{text[:-1].partition(', }')[0].rpartition('(')[0]}{shape}, }}", "{" * 200, "-" * 9000 + "1", ""]
    odd += [text.replace("<", ">"), text.replace("False", "True")]
    odd.append(text.strip() + " " * rng.randrange(1, 16))  # numbers are no longer where words of memory begin
    header = rng.choice(odd)
    made = (header + "\n").encode("latin-1")
    return content[:8] + struct.pack("<H", len(made)) + made + data
