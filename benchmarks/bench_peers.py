"""cige and what people use in its place, on every labelled set at hand: F1 by type and speed, on one thread.

Sets are read from $CIGE_DATA/ner, whose types.json says what each annotates. Scored are PER, LOC and ORG, strictly, as
far as a set annotates them throughout; companies and governments are ORG. The development split is scored where there
is one, else all of a set; test splits are read with --test only.

  OMP_NUM_THREADS=1 cige bench peers --lac-python lac/bin/python --json peers.json --markdown peers.md
  OMP_NUM_THREADS=1 cige bench peers --only weibo --test --model runs/weibo/model

LAC runs in an environment of its own; benchmarks/lac_worker.py says how it is made. HanLP, LTP, spaCy and GLiNER take
part where they are installed and their option names a model.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import peers
from measure import add_data_option, environment, report, use_threads, write

from cige.data.reading import read_sentences
from cige.data.registry import DATASETS, load_split
from cige.data.sentence import Sentence, Span
from cige.entities.scores import score
from cige.errors import CigeError

TYPES = ("PER", "LOC", "ORG")
AS_ORG = ("COMPANY", "GOVERNMENT")
SETS = ("msra", "weibo", "cluener", "resume", "uner_gsdsimp", "people1998", "cmner")
WITH_DEV = ("msra", "weibo", "cluener", "resume")
WITH_TEST = ("msra", "weibo", "resume")


@dataclass(frozen=True)
class PeerSet:
    """Sentences with spans of the `types` alone, those of TYPES that the set annotates wherever they occur."""

    name: str
    sentences: list[Sentence]
    types: tuple[str, ...]


def read_set(name: str, split: str, data_dir: Path) -> PeerSet:
    """One split of a set, its labels mapped by types.json.

    Raises:
        CigeError: types.json does not have it, or there is no such file.
    """
    table = json.loads((data_dir / "ner" / "types.json").read_text(encoding="utf-8"))
    if name not in table:
        raise CigeError(f"{data_dir}/ner/types.json: nothing on {name}; it has {', '.join(table)}")
    if name in DATASETS:
        sentences = load_split(name, split, data_dir=data_dir)
    else:
        sentences = read_sentences(data_dir / "ner" / name / f"{split}.bmes.xz")
    types = tuple(t for t in TYPES if t in table[name]["annotated"])
    return PeerSet(f"{name} {split}", [_mapped(s, table[name]["map"], types) for s in sentences], types)


def _mapped(sentence: Sentence, names: Mapping[str, str | None], types: Sequence[str]) -> Sentence:
    spans = []
    for span in sentence.spans:
        common = names.get(span.label)
        label = "ORG" if common in AS_ORG else common
        if label in types:
            spans.append(Span(span.start, span.end, str(label)))
    return Sentence(sentence.text, tuple(spans))


def bench(program: peers.Program, data: PeerSet) -> dict[str, Any]:
    """F1, precision and recall in per cent, F1 by type, and characters a second of processor time.

    On one thread of a machine that does nothing else that is the time on the clock; on any other it is the fair one.
    """
    texts = [sentence.text for sentence in data.sentences]
    begin = program.processor_seconds()
    answers = program.read(texts)
    seconds = program.processor_seconds() - begin
    found = [[span for span in answer if span.label in data.types] for answer in answers]
    counts = score([s.spans for s in data.sentences], found)
    row = {"set": data.name, "program": program.name, "sentences": len(texts)}
    shares = {"f1": counts.f1, "precision": counts.precision, "recall": counts.recall}
    shares |= {t: counts.per_type[t].f1 for t in data.types if t in counts.per_type}
    row |= {name: round(100 * share, 2) for name, share in shares.items()}
    return row | {"chars_per_second": round(sum(map(len, texts)) / max(seconds, 1e-9))}


def markdown(rows: Sequence[Mapping[str, Any]]) -> str:
    """A table of F1 by set and program, and one of characters a second; the best of a set is bold."""
    programs = list(dict.fromkeys(row["program"] for row in rows))
    by_set: dict[str, dict[str, Mapping[str, Any]]] = {}
    for row in rows:
        by_set.setdefault(row["set"], {})[row["program"]] = row
    lines = ["| F1 (PER / LOC / ORG) | " + " | ".join(programs) + " |", "|---" * (1 + len(programs)) + "|"]
    for name, found in by_set.items():
        best = max(row["f1"] for row in found.values())
        cells = [_cell(found.get(program), best) for program in programs]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    lines += ["", "| characters per second | " + " | ".join(programs) + " |", "|---" * (1 + len(programs)) + "|"]
    for name, found in by_set.items():
        speeds = [f"{found[p]['chars_per_second']:,}" if p in found else "" for p in programs]
        lines.append(f"| {name} | " + " | ".join(speeds) + " |")
    return "\n".join(lines) + "\n"


def _cell(row: Mapping[str, Any] | None, best: float) -> str:
    if row is None:
        return ""
    f1 = f"{row['f1']:.1f}"
    parts = " / ".join(f"{row[t]:.1f}" if t in row else "–" for t in TYPES)
    return f"{f'**{f1}**' if row['f1'] == best else f1} ({parts})"


def programs_of(args: argparse.Namespace) -> list[Callable[[], peers.Program]]:
    """What loads each program that takes part."""
    found: list[Callable[[], peers.Program]] = [lambda: peers.Cige(args.model), peers.Jieba]
    if args.lac_python:
        found.append(lambda: peers.Lac(args.lac_python))
    for option, program in peers.WITH_WEIGHTS.items():
        if model := getattr(args, option):
            found.append(lambda program=program, model=model: program(model))  # type: ignore[misc]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_data_option(parser)
    parser.add_argument("--model", help="model folder or hub id of cige (default: the bundled model)")
    parser.add_argument("--lac-python", metavar="PYTHON", help="interpreter of the environment that has LAC")
    for option in peers.WITH_WEIGHTS:
        parser.add_argument(f"--{option}", metavar="MODEL", help=peers.WITH_WEIGHTS[option].__doc__)
    parser.add_argument("--only", action="append", metavar="SET", choices=SETS, help="only this set (several times)")
    parser.add_argument("--test", action="store_true", help="score test splits, of the sets that have one here")
    parser.add_argument("--json", metavar="FILE", help="write the result to this file")
    parser.add_argument("--markdown", metavar="FILE", help="write it as tables in Markdown")
    args = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"  # for LAC, which inherits it
    use_threads(1)
    names = [name for name in args.only or SETS if not args.test or name in WITH_TEST]
    sets = [read_set(n, "test" if args.test else "dev" if n in WITH_DEV else "train", args.data_dir) for n in names]
    rows: list[dict[str, Any]] = []
    programs = [load_program() for load_program in programs_of(args)]
    for data in sets:
        for program in programs:
            rows.append(bench(program, data))
            print(rows[-1], flush=True)
            write(environment(threads=1, n_rounds=1) | {"cases": rows}, args.json)
    shown = [{key: row.get(key) for key in ("set", "program", "f1", *TYPES, "chars_per_second")} for row in rows]
    report("strict F1 in per cent", shown)
    if args.markdown:
        Path(args.markdown).write_text(markdown(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
