"""Names in text of a kind that no labelled sentence was seen of: one set left out of training, and scored.

For each set a tagger is trained by the recipe `names` on all the others, from random weights, with the vectors that
come with the data sets (or those of --vectors). No sentence of the set left out has a say in training: the last epoch
counts, and no score of it chooses anything. Its training and development sentences are scored, 5,000 drawn of those
that have more, beside jieba's and LAC's answers on the same sentences, by the rules of `cige bench peers`: PER, LOC and
ORG as far as the set annotates them throughout.

With --raw FILE the tagger then labels sentences of raw text, and one more tagger learns from them and from the labelled
sentences (the recipe `names_student`), which shows what text without labels is worth.

With --recipe today the sets that this recipe trains on are left out one by one; on the others, --model is scored, a
tagger of that recipe. The files that the recipe names must be there (recipes/today.yaml says how they are made).

Each set's result is written when it is there, and the same command goes on with the others.

  cige bench left_out --lac-python lac/bin/python --json docs/bench/left_out.json
  cige bench left_out --sets weibo --raw raw.txt --folder runs/left_out --json left_out.json
  cige bench left_out --recipe today --lac-python lac/bin/python --json left_out_today.json
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import peers
from bench_peers import SETS, PeerSet, bench, read_set
from measure import add_data_option, environment, report, use_threads, write

from cige.cli import main as cige
from cige.data.registry import DATASETS
from cige.errors import CigeError
from cige.recipes.shipped import NAMES, STUDENT, TODAY
from cige.training.recipe import load_recipe
from cige.training.train import train

N_SCORED = 5000
DRAW_SEED = 1  # of the sentences that are scored
OF_DATA = {"vectors.bigram": "vectors/bichar.min20.npz", "vectors.word": "vectors/word.npz"}


def scored_sentences(name: str, data_dir: Path) -> PeerSet:
    """Training and development sentences of a set, at most N_SCORED of them."""
    splits = [read_set(name, split, data_dir) for split in (("train", "dev") if name in DATASETS else ("train",))]
    sentences = [sentence for split in splits for sentence in split.sentences]
    order = np.sort(np.random.default_rng(DRAW_SEED).permutation(len(sentences))[:N_SCORED])
    return PeerSet(name, [sentences[k] for k in order.tolist()], splits[0].types)


def settings(name: str, args: argparse.Namespace, n_epochs: int, vectors: Mapping[str, str]) -> dict[str, Any]:
    """Of a run without the set `name`: a source of no weight is not read."""
    own = {f"data.sources.{name}.weight": 0, "training.n_epochs": n_epochs, "training.eval_start_epoch": n_epochs}
    return own | dict(vectors) | dict(setting.split("=", 1) for setting in args.set)


def student_settings(name: str, args: argparse.Namespace, teacher: Path, agreed: Path) -> dict[str, Any]:
    """Of the second tagger's run, which starts from the first one and so has its vectors."""
    own = dict(setting.split("=", 1) for setting in args.student_set)
    more = settings(name, args, args.student_epochs, {}) | own
    return more | {"start_from": str(teacher), "data.sources.agreed.train": str(agreed)}


def left_out(name: str, args: argparse.Namespace, vectors: Mapping[str, str]) -> dict[str, str | Path]:
    """The models that were trained without a set: "labelled", and "student" if there is raw text."""
    if name not in load_recipe(args.recipe).data.sources:
        return {"labelled": args.model}
    options: dict[str, Any] = {"seed": args.seed, "data_dir": args.data_dir, "device": "cpu", "show_progress": False}
    folder = args.folder / name
    recipe = load_recipe(args.recipe, settings(name, args, args.epochs, vectors))
    found: dict[str, str | Path] = {"labelled": train(recipe, folder / "labelled", **options).model}
    if args.raw:
        agreed = folder / "agreed.jsonl"
        if not agreed.is_file():
            cige(["pseudo-label", str(args.raw), str(agreed), "--model", str(found["labelled"])])
        more = student_settings(name, args, Path(found["labelled"]), agreed)
        found["student"] = train(load_recipe(STUDENT, more), folder / "student", **options).model
    return found


