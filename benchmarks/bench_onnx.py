"""Prediction end to end on PyTorch, on ONNX Runtime and there in 8 bits: speed by batch and length, stages, F1.

    python benchmarks/bench_onnx.py --data-dir DATA --json onnx.json
    python benchmarks/bench_onnx.py --data-dir DATA --device cuda --no-literal --no-f1     where there is a GPU: PyTorch
                                                                                           on it too, as `gpu`

A pass is all of what `cige predict --format jsonl` does once it has started: the sentences of Weibo's test part are
read from a file, matched, made lattices of, tagged, and written as JSON lines. `literal` is the same pipeline around a
literal transcription of the paper's equations (`literal_flat.py`), run once on every eighth text, since it is slow.
"""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from literal_flat import literal_encode
from measure import add_data_option, add_device_option, environment, in_turns, options, report, use_threads, write

from cige.api import NER
from cige.commands.texts import texts_of
from cige.data import Sentence, read_sentences
from cige.data.padding import pad_lattices
from cige.folders.hub import model_folder
from cige.json_text import to_json
from cige.lattice.lattice import Lattice
from cige.models.model import LatticeModel
from cige.runtime.export import export_onnx
from cige.runtime.onnx_model import OnnxModel
from cige.tagging.evaluation import evaluate
from cige.tagging.prediction import batches_by_size, decode_spans
from cige.tagging.windows import read_windows

BATCH_SIZES = (1, 2, 4, 8, 16, 32)
LENGTHS = (25, 50, 100, 200, 400)
LITERAL_STEP, LONGEST_LITERAL = 8, 200  # 16 texts of 400 characters would take it 30 GB
N_CHARS = 12_800  # of all texts of one length together
N_DEV = 2000  # the end of MSRA's training part, on which the bundled model was not trained
MSRA_LABELS = {"NR": "PER", "NS": "LOC", "NT": "ORG"}


@dataclass
class LiteralModel(LatticeModel):
    """A LatticeModel that stores every number the paper's equations name."""

    @torch.inference_mode()
    def emissions(self, lattices: Sequence[Lattice]) -> np.ndarray:
        return self.tagger.output(literal_encode(self.tagger.encoder, self.batch(lattices))).numpy()


def load_all(folder: Path, work_dir: Path, *, device: str = "cpu") -> dict[str, NER]:
    """The same weights in each runtime, and on a GPU if one is named."""
    model = LatticeModel.load(folder)
    for name, int8 in (("onnx", False), ("int8", True)):
        export_onnx(model, work_dir / name, int8=int8)
    on_gpu = {} if device == "cpu" else {"gpu": NER.from_pretrained(folder, device=device)}
    return on_gpu | {
        "torch": NER(model),
        "onnx": NER(OnnxModel.load(work_dir / "onnx")),
        "int8": NER(OnnxModel.load(work_dir / "int8")),
        "literal": NER(LiteralModel(**vars(model))),
    }


def predict_file(ner: NER, source: Path, target: Path, *, batch_size: int) -> None:
    """What `cige predict SOURCE --format jsonl > TARGET` does after it has loaded the model."""
    texts = list(texts_of(str(source)))
    with open(target, "w", encoding="utf-8") as file:
        for text, found in zip(texts, ner.pipe(texts, batch_size=batch_size), strict=True):
            line = {"text": text, "entities": [entity.to_dict() for entity in found]}
            file.write(to_json(line) + "\n")


def speeds(
    ners: dict[str, NER], texts: Sequence[str], work_dir: Path, *, batch_size: int, n_rounds: int
) -> dict[str, float]:
    """Sentences of each runtime a second on the clock and a processor second, and how much faster than PyTorch."""
    source, target = work_dir / "texts.txt", work_dir / "found.jsonl"
    source.write_text("\n".join(texts), encoding="utf-8")

    def way(name: str) -> Callable[[], None]:
        return lambda: predict_file(ners[name], source, target, batch_size=batch_size)

    taken = in_turns({name: way(name) for name in ners if name != "literal"}, n_rounds=n_rounds)
    found = {name: len(texts) / t.clock for name, t in taken.items()}
    found |= {f"{name}_processor": len(texts) / t.processor for name, t in taken.items()}
    others = [name for name in taken if name != "torch"]
    found |= {f"{name}_ratio": taken["torch"].clock / taken[name].clock for name in others}
    found |= {f"{name}_processor_ratio": taken["torch"].processor / taken[name].processor for name in others}
    if "literal" in ners:
        sample = texts[::LITERAL_STEP]
        source.write_text("\n".join(sample), encoding="utf-8")
        processor, clock = time.process_time(), time.perf_counter()
        way("literal")()
        found["literal"] = len(sample) / (time.perf_counter() - clock)
        found["literal_processor"] = len(sample) / (time.process_time() - processor)
    return found


