"""Each runtime with the same weights, text to entities: characters per second by batch, where the time goes, products.

`native` is the runtime in C, `numpy` its form without a compiler, `onnx` the model exported for ONNX Runtime, `torch`
the PyTorch form. A pass is `NER.pipe` over the texts of Weibo's dev part, or over the last of MSRA's training part, on
which the bundled model was not trained. Long texts are 50,000 characters of Weibo's training part in one line, as they
are and without anything but letters, digits and Chinese characters, against the sentences of its development part in
batches of 32 in the same turn. Products have the shape of the feed-forward network's first step, in thousand million
multiplications with additions per second, those of the runtime by their precision; `large product` is NumPy's of
1,024 x 1,024 x 1,024.
"""

import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from benchmarks.data import posts_and_news, texts_of
from benchmarks.measure import in_turns
from benchmarks.parts.forms import load_forms
from cige.api import NER
from cige.folders.hub import model_folder
from cige.runtime import native
from cige.runtime.flat_native import NativeFlat
from cige.runtime.native import address
from cige.runtime.native_model import NativeModel
from cige.runtime.packed_linear import PackedLinear, aligned
from cige.runtime.precision import available
from cige.tagging.prediction import batches_by_size
from cige.tagging.windows import read_windows

TABLES = {
    "chars_per_second": "characters per second (`processor`: per processor second)",
    "microseconds_per_char": "processor microseconds per character, native",
    "long_texts": "long texts, native",
    "products": "thousand million multiplications with additions per processor second",
}
BATCH_SIZES = (1, 32)
FORMS = ("native", "numpy", "onnx", "torch")
N_LONG = 50_000


def bench(
    *,
    data_dir: Path,
    texts: int = 270,
    forms: Annotated[Sequence[str], FORMS, "of the weights"] = FORMS,
    rounds: int = 5,
    threads: int = 1,
) -> dict[str, Any]:
    """All measurements; `native` is always among the forms."""
    cases = [(name, some, n) for name, some in posts_and_news(data_dir, texts).items() for n in BATCH_SIZES]
    with tempfile.TemporaryDirectory() as folder:
        ners = load_forms(model_folder(), dict.fromkeys(("native", *forms)), Path(folder))
        by_batch = [
            {"texts": name, "batch_size": n} | speeds(ners, some, batch_size=n, n_rounds=rounds)
            for name, some, n in cases
        ]
    ner = ners["native"]
    shares = [
        {"texts": name, "batch_size": n} | stages(ner, some, batch_size=n, n_rounds=rounds)
        for name, some, n in cases
        if native.load() is not None
    ]
    return {
        "chars_per_second": by_batch,
        "microseconds_per_char": shares,
        "long_texts": long_texts(ner, data_dir, n_rounds=rounds),
        "products": products(n_rounds=rounds),
    }


def speeds(ners: dict[str, NER], texts: Sequence[str], *, batch_size: int, n_rounds: int) -> dict[str, float]:
    """Characters of each form per second on the clock and per processor second; ratios by processor seconds."""
    n_chars = sum(map(len, texts))
    ways = {name: lambda ner=ner: list(ner.pipe(texts, batch_size=batch_size)) for name, ner in ners.items()}
    taken = in_turns(ways, n_rounds=n_rounds)
    found = {name: n_chars / t.clock for name, t in taken.items()}
    found |= {f"{name}_processor": n_chars / t.processor for name, t in taken.items()}
    ours = taken.pop("native").processor
    return found | {f"native_to_{name}": t.processor / ours for name, t in taken.items()}


def stages(ner: NER, texts: Sequence[str], *, batch_size: int, n_rounds: int) -> dict[str, float]:
    """Processor microseconds per character of each stage of the compiled form."""
    model = ner.model
    assert isinstance(model, NativeModel) and isinstance(model.network, NativeFlat) and model.chain is not None
    network, chain, snapshot = model.network, model.chain, ner.lexicon.snapshot()
    lattices = [part.lattice for text in texts for part in read_windows(text, snapshot)]
    batches = [[lattices[k] for k in cut] for cut in batches_by_size(lattices, batch_size=batch_size)]
    rows = [model.rows(batch) for batch in batches]
    emissions = [network.padded_emissions(batch) for batch in rows]
    ways: dict[str, Callable[[], Any]] = {
        "windows and match": lambda: [read_windows(text, snapshot) for text in texts],
        "look-up": lambda: [model.rows(batch) for batch in batches],
        "encoder": lambda: [network.padded_emissions(batch) for batch in rows],
        "CRF": lambda: [chain.spans(e, batch.n_chars) for e, batch in zip(emissions, rows, strict=True)],
        "match to spans": lambda: [model.find_spans(batch) for batch in batches],
        "all": lambda: list(ner.pipe(texts, batch_size=batch_size)),
    }
    n_chars = sum(map(len, texts))
    return {name: 1e6 * t.processor / n_chars for name, t in in_turns(ways, n_rounds=n_rounds).items()}


def long_texts(ner: NER, data_dir: Path, *, n_rounds: int) -> list[dict[str, Any]]:
    """Processor microseconds per character of texts without a line break, and how many times those of sentences."""
    sentences = texts_of(data_dir, "weibo", "dev")
    joined = "".join("".join(text.split()) for text in texts_of(data_dir, "weibo", "train"))
    texts = {"joined": joined[:N_LONG], "nothing but characters": "".join(filter(str.isalnum, joined))[:N_LONG]}
    ways: dict[str, Callable[[], Any]] = {"sentences": lambda: list(ner.pipe(sentences, batch_size=32))}
    ways |= {name: partial(ner, text) for name, text in texts.items()}
    sizes = {"sentences": sum(map(len, sentences))} | {name: len(text) for name, text in texts.items()}
    cost = {name: 1e6 * t.processor / sizes[name] for name, t in in_turns(ways, n_rounds=n_rounds).items()}
    return [
        {"text": name, "chars": sizes[name], "microseconds_per_char": own, "ratio": own / cost["sentences"]}
        for name, own in cost.items()
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
                given = linear.struct, address(x), n_rows, address(y), library.constants["PLAIN"]
                ways[form] = lambda given=given: [library.one_product(*given) for _ in range(20)]
        taken = in_turns(ways, n_rounds=n_rounds)
        work = {name: 20 * n_rows * 160 * 480 for name in taken} | {"large product": 1024**3}
        found.append({"rows": n_rows} | {name: work[name] / t.processor / 1e9 for name, t in taken.items()})
    return found