def summary(results: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """A row per set: F1 of each program, and how far the best of ours is above LAC."""
    rows = []
    for name, of_set in results.items():
        f1 = {row["program"]: row["f1"] for row in of_set}
        ours = f1.get("student", f1.get("labelled"))
        above = {"above LAC": ours - f1["LAC"]} if ours is not None and "LAC" in f1 else {}
        rows.append({"set": name, "sentences": of_set[0]["sentences"], **f1, **above})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_data_option(parser)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS), help="(default: all)")
    parser.add_argument("--recipe", choices=(NAMES, TODAY), default=NAMES, help="(default: %(default)s)")
    parser.add_argument(
        "--model", default="bundled", help="for sets that the recipe does not train on (default: bundled)"
    )
    parser.add_argument("--epochs", type=int, default=3, help="with labelled sentences (default: 3)")
    parser.add_argument("--raw", type=Path, metavar="FILE", help="raw text, a sentence a line, for the second tagger")
    parser.add_argument("--student-epochs", type=int, default=2, help="of the second tagger (default: 2)")
    parser.add_argument("--vectors", type=Path, metavar="FOLDER", help="bigram.npz and word.npz to take instead")
    parser.add_argument("--set", nargs="+", default=[], metavar="KEY=VALUE", help="settings of all the runs")
    parser.add_argument(
        "--student-set", nargs="+", default=[], metavar="KEY=VALUE", help="settings of the second tagger"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1, help="(default: 1)")
    parser.add_argument("--folder", type=Path, default=Path("runs/left_out"), help="of the runs (default: %(default)s)")
    parser.add_argument("--lac-python", metavar="PYTHON", help="interpreter of the environment that has LAC")
    parser.add_argument("--json", metavar="FILE", help="write to this file after each set, and go on from it")
    args = parser.parse_args()
    use_threads(args.threads)
    if args.student_set and not args.raw:
        raise CigeError("--student-set: there is no second tagger without --raw")
    if args.raw and args.recipe != NAMES:
        raise CigeError(f"--raw: the second tagger is that of the recipe {NAMES}; leave out --recipe {args.recipe}")
    own = {"vectors.bigram": "bigram.npz", "vectors.word": "word.npz"}
    of_recipe = OF_DATA if args.recipe == NAMES else {}  # the recipe today names its own
    vectors = {k: str(args.vectors / v) for k, v in own.items()} if args.vectors else of_recipe
    facts = {"epochs": args.epochs, "student_epochs": args.student_epochs if args.raw else 0, "vectors": vectors}
    facts |= (
        {"seed": args.seed, "set": args.set}
        | ({} if args.recipe == NAMES else {"recipe": args.recipe, "model": args.model})
        | ({"student_set": args.student_set} if args.student_set else {})
    )
    result: dict[str, Any] = {"settings": facts, "sets": {}}
    if args.json and Path(args.json).is_file():
        there = json.loads(Path(args.json).read_text(encoding="utf-8"))
        if there["settings"] != result["settings"]:
            raise CigeError(f"{args.json} has runs with other settings ({there['settings']}); give another file")
        result = there
    result["environment"] = environment(threads=args.threads, n_rounds=1)
    for name in args.sets:
        if name in result["sets"]:
            continue
        models = left_out(name, args, vectors)
        programs: list[peers.Program] = [peers.Cige(str(path), name=way) for way, path in models.items()]
        programs.append(peers.Jieba())
        if args.lac_python:
            programs.append(peers.Lac(args.lac_python))
        data = scored_sentences(name, args.data_dir)
        result["sets"][name] = [bench(program, data) for program in programs]
        print(f"{name}: " + ", ".join(f"{row['program']} {row['f1']:.1f}" for row in result["sets"][name]), flush=True)
        write(result, args.json)
    report("F1 of names in a set that training has not seen, in per cent", summary(result["sets"]))


if __name__ == "__main__":
    try:
        main()
    except CigeError as error:
        raise SystemExit(f"bench left_out: {error}") from None
