"""Names in text of a kind that no labelled sentence was seen of: one set left out of training, and scored.

For each set a tagger is trained by the recipe `names` on all the others, from random weights, with the vectors that
come with the data sets (or those of --vectors). No sentence of the set left out has a say in training: the last epoch
counts, and no score of it chooses anything. Its training and development sentences are scored, 5,000 drawn of those
that have more, beside jieba's and LAC's answers on the same sentences, by the rules of `python -m benchmarks peers`:
PER, LOC and ORG as far as the set annotates them throughout.

With --raw the tagger then labels sentences of raw text, and one more tagger learns from them and from the labelled
sentences (the recipe `names_student`), which shows what text without labels is worth.

With --recipe today the sets that this recipe trains on are left out one by one; on the others, --model is scored, a
tagger of that recipe. The files that the recipe names must be there (recipes/today.yaml says how they are made).
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from benchmarks.accuracy.peers import SETS, PeerSet, read_set, row_of
from benchmarks.measure import earlier, line
from benchmarks.parts import programs
from cige.cli import main as cige
from cige.data.registry import DATASETS
from cige.errors import CigeError
from cige.recipes.shipped import NAMES, STUDENT, TODAY
from cige.training.recipe import load_recipe
from cige.training.train import train

TABLES = {"summary": "F1 of names in a set that training has not seen, in per cent"}
N_SCORED = 5000
DRAW_SEED = 1  # of the sentences that are scored
OF_DATA = {"vectors.bigram": "vectors/bichar.min20.npz", "vectors.word": "vectors/word.npz"}


def settings(name: str, n_epochs: int, *given: str) -> dict[str, Any]:
    """Of a run without the set `name`, with those of KEY=VALUE: a source of no weight is not read."""
    own = {f"data.sources.{name}.weight": 0, "training.n_epochs": n_epochs, "training.eval_start_epoch": n_epochs}
    return own | dict(setting.split("=", 1) for setting in given)


def bench(
    *,
    data_dir: Path,
    sets: Annotated[Sequence[str], SETS, "that are left out"] = SETS,
    recipe: Annotated[str, (NAMES, TODAY), "of the taggers"] = NAMES,
    model: Annotated[str, "for sets that the recipe does not train on"] = "bundled",
    epochs: Annotated[int, "with labelled sentences"] = 3,
    raw: Annotated[Path | None, "raw text, a sentence a line, for the second tagger"] = None,
    student_epochs: Annotated[int, "of the second tagger"] = 2,
    vectors: Annotated[Path | None, "folder of bigram.npz and word.npz to take instead"] = None,
    set: Annotated[Sequence[str], "KEY=VALUE, settings of all the runs"] = (),
    student_set: Annotated[Sequence[str], "KEY=VALUE, settings of the second tagger"] = (),
    seed: int = 1,
    threads: int = 1,
    folder: Annotated[Path, "of the runs"] = Path("runs/left_out"),
    lac_python: str | None = None,
    json: Path | None = None,
) -> Iterator[dict[str, Any]]:
    """The results after each set."""
    if student_set and not raw:
        raise CigeError("--student-set: there is no second tagger without --raw")
    if raw and recipe != NAMES:
        raise CigeError(f"--raw: the second tagger is that of the recipe {NAMES}; leave out --recipe {recipe}")
    own = OF_DATA if recipe == NAMES else {}  # the recipe today names its own
    if vectors:
        own = {"vectors.bigram": str(vectors / "bigram.npz"), "vectors.word": str(vectors / "word.npz")}
    facts: dict[str, Any] = {"epochs": epochs, "student_epochs": student_epochs if raw else 0, "vectors": own}
    facts |= {"seed": seed, "set": list(set)} | ({} if recipe == NAMES else {"recipe": recipe, "model": model})
    facts |= {"student_set": list(student_set)} if student_set else {}
    result = earlier(json) or {"settings": facts, "sets": {}}
    if result["settings"] != facts:
        raise CigeError(f"{json} has runs with other settings ({result['settings']}); give another file")
    run: dict[str, Any] = {"seed": seed, "data_dir": data_dir, "device": "cpu", "show_progress": False}
    is_source = load_recipe(recipe).data.sources.__contains__
    for name in sets:
        if name not in result["sets"]:
            models = {"labelled": model}
            if is_source(name):
                made = load_recipe(recipe, settings(name, epochs, *set) | own)
                models["labelled"] = str(train(made, folder / name / "labelled", **run).model)
            if is_source(name) and raw:
                agreed = folder / name / "agreed.jsonl"
                if not agreed.is_file():
                    cige(["pseudo-label", str(raw), str(agreed), "--model", models["labelled"]])
                more = {"start_from": models["labelled"], "data.sources.agreed.train": str(agreed)}
                made = load_recipe(STUDENT, settings(name, student_epochs, *set, *student_set) | more)
                models["student"] = str(train(made, folder / name / "student", **run).model)
            taking_part: list[programs.Program] = [programs.alone("cige", m, name=way) for way, m in models.items()]
            taking_part += [programs.alone("jieba"), *([programs.lac(lac_python)] if lac_python else [])]
            data = scored_sentences(name, data_dir)
            result["sets"][name] = [row_of(program, data) for program in taking_part]
            print(name, line({row["program"]: row["f1"] for row in result["sets"][name]}), flush=True)
        yield result | {"summary": summary(result["sets"])}


def scored_sentences(name: str, data_dir: Path) -> PeerSet:
    """Training and development sentences of a set, at most N_SCORED of them."""
    splits = [read_set(name, split, data_dir) for split in (("train", "dev") if name in DATASETS else ("train",))]
    sentences = [sentence for split in splits for sentence in split.sentences]
    order = np.sort(np.random.default_rng(DRAW_SEED).permutation(len(sentences))[:N_SCORED])
    return PeerSet(name, [sentences[k] for k in order.tolist()], splits[0].types)


def summary(results: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """A row per set: F1 of each program, and how far the best of ours is above LAC."""
    rows = []
    for name, of_set in results.items():
        f1 = {row["program"]: row["f1"] for row in of_set}
        ours = f1.get("student", f1.get("labelled"))
        above = {"above LAC": ours - f1["LAC"]} if ours is not None and "LAC" in f1 else {}
        rows.append({"set": name, "sentences": of_set[0]["sentences"], **f1, **above})
    return rows
