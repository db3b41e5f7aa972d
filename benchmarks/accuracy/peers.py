"""F1 and speed of cige and of what people use in its place, on every labelled set at hand, on one thread.

Sets are read from $CIGE_DATA/ner, whose types.json says what each annotates. Scored are PER, LOC and ORG, strictly, as
far as a set annotates them throughout; companies and governments are ORG. The development split is scored where there
is one, else all of a set; test splits are read with --test only. HanLP, LTP, spaCy and GLiNER take part where they are
installed and their option names a model. Each program has a process to itself, which has read a text before; jieba and
GLiNER read text by text, the others batches of 32. On one thread of a machine that does nothing else the seconds of the
processor are those on the clock; on any other they are the fair ones.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from benchmarks.data import CORE
from benchmarks.measure import use_threads
from benchmarks.parts import programs
from cige.data.reading import read_sentences
from cige.data.registry import DATASETS, load_split
from cige.data.sentence import Sentence, Span
from cige.drawing.figures import markdown_table
from cige.entities.scores import score
from cige.errors import CigeError

TABLES = {"cases": "strict F1 in per cent"}
FLAT = True
AS_ORG = ("COMPANY", "GOVERNMENT")
SETS = ("msra", "weibo", "cluener", "resume", "uner_gsdsimp", "people1998", "cmner")
WITH_DEV = ("msra", "weibo", "cluener", "resume")
WITH_TEST = ("msra", "weibo", "resume")


@dataclass(frozen=True)
class PeerSet:
    """Sentences with spans of the `types` alone, those of CORE that the set annotates wherever they occur."""

    name: str
    sentences: list[Sentence]
    types: tuple[str, ...]


def bench(
    *,
    data_dir: Path,
    model: str | None = None,
    lac_python: str | None = None,
    hanlp: Annotated[
        str | None, "a multi-task model, such as CLOSE_TOK_POS_NER_SRL_DEP_SDP_CON_ELECTRA_SMALL_ZH, or a folder"
    ] = None,
    ltp: Annotated[str | None, "such as LTP/small, or a folder"] = None,
    spacy: Annotated[str | None, "a pipeline for Chinese, such as zh_core_web_sm, or a folder"] = None,
    gliner: Annotated[str | None, "a multilingual model, such as urchade/gliner_multi-v2.1, or a folder"] = None,
    only: Annotated[Sequence[str], SETS, "these sets"] = SETS,
    test: Annotated[bool, "score test splits, of the sets that have one here"] = False,
    markdown: Annotated[Path | None, "write tables in Markdown to this file"] = None,
) -> Iterator[dict[str, Any]]:
    """A row for each set and program."""
    use_threads(1)  # all of them inherit it
    names = [name for name in only if not test or name in WITH_TEST]
    sets = [read_set(name, "test" if test else "dev" if name in WITH_DEV else "train", data_dir) for name in names]
    taking_part = [programs.alone("cige", *filter(None, [model])), programs.alone("jieba")]
    taking_part += [programs.lac(lac_python)] if lac_python else []
    with_weights = {"HanLP": hanlp, "LTP": ltp, "spaCy": spacy, "GLiNER": gliner}
    taking_part += [programs.alone(name.lower(), given, name=name) for name, given in with_weights.items() if given]
    rows = []
    for data in sets:
        for program in taking_part:
            rows.append(row_of(program, data))
            yield rows[-1]
    if markdown:
        markdown.write_text(as_markdown(rows), encoding="utf-8")


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
    types = tuple(t for t in CORE if t in table[name]["annotated"])
    return PeerSet(f"{name} {split}", [_mapped(s, table[name]["map"], types) for s in sentences], types)


def _mapped(sentence: Sentence, names: Mapping[str, str | None], types: Sequence[str]) -> Sentence:
    spans = []
    for span in sentence.spans:
        common = names.get(span.label)
        label = "ORG" if common in AS_ORG else common
        if label in types:
            spans.append(Span(span.start, span.end, str(label)))
    return Sentence(sentence.text, tuple(spans))


def row_of(program: programs.Program, data: PeerSet) -> dict[str, Any]:
    """F1, precision and recall in per cent, F1 by type, and characters a second of processor time."""
    texts = [sentence.text for sentence in data.sentences]
    begin = program.processor_seconds()
    answers = program.read(texts)
    seconds = program.processor_seconds() - begin
    found = [[span for span in answer if span.label in data.types] for answer in answers]
    counts = score([s.spans for s in data.sentences], found)
    shares = {"f1": counts.f1, "precision": counts.precision, "recall": counts.recall}
    shares |= {t: counts.per_type[t].f1 for t in data.types if t in counts.per_type}
    row = {"set": data.name, "program": program.name, "sentences": len(texts)}
    row |= {name: round(100 * share, 2) for name, share in shares.items()}
    return row | {"chars_per_second": round(sum(map(len, texts)) / max(seconds, 1e-9))}


def as_markdown(rows: Sequence[Mapping[str, Any]]) -> str:
    """A table of F1 by set and program, and one of characters a second; the best of a set is bold."""
    names = list(dict.fromkeys(row["program"] for row in rows))
    found = {(row["set"], row["program"]): row for row in rows}
    sets = list(dict.fromkeys(row["set"] for row in rows))
    best = {name: max(row["f1"] for row in rows if row["set"] == name) for name in sets}

    def f1(row: Mapping[str, Any]) -> str:
        bold = "**" if row["f1"] == best[row["set"]] else ""
        parts = " / ".join(f"{row[t]:.1f}" if t in row else "–" for t in CORE)
        return f"{bold}{row['f1']:.1f}{bold} ({parts})"

    tables = []
    for title, shown in (
        (f"F1 ({' / '.join(CORE)})", f1),
        ("characters per second", lambda row: f"{row['chars_per_second']:,}"),
    ):
        cells = [[name, *(shown(found[name, p]) if (name, p) in found else "" for p in names)] for name in sets]
        tables.append(markdown_table([title, *names], cells))
    return "\n\n".join(tables) + "\n"
