"""The same weights in each form, text to entities: characters per second by batch, where the time goes, and the peak.

    OMP_NUM_THREADS=1 python benchmarks/bench_runtime.py --data-dir DATA --json runtime.json

`native` is the runtime in C, `numpy` its form without a compiler, `onnx` the model exported for ONNX Runtime, `torch`
the PyTorch form. A pass is `NER.pipe` over the texts of Weibo's dev part, or over the last of MSRA's training part, on
which the bundled model was not trained. Long texts are 50,000 characters of Weibo's training part in one line, as they
are and without anything but letters, digits and Chinese characters, against the sentences of its development part in
batches of 32 in the same turn. Products have the shape of the feed-forward network's first step, in thousand million
multiplications with additions per second, those of the runtime by their precision; `large product` is NumPy's of
1,024 x 1,024 x 1,024.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from measure import Timing, add_data_option, environment, in_turns, options, report, use_threads, write

from cige.api import NER
from cige.data import read_sentences
from cige.folders.hub import model_folder
from cige.models.model import LatticeModel
from cige.runtime import native
from cige.runtime.export import export_onnx
from cige.runtime.flat_native import NativeFlat
from cige.runtime.native import address
from cige.runtime.native_model import NativeModel
from cige.runtime.onnx_model import OnnxModel
from cige.runtime.packed_linear import PackedLinear, aligned
from cige.runtime.precision import available
from cige.tagging.prediction import batches_by_size
from cige.tagging.windows import read_windows

BATCH_SIZES = (1, 32)
FORMS = ("native", "numpy", "onnx", "torch")


def load_all(folder: Path, work_dir: Path, forms: Sequence[str]) -> dict[str, NER]:
    """The weights of a folder in each form."""
    made: dict[str, Callable[[], Any]] = {
        "native": lambda: NativeModel.load(folder),
        "numpy": lambda: NativeModel.load(folder, kernels="off"),
        "onnx": lambda: OnnxModel.load(work_dir / "onnx"),
        "torch": lambda: LatticeModel.load(folder),
    }
    if "onnx" in forms:
        export_onnx(LatticeModel.load(folder), work_dir / "onnx")
    return {name: NER(made[name]()) for name in forms}


def speeds(ners: dict[str, NER], texts: Sequence[str], *, batch_size: int, n_rounds: int) -> dict[str, float]:
    """Characters of each form per second on the clock and per processor second; ratios to ONNX by processor seconds."""

    def way(ner: NER) -> Callable[[], None]:
        return lambda: sum(1 for _ in ner.pipe(texts, batch_size=batch_size)) and None

    n_chars = sum(map(len, texts))
    taken = in_turns({name: way(ner) for name, ner in ners.items()}, n_rounds=n_rounds)
    found = {name: n_chars / t.clock for name, t in taken.items()}
    found |= {f"{name}_processor": n_chars / t.processor for name, t in taken.items()}
    others = [name for name in taken if name != "native"]
    return found | {f"native_to_{name}": taken[name].processor / taken["native"].processor for name in others}


def stages(ner: NER, texts: Sequence[str], *, batch_size: int, n_rounds: int) -> dict[str, float]:
    """Processor microseconds per character of each stage of the compiled form."""
    model = ner.model
    assert isinstance(model, NativeModel) and isinstance(model.network, NativeFlat) and model.chain is not None
    network, chain, snapshot = model.network, model.chain, ner.lexicon.snapshot()
    lattices = [part.lattice for text in texts for part in read_windows(text, snapshot)]
    batches = [[lattices[k] for k in cut] for cut in batches_by_size(lattices, batch_size=batch_size)]
    rows = [model.rows(batch) for batch in batches]
    emissions = [network.padded_emissions(batch) for batch in rows]
    taken: dict[str, Timing] = in_turns(
        {
            "windows and match": lambda: [read_windows(text, snapshot) for text in texts],
            "look-up": lambda: [model.rows(batch) for batch in batches],
            "encoder": lambda: [network.padded_emissions(batch) for batch in rows],
            "CRF": lambda: [chain.spans(e, batch.n_chars) for e, batch in zip(emissions, rows, strict=True)],
            "match to spans": lambda: [model.find_spans(batch) for batch in batches],
            "all": lambda: list(ner.pipe(texts, batch_size=batch_size)),
        },
        n_rounds=n_rounds,
    )
    n_chars = sum(map(len, texts))
    return {name: 1e6 * t.processor / n_chars for name, t in taken.items()}


def long_texts(ner: NER, data_dir: Path, *, n_chars: int, n_rounds: int) -> list[dict[str, Any]]:
    """Processor microseconds per character of texts without a line break, and how many times those of sentences."""
    sentences = [s.text for s in read_sentences(data_dir / "ner/weibo/dev.bmes")]
    joined = "".join("".join(s.text.split()) for s in read_sentences(data_dir / "ner/weibo/train.bmes"))
    texts = {"joined": joined, "nothing but characters": "".join(filter(str.isalnum, joined))}
    ways: dict[str, Callable[[], Any]] = {"sentences": lambda: list(ner.pipe(sentences, batch_size=32))}
    sizes = {"sentences": sum(map(len, sentences))}
    for name, text in texts.items():
        ways[name], sizes[name] = (lambda part=text[:n_chars]: ner(part)), len(text[:n_chars])
    taken = in_turns(ways, n_rounds=n_rounds)
    cost = {name: 1e6 * t.processor / sizes[name] for name, t in taken.items()}
    return [
        {
            "text": name,
            "chars": sizes[name],
            "microseconds_per_char": cost[name],
            "ratio": cost[name] / cost["sentences"],
        }
        for name in ways
    ]


def products(*, n_rounds: int) -> list[dict[str, float]]:
    """Thousand million multiplications with additions per processor second."""
    library = native.load()
    rng = np.random.default_rng(0)
    square = rng.normal(size=(1024, 1024)).astype(np.float32)
    found = []
    for n_rows in (35, 96, 1024):
        x = aligned(n_rows * 160)
        x[:] = rng.normal(size=x.shape)
        weight = rng.normal(size=(480, 160)).astype(np.float32)
        ways: dict[str, Callable[[], Any]] = {
            "numpy product": lambda x=x, weight=weight: [x.reshape(-1, 160) @ weight.T for _ in range(20)],
            "large product": lambda: square @ square,
        }
        if library is not None:
            y = aligned(n_rows * 480)
            packed = {form: PackedLinear(library, weight, precision=form) for form in available(library)}
            for form, linear in packed.items():
                arrays = np.array([n_rows, 0], np.int64), np.array(linear.fields, np.int64), x, y
                ways[form] = lambda arrays=arrays: [library.one_product(*map(address, arrays)) for _ in range(20)]
        taken = in_turns(ways, n_rounds=n_rounds)
        work = {name: 20 * n_rows * 160 * 480 for name in taken} | {"large product": 1024**3}
        found.append({"rows": n_rows} | {name: work[name] / t.processor / 1e9 for name, t in taken.items()})
    return found


def bench_runtime(
    data_dir: Path, *, n_texts: int, n_rounds: int, threads: int, forms: Sequence[str] = FORMS
) -> dict[str, Any]:
    """All measurements as a JSON-ready dict; `data_dir` holds ner/weibo/dev.bmes and ner/msra/train.bmes."""
    use_threads(threads)
    texts = {
        "Weibo dev": [s.text for s in read_sentences(data_dir / "ner/weibo/dev.bmes")][:n_texts],
        "MSRA": [s.text for s in read_sentences(data_dir / "ner/msra/train.bmes")[-n_texts:]],
    }
    with tempfile.TemporaryDirectory() as folder:
        ners = load_all(model_folder(), Path(folder), forms)
        by_batch = [
            {"texts": name, "batch_size": n, **speeds(ners, some, batch_size=n, n_rounds=n_rounds)}
            for name, some in texts.items()
            for n in BATCH_SIZES
        ]
        shares = [
            {"texts": name, "batch_size": n, **stages(ners["native"], some, batch_size=n, n_rounds=n_rounds)}
            for name, some in texts.items()
            for n in BATCH_SIZES
            if native.load() is not None
        ]
    return {
        "environment": environment(threads=threads, n_rounds=n_rounds) | {"OMP": os.environ.get("OMP_NUM_THREADS")},
        "chars_per_second": by_batch,
        "microseconds_per_char": shares,
        "long_texts": long_texts(ners["native"], data_dir, n_chars=50_000, n_rounds=n_rounds),
        "products": products(n_rounds=n_rounds),
    }


def main() -> None:
    parser = options(__doc__, n_rounds=5)
    add_data_option(parser)
    parser.set_defaults(threads=1)
    parser.add_argument("--texts", type=int, default=270, help="of each source (default: %(default)s)")
    args = parser.parse_args()
    result = bench_runtime(args.data_dir, n_texts=args.texts, n_rounds=args.rounds, threads=args.threads)
    report("characters per second (`processor`: per processor second)", result["chars_per_second"])
    if result["microseconds_per_char"]:
        report("processor microseconds per character, native", result["microseconds_per_char"])
    report("long texts, native", result["long_texts"])
    report("thousand million multiplications with additions per processor second", result["products"])
    write(result, args.json)


if __name__ == "__main__":
    main()
