"""Prediction end to end on PyTorch, on ONNX Runtime and there in 8 bits: speed by batch and length, stages, F1.

A pass is all of what `cige predict --format jsonl` does once it has started: the sentences of Weibo's test part are
read from a file, matched, made lattices of, tagged, and written as JSON lines. `literal` is the same pipeline around a
literal transcription of the equations (parts/literal_flat.py), run once on every eighth text, since it is slow.
Where there is a GPU: --device cuda --no-literal --no-f1 measures PyTorch on it too, as `gpu`.
"""

import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from benchmarks.measure import in_turns, seconds_of
from benchmarks.parts.forms import load_forms
from cige.api import NER
from cige.commands.texts import texts_of
from cige.data import Sentence, read_sentences
from cige.data.padding import pad_lattices
from cige.folders.hub import model_folder
from cige.json_text import to_json
from cige.tagging.evaluation import evaluate
from cige.tagging.prediction import batches_by_size, decode_spans
from cige.tagging.windows import read_windows

TABLES = {
    "by_batch": "Weibo test, sentences a second by batch size (`processor`: a processor second)",
    "by_length": "news, sentences a second by length, batches of 16",
    "stages_ms": "milliseconds a sentence, Weibo test, batches of 16",
    "f1": "F1 of entities",
}
FORMS = ("torch", "onnx", "int8", "literal")
BATCH_SIZES = (1, 2, 4, 8, 16, 32)
LENGTHS = (25, 50, 100, 200, 400)
LITERAL_STEP, LONGEST_LITERAL = 8, 200  # 16 texts of 400 characters would take it 30 GB
N_CHARS = 12_800  # of all texts of one length together
N_DEV = 2000  # the end of MSRA's training part, on which the bundled model was not trained
MSRA_LABELS = {"NR": "PER", "NS": "LOC", "NT": "ORG"}


def bench(
    *,
    data_dir: Path,
    weibo_model: Annotated[str | None, "folder of a FLAT trained on Weibo, to score in 8 bits too"] = None,
    rounds: int = 5,
    threads: int = 2,
    literal: Annotated[bool, "leave out the literal transcription (minutes)"] = True,
    device: str = "cpu",
    f1: Annotated[bool, "leave out the scores"] = True,
) -> dict[str, Any]:
    """All measurements."""
    weibo = {part: read_sentences(data_dir / "ner" / "weibo" / f"{part}.bmes") for part in ("dev", "test")}
    dev = read_sentences(data_dir / "ner" / "msra" / "train.bmes")[-N_DEV:]
    test = [sentence.text for sentence in weibo["test"]]
    long_text = "".join(sentence.text for sentence in dev)
    forms = (*(("gpu",) if device != "cpu" else ()), *(FORMS if literal else FORMS[:-1]))
    scored = []
    with tempfile.TemporaryDirectory() as folder:
        work_dir = Path(folder)
        ners = load_forms(model_folder(), forms, work_dir)
        fast = {name: ner for name, ner in ners.items() if name != "literal"}
        by_batch = [
            {"batch_size": n} | speeds(ners, test, work_dir, batch_size=n, n_rounds=rounds) for n in BATCH_SIZES
        ]
        by_length = []
        for n in LENGTHS:
            texts = [long_text[k * n : (k + 1) * n] for k in range(N_CHARS // n)]
            some = ners if n <= LONGEST_LITERAL else fast
            by_length.append({"n_chars": n} | speeds(some, texts, work_dir, batch_size=16, n_rounds=rounds))
        shares = [{"runtime": x} | stages(ner, test, batch_size=16, n_rounds=rounds) for x, ner in fast.items()]
        if f1:
            scored.append({"data": "MSRA, bundled model, 2,000 of dev"} | scores(fast, dev, MSRA_LABELS))
        if f1 and weibo_model is not None:
            own = load_forms(weibo_model, fast, work_dir / "weibo")
            scored += [{"data": f"Weibo {part}, own model"} | scores(own, weibo[part], {}) for part in weibo]
    return {"by_batch": by_batch, "by_length": by_length, "stages_ms": shares, "f1": scored}


def predict_file(ner: NER, source: Path, target: Path, *, batch_size: int) -> None:
    """What `cige predict SOURCE --format jsonl > TARGET` does after it has loaded the model."""
    texts = list(texts_of(str(source)))
    with open(target, "w", encoding="utf-8") as file:
        for text, found in zip(texts, ner.pipe(texts, batch_size=batch_size), strict=True):
            file.write(to_json({"text": text, "entities": [entity.to_dict() for entity in found]}) + "\n")


def speeds(
    ners: dict[str, NER], texts: Sequence[str], work_dir: Path, *, batch_size: int, n_rounds: int
) -> dict[str, float]:
    """Sentences of each runtime a second on the clock and a processor second, and how much faster than PyTorch."""
    source, target = work_dir / "texts.txt", work_dir / "found.jsonl"
    source.write_text("\n".join(texts), encoding="utf-8")
    ways = {name: partial(predict_file, ner, source, target, batch_size=batch_size) for name, ner in ners.items()}
    literal = ways.pop("literal", None)
    taken = in_turns(ways, n_rounds=n_rounds)
    found = {name: len(texts) / t.clock for name, t in taken.items()}
    found |= {f"{name}_processor": len(texts) / t.processor for name, t in taken.items()}
    plain = taken.pop("torch")
    found |= {f"{name}_ratio": plain.clock / t.clock for name, t in taken.items()}
    found |= {f"{name}_processor_ratio": plain.processor / t.processor for name, t in taken.items()}
    if literal is not None:
        sample = texts[::LITERAL_STEP]
        source.write_text("\n".join(sample), encoding="utf-8")
        clock, processor = seconds_of(literal)
        found |= {"literal": len(sample) / clock, "literal_processor": len(sample) / processor}
    return found


def stages(ner: NER, texts: Sequence[str], *, batch_size: int, n_rounds: int) -> dict[str, float]:
    """Milliseconds a sentence of each stage, the median of the rounds."""
    model, snapshot = ner.model, ner.lexicon.snapshot()
    lattices = [part.lattice for text in texts for part in read_windows(text, snapshot)]
    batches = [[lattices[k] for k in cut] for cut in batches_by_size(lattices, batch_size=batch_size)]
    rows = [[model.vocabulary.encode(lattice) for lattice in batch] for batch in batches]
    emissions = [model.emissions(batch) for batch in batches]
    ways: dict[str, Callable[[], Any]] = {
        "match and lattice": lambda: [read_windows(text, snapshot) for text in texts],
        "rows of the tables": lambda: [model.vocabulary.encode(lattice) for batch in batches for lattice in batch],
        "padding": lambda: [pad_lattices(of_batch) for of_batch in rows],
        "network": lambda: [model.emissions(batch) for batch in batches],
        "CRF": lambda: [decode_spans(model, *pair) for pair in zip(emissions, batches, strict=True)],
    }
    spent = {name: t.clock / len(texts) * 1e3 for name, t in in_turns(ways, n_rounds=n_rounds).items()}
    spent["network"] -= spent["rows of the tables"] + spent["padding"]  # `emissions` does both again
    return spent


def scores(ners: dict[str, NER], sentences: Sequence[Sentence], labels: dict[str, str]) -> dict[str, float]:
    """F1 in percent of each runtime."""
    return {x: 100 * evaluate(ner, sentences, labels=labels, batch_size=32).report.f1 for x, ner in ners.items()}
