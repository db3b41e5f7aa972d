"""Train and score several systems in the same way, and print one table.

  cige compare weibo/flat weibo/dcsan --seeds 3 --runs runs
  cige compare 'weibo/*' --runs runs --table      # read finished runs, train nothing
  cige compare 'ecommerce/flat*' my-recipe.yaml --user-words --gazetteer brands.txt

Runs are stored in RUNS/NAME-SEED. Finished runs are read, and scored again where the test sentences have changed since;
interrupted runs continue. If a folder of that name holds a run with other settings, training stops with an error, and
--table leaves it out and says what differs. The epoch is chosen on dev; the test set, if there is one, is scored once.
RUNS/comparison.md, comparison.json and comparison.svg are written at the end; with --user-words also user_words.json,
user_words.svg and user_words.png.

What p means. If all systems were equally good, so that they differed only by the randomness of their training seeds and
the choice of the sentences, a difference as large as the one shown would appear somewhere in a table of this size with
probability p at most. Seeds and sentences are both treated as samples (hierarchical paired bootstrap, Student's t), and
p is corrected for all pairs of systems in the table (Holm), because the best row was chosen on the same sentences. The
95% intervals of the differences hold for all pairs simultaneously.

What p does not mean. It is not the probability that a lead is due to chance, nor that the two systems are equal; a
large p says that these sentences and seeds cannot distinguish them. It does not account for other data sets, nor for
how long each system was tuned. With one seed per system it covers sentences alone, is marked so, and compares these
trained models rather than the systems: train at least three seeds to compare systems.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from cige.commands.options import add_set_option, at_least, tell_incomplete
from cige.errors import CigeError
from cige.json_text import to_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("recipes", nargs="+", metavar="RECIPE", help="names, patterns of names or YAML files")
    parser.add_argument("--seeds", type=at_least(1), default=3, metavar="N", help="seeds 1 to N (default: 3)")
    parser.add_argument("--runs", default="runs", metavar="FOLDER", help="folder of the runs (default: runs)")
    parser.add_argument(
        "--jobs", type=at_least(1), default=1, metavar="N", help="number of parallel processes (default: 1)"
    )
    add_set_option(parser, help="change settings of every recipe")
    parser.add_argument(
        "--data-dir",
        metavar="FOLDER",
        help="folder of data sets and vectors (default: $CIGE_DATA, otherwise the cache)",
    )
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda (default: auto)")
    parser.add_argument("--table", action="store_true", help="print the table of finished runs without training")
    parser.add_argument("--no-speed", action="store_true", help="do not measure sentences per second")
    parser.add_argument("--user-words", action="store_true", help="measure what user words gain with each system")
    parser.add_argument(
        "--gazetteer", nargs="+", action="extend", default=[], metavar="FILE", help="word lists for --user-words"
    )


def run(args: argparse.Namespace) -> None:
    from cige.recipes.shipped import recipes_of
    from cige.recipes.spans import show_duration
    from cige.training.recipe import load_recipe

    recipes = [load_recipe(recipe, args.set) for given in args.recipes for recipe in recipes_of(given)]
    from cige.folders.atomic import write_atomically
    from cige.nn.memory import keep_freed_memory
    from cige.reports.comparison import (
        any_finished,
        check_comparable,
        measure_speeds,
        rows_of,
        run_all,
        user_words_of_runs,
    )
    from cige.reports.comparison_views import (
        comparison_note,
        comparison_table,
        draw_f1_against_speed,
        draw_user_words,
        user_word_table,
    )

    keep_freed_memory()  # also speeds up the scoring of finished runs
    check_comparable(recipes)
    if args.gazetteer and not args.user_words:
        raise CigeError("--gazetteer names word lists for --user-words; give both, or neither")
    runs, seeds = Path(args.runs), list(range(1, args.seeds + 1))
    gazetteers = _gazetteers(args.gazetteer)
    if not args.table:
        every = run_all(recipes, seeds, runs, data_dir=args.data_dir, n_jobs=args.jobs, device=args.device)
        for scores in every:
            shown = " ".join(f"{s} F1 {100 * scores[s]['f1']:.2f}" for s in ("dev", "test") if s in scores)
            print(f"{scores['name']} seed {scores['seed']}: {shown} ({show_duration(scores['seconds'])})", flush=True)
    elif not any_finished(recipes, runs, seeds=seeds):
        names = ", ".join(recipe.name for recipe in recipes)
        raise CigeError(f"{runs}: no finished run of {names}; leave out --table to train them")
    if not args.no_speed:
        measure_speeds(recipes, runs, data_dir=args.data_dir)
    rows = rows_of(recipes, runs, seeds=seeds)
    written = "\n\n".join(filter(None, (comparison_table(rows), comparison_note(rows))))
    if args.user_words:
        trials = user_words_of_runs(recipes, runs, seeds=seeds, data_dir=args.data_dir, gazetteers=gazetteers)
        written += "\n\nF1 / recall of entities unseen in training, with user words:\n\n" + user_word_table(trials)
    print(written)
    files = {
        "comparison.md": written + "\n",
        "comparison.json": to_json([row.to_dict() for row in rows], indent=1, ensure_ascii=True),
    }
    if args.user_words:
        files["user_words.json"] = to_json(trials, indent=1)
    for name, text in files.items():
        write_atomically(runs / name, text)
    if not args.no_speed:
        draw_f1_against_speed(rows, runs / "comparison.svg")
    if args.user_words:
        for ending in ("svg", "png"):
            draw_user_words(trials, runs / f"user_words.{ending}")


def _gazetteers(paths: Sequence[str]) -> dict[str, Sequence[str]]:
    """The words of each list, by the name of its file, or by its path if several files have that name."""
    from cige.lexicon.words_file import read_words

    lists = {path: read_words(path, spaces=True) for path in paths}
    tell_incomplete(*(listed.report for listed in lists.values()))
    names = Counter(Path(path).name for path in lists)
    return {path if names[Path(path).name] > 1 else Path(path).name: listed.words for path, listed in lists.items()}