def texts_of_length(text: str, n_chars: int) -> list[str]:
    return [text[k * n_chars : (k + 1) * n_chars] for k in range(N_CHARS // n_chars)]


def stages(ner: NER, texts: Sequence[str], *, batch_size: int, n_rounds: int) -> dict[str, float]:
    """Milliseconds a sentence of each stage, the median of the rounds."""
    model = ner.model
    rounds: list[Counter[str]] = []
    for _ in range(n_rounds + 1):
        spent: Counter[str] = Counter()
        clock = time.perf_counter()

        def since(stage: str, spent: Counter[str] = spent) -> None:
            nonlocal clock
            now = time.perf_counter()
            spent[stage] += now - clock
            clock = now

        snapshot = ner.lexicon.snapshot()
        lattices = [part.lattice for text in texts for part in read_windows(text, snapshot)]
        since("match and lattice")
        for chosen in batches_by_size(lattices, batch_size=batch_size):
            batch = [lattices[k] for k in chosen]
            encoded = [model.vocabulary.encode(lattice) for lattice in batch]
            since("rows of the tables")
            arrays = pad_lattices(encoded)
            since("padding")
            del arrays
            clock = time.perf_counter()
            emissions = model.emissions(batch)
            since("network")
            decode_spans(model, emissions, batch)
            since("CRF")
        spent["network"] -= spent["rows of the tables"] + spent["padding"]  # `emissions` does both again
        rounds.append(spent)
    return {stage: median(r[stage] for r in rounds[1:]) / len(texts) * 1e3 for stage in rounds[0]}


def scores(ners: dict[str, NER], sentences: Sequence[Sentence], labels: dict[str, str]) -> dict[str, float]:
    """F1 in percent of each runtime."""
    return {
        name: 100 * evaluate(ner, sentences, labels=labels, batch_size=32).report.f1
        for name, ner in ners.items()
        if name != "literal"
    }


def bench_onnx(
    data_dir: Path,
    *,
    weibo_model: str | None = None,
    n_rounds: int = 5,
    threads: int = 2,
    literal: bool = True,
    device: str = "cpu",
    with_f1: bool = True,
) -> dict[str, Any]:
    """All measurements as a JSON-ready dict.

    Args:
        data_dir: holds ner/weibo/test.bmes, ner/weibo/dev.bmes and ner/msra/train.bmes.
        weibo_model: folder of a FLAT trained on Weibo, for its F1 in 8 bits.
        literal: measure the literal transcription too (minutes).
        device: "cuda" measures PyTorch on a GPU too.
        with_f1: score all of them too.
    """
    use_threads(threads)
    weibo = {part: read_sentences(data_dir / "ner" / "weibo" / f"{part}.bmes") for part in ("dev", "test")}
    dev = read_sentences(data_dir / "ner" / "msra" / "train.bmes")[-N_DEV:]
    test = [sentence.text for sentence in weibo["test"]]
    long_text = "".join(sentence.text for sentence in dev)
    with tempfile.TemporaryDirectory() as folder:
        work_dir = Path(folder)
        ners = load_all(model_folder(), work_dir, device=device)
        fast = {name: ner for name, ner in ners.items() if name != "literal"}
        by_batch = [
            {"batch_size": n, **speeds(ners if literal else fast, test, work_dir, batch_size=n, n_rounds=n_rounds)}
            for n in BATCH_SIZES
        ]
        by_length = [
            {
                "n_chars": n,
                **speeds(
                    ners if literal and n <= LONGEST_LITERAL else fast,
                    texts_of_length(long_text, n),
                    work_dir,
                    batch_size=16,
                    n_rounds=n_rounds,
                ),
            }
            for n in LENGTHS
        ]
        shares = [
            {"runtime": name, **stages(ner, test, batch_size=16, n_rounds=n_rounds)} for name, ner in fast.items()
        ]
        f1 = []
        if with_f1:
            f1 = [{"data": "MSRA, bundled model, 2,000 of dev", **scores(fast, dev, MSRA_LABELS)}]
    if weibo_model is not None and with_f1:
        with tempfile.TemporaryDirectory() as folder:
            own = load_all(Path(weibo_model), Path(folder), device=device)
            f1 += [{"data": f"Weibo {part}, own model", **scores(own, weibo[part], {})} for part in weibo]
    return {
        "environment": environment(threads=threads, n_rounds=n_rounds, device=device),
        "by_batch": by_batch,
        "by_length": by_length,
        "stages_ms": shares,
        "f1": f1,
    }


def main() -> None:
    parser = options(__doc__, n_rounds=5)
    add_data_option(parser)
    parser.add_argument("--weibo-model", metavar="FOLDER", help="a FLAT trained on Weibo, to score in 8 bits too")
    parser.add_argument("--no-literal", action="store_true", help="leave out the literal transcription (minutes)")
    parser.add_argument("--no-f1", action="store_true", help="leave out the scores")
    add_device_option(parser)
    args = parser.parse_args()
    result = bench_onnx(
        args.data_dir,
        weibo_model=args.weibo_model,
        n_rounds=args.rounds,
        threads=args.threads,
        literal=not args.no_literal,
        device=args.device,
        with_f1=not args.no_f1,
    )
    report("Weibo test, sentences a second by batch size (`processor`: a processor second)", result["by_batch"])
    report("news, sentences a second by length, batches of 16", result["by_length"])
    report("milliseconds a sentence, Weibo test, batches of 16", result["stages_ms"])
    if result["f1"]:
        report("F1 of entities", result["f1"])
    write(result, args.json)


if __name__ == "__main__":
    main()
