"""Fill a leaderboard cell by cell, and make its pages.

  cige leaderboard run --minutes 60                  # go on with the cheapest cells that are open
  cige leaderboard run 'weibo/*' --seeds 3           # these recipes only
  cige leaderboard run --share 2/3                   # the second of three machines
  cige leaderboard merge machine-2 machine-3         # copy their results into leaderboard/
  cige leaderboard show --page docs/leaderboard.md --html leaderboard.html
  cige leaderboard check weibo/flat-1                # train a cell again: are the numbers the same?

A cell is a recipe with a seed: every system of the papers and the same network without words, on every data set, with
five seeds. Each result is one file, RESULTS/DATA/SYSTEM-SEED.json, with the scores, the gain from user words, speed,
memory and the checksums of data and weights; `show` reads nothing else. Cells run at the full length of their recipes.
Trained runs are kept in --runs; a finished run is read and an interrupted one goes on. Stop at any time: what has
finished is kept.

`check` gives the same numbers with the same instruction sets, which results record. A processor with AVX-512 uses AVX2
alone with ATEN_CPU_CAPABILITY=avx2 MKL_ENABLE_INSTRUCTIONS=AVX2 CIGE_KERNELS=avx2.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from cige.commands.options import at_least, minutes, tell
from cige.commands.parser import add_verb
from cige.errors import CigeError
from cige.text.counted import counted

if TYPE_CHECKING:
    from cige.leaderboard.cells import Cell
    from cige.leaderboard.results import CellResult


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(metavar="run|show|merge|check", required=True)

    run = add_verb(verbs, "run", run_cells, "run the open cells, the cheapest first")
    _add_cells(run)
    run.add_argument("--runs", default="runs", metavar="FOLDER", help="folder of the trained runs (default: runs)")
    run.add_argument("--device", default="auto", help="auto, cpu or cuda (default: auto)")
    run.add_argument("--share", type=_share, default=(1, 1), metavar="K/N", help="run part K of N, for N machines")
    run.add_argument("--minutes", type=minutes, metavar="M", help="begin no cell after M minutes")
    run.add_argument("--list", action="store_true", help="print the open cells in their order, and run none")

    show = add_verb(verbs, "show", run_show, "print the tables, or write the pages")
    _add_cells(show)
    show.add_argument("--language", choices=("en", "zh"), default="en", help="en or zh (default: en)")
    show.add_argument("--page", metavar="FILE", help="write a Markdown page")
    show.add_argument("--html", metavar="FILE", help="write an HTML page whose tables sort, with figures")
    show.add_argument("--link", default="", metavar="MARKDOWN", help="a line below the title of the Markdown page")

    merge = add_verb(verbs, "merge", run_merge, "copy the results of other machines into RESULTS")
    merge.add_argument("sources", nargs="+", metavar="FOLDER", help="folders of results")
    _add_results(merge)

    check = add_verb(verbs, "check", run_check, "train a cell again and compare the numbers")
    check.add_argument("cell", metavar="DATA/SYSTEM-SEED", help="a cell with a result, such as weibo/flat-1")
    _add_results(check)
    check.add_argument(
        "--data-dir",
        metavar="FOLDER",
        help="folder of data sets and vectors (default: $CIGE_DATA, otherwise the cache)",
    )
    check.add_argument("--device", default="auto", help="auto, cpu or cuda (default: auto)")


def _add_results(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--results", default="leaderboard", metavar="FOLDER", help="folder of results (default: leaderboard)"
    )


def _add_cells(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("recipes", nargs="*", metavar="RECIPE", help="names, patterns of names or YAML files")
    parser.add_argument("--seeds", type=at_least(1), default=5, metavar="N", help="seeds 1 to N (default: 5)")
    _add_results(parser)
    parser.add_argument(
        "--data-dir",
        metavar="FOLDER",
        help="folder of data sets and vectors (default: $CIGE_DATA, otherwise the cache)",
    )


def _share(text: str) -> tuple[int, int]:
    part, slash, n_parts = text.partition("/")
    if not (slash and part.isdigit() and n_parts.isdigit() and 1 <= int(part) <= int(n_parts)):
        raise argparse.ArgumentTypeError(f"{text!r}: expected K/N, such as 2/3 for the second of three machines")
    return int(part), int(n_parts)


def run_cells(args: argparse.Namespace) -> None:
    from cige.leaderboard.cells import share_of
    from cige.leaderboard.results import read_results, write_result_file
    from cige.leaderboard.run import run_cell
    from cige.nn.memory import keep_freed_memory
    from cige.recipes.spans import show_duration

    begin = time.monotonic()
    results_folder = Path(args.results)
    to_run = _open_cells(args, read_results(results_folder, on_problem=_tell_skipped))
    to_run = share_of(to_run, *args.share)
    if args.list:
        print("".join(f"{cell.name}\n" for cell in to_run), end="")
        return
    keep_freed_memory()
    for cell in to_run:
        if args.minutes is not None and time.monotonic() - begin > 60 * args.minutes:
            break
        result = run_cell(cell, Path(args.runs), data_dir=args.data_dir, device=args.device)
        write_result_file(results_folder, result)
        test = "" if result.test_f1 is None else f" test F1 {100 * result.test_f1:.2f}"
        print(f"{cell.name} dev F1 {100 * result.dev_f1:.2f}{test} ({show_duration(result.seconds)})", flush=True)


def run_show(args: argparse.Namespace) -> None:
    from cige.folders.atomic import write_atomically
    from cige.leaderboard.pages import CHINESE, ENGLISH, figures_of, html_page, markdown_page
    from cige.leaderboard.results import read_results
    from cige.leaderboard.table import board_of

    wording = CHINESE if args.language == "zh" else ENGLISH
    results = read_results(Path(args.results), on_problem=_tell_skipped)
    if not results:
        raise CigeError(f"{args.results}: no result; `cige leaderboard run` makes them")
    still_open = [cell.name for cell in _open_cells(args, results)]
    board = board_of(results)
    page = markdown_page(board, still_open, wording=wording, links=args.link)
    if not (args.page or args.html):
        print(page, end="")
    pages = {args.page: page} if args.page else {}
    if args.html:
        pages[args.html] = html_page(board, still_open, wording=wording, figures=figures_of(board))
    for path, text in pages.items():
        write_atomically(path, text)


def run_merge(args: argparse.Namespace) -> int:
    from cige.leaderboard.results import merge

    problems: list[CigeError] = []
    try:
        new = merge([Path(source) for source in args.sources], Path(args.results), on_problem=problems.append)
    finally:
        for problem in problems:
            _tell_skipped(problem)
    skipped = f"; skipped {counted(len(problems), 'file')} without a result" if problems else ""
    print(f"{counted(len(new), 'new result')} in {args.results}{skipped}")
    return 1 if problems else 0


def run_check(args: argparse.Namespace) -> int:
    from cige.leaderboard.cells import Cell
    from cige.leaderboard.results import result_at
    from cige.leaderboard.run import changed_inputs, differences, other_instructions, run_cell
    from cige.training.recipe import load_recipe

    path = Path(args.results) / f"{args.cell}.json"
    if not path.is_file():
        raise CigeError(f"{path}: no such result; give a cell as DATA/SYSTEM-SEED, such as weibo/flat-1")
    before = result_at(path, Path(args.results))
    cell = Cell(load_recipe(f"{before.data}/{before.system}"), before.seed)
    if changed := changed_inputs(cell, before, args.data_dir):
        print(f"{args.cell}: not trained again, since the result was made with other inputs: {', '.join(changed)}")
        return 1
    with tempfile.TemporaryDirectory() as runs:
        again = run_cell(cell, Path(runs), data_dir=args.data_dir, device=args.device)
    different = differences(before, again)
    shown = f"{args.cell}: F1 {100 * before.f1:.2f}, trained again {100 * again.f1:.2f}"
    print(shown + (f"; different: {', '.join(different)}" if different else "; the same"))
    if different and (reason := other_instructions(before, again)):
        print(f"{args.cell}: {reason}")
    return 1 if different else 0


def _tell_skipped(problem: CigeError) -> None:
    tell(f"skipped {problem}")


def _open_cells(args: argparse.Namespace, results: list[CellResult]) -> list[Cell]:
    """The cells without a result, the cheapest first."""
    from cige.leaderboard.cells import Cell, cheapest_first, check_name, is_done
    from cige.leaderboard.papers import board_recipes
    from cige.recipes.shipped import recipes_of
    from cige.training.recipe import load_recipe

    names = [name for given in args.recipes for name in recipes_of(given)] or board_recipes()
    recipes = [load_recipe(name) for name in names]
    cells = [Cell(recipe, seed) for recipe in recipes for seed in range(1, args.seeds + 1)]
    places: dict[str, Cell] = {}
    for cell in cells:
        check_name(cell)
        if (other := places.setdefault(cell.path, cell)).settings != cell.settings:
            raise CigeError(
                f"{cell.name}: recipes {other.recipe.name} and {cell.recipe.name} with different settings have this "
                "cell; give one of them another name, or run them with different --results"
            )
    to_run = [cell for cell in places.values() if not is_done(cell, results)]
    return cheapest_first(to_run, results, args.data_dir)
