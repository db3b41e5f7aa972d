"""Show the built-in recipes of cige, and copy one to change it.

Examples:
  cige recipes list                         # every recipe in one table
  cige recipes list 'weibo/*' 'finetune/*'
  cige recipes show weibo/flat              # every setting, and the file that each comes from
  cige recipes show mine.yaml --set training.n_epochs=2
  cige recipes copy weibo/flat mine.yaml    # a file of your own with every setting

A recipe of tagging is a data set and a system, such as weibo/flat; `cige train`, `search` and `compare` take its name.
Recipes of pre-training are pretrain/NAME (`cige lattice-bert pretrain run`), and those of fine-tuning finetune/TASK
(`cige lattice-bert finetune`). A file of your own may state only what differs: `extends: weibo/flat`.
"""

from __future__ import annotations

import argparse
import shlex
import textwrap
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from cige.commands.options import add_set_option
from cige.commands.parser import add_verb
from cige.errors import RecipeError
from cige.recipes.settings import Settings

if TYPE_CHECKING:
    from cige.recipes.shipped import Shipped


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(metavar="list|show|copy", required=True)
    listing = add_verb(verbs, "list", run_list, "list all recipes in one table")
    listing.add_argument("patterns", nargs="*", metavar="PATTERN", help="only these, such as 'weibo/*'")
    showing = add_verb(verbs, "show", run_show, "show all settings of a recipe, and where their values come from")
    showing.add_argument("recipe", metavar="NAME", help="name, or a YAML file of your own")
    add_set_option(showing, help="change settings")
    copying = add_verb(verbs, "copy", run_copy, "write a recipe to a file of your own")
    copying.add_argument("recipe", metavar="NAME", help="name of the recipe")
    copying.add_argument("path", metavar="PATH", help="file to write, such as mine.yaml")


def run_list(args: argparse.Namespace) -> None:
    from fnmatch import fnmatchcase

    from rich.padding import Padding
    from rich.table import Table

    from cige.commands.options import make_console
    from cige.recipes.shipped import TAGGING, no_such_recipe, shipped

    for pattern in args.patterns:
        if not any(fnmatchcase(name, pattern) for name in shipped()):
            raise RecipeError(no_such_recipe(pattern))
    recipes = [x for x in shipped().values() if not args.patterns or any(fnmatchcase(x.name, p) for p in args.patterns)]
    console = make_console()
    for number, kind in enumerate(dict.fromkeys(one.kind for one in recipes)):
        heads = ("name", "data", "system") if kind == TAGGING else ("name",)
        table = Table(*heads, "description", box=None, pad_edge=False, title=f"{'' if number == 0 else chr(10)}{kind}")
        table.title_justify = "left"
        table.columns[0].no_wrap = True
        if is_narrow := console.width < 80:  # the description below the name, which has the data and the system
            console.print(table.title, style="italic")
        for one in recipes:
            if one.kind == kind and is_narrow:
                console.print(one.name, soft_wrap=True)
                console.print(Padding(one.about, (0, 0, 0, 2)))
            elif one.kind == kind:
                table.add_row(one.name, *((one.data, one.system) if kind == TAGGING else ()), one.about)
        if not is_narrow:
            console.print(table)


def run_show(args: argparse.Namespace) -> None:
    from cige.recipes.recipe_file import annotated_yaml

    one = _described(args.recipe)
    settings, origins = _resolve(one.kind, args.recipe, args.set)
    command = command_of(one, None if args.recipe == one.name else args.recipe)
    print(f"# {command}\n{annotated_yaml(settings, origins)}", end="")


def run_copy(args: argparse.Namespace) -> None:
    from cige.folders.atomic import write_atomically
    from cige.recipes.recipe_file import annotated_yaml, flat
    from cige.recipes.shipped import PAIRS, files_of, no_such_recipe, opening, shipped

    path = Path(args.path)
    if args.recipe not in shipped():
        raise RecipeError(no_such_recipe(args.recipe))
    if path.exists():
        raise RecipeError(f"{path}: already exists; give another path, or remove it")
    if path.suffix not in (".yaml", ".yml"):
        raise RecipeError(f"{path}: expected a file that ends in .yaml")
    one = shipped()[args.recipe]
    settings, origins = _resolve(one.kind, args.recipe, [])
    if "name" in settings:
        settings["name"] = path.stem  # runs are stored by name, and must not be mixed with those of the shipped recipe
    comments = [command_of(one, args.path), ""]
    for file in files_of(one.name):
        what, _, *more = opening(file)
        comments += [*_wrapped([what, *more]), ""]
    exceptions = [key for key in flat(settings) if origins.get(key, "").startswith(PAIRS)]
    if exceptions:
        comments += [*_wrapped([f"Only for this pair: {', '.join(exceptions)}."]), ""]
    comments.append(f"Every setting of {one.name}; `cige recipes show {one.name}` says where each comes from.")
    opened = "".join(f"# {line}".rstrip() + "\n" for line in comments)
    write_atomically(path, opened + annotated_yaml(settings))
    print(f"{path}: {comments[0]}")


def command_of(one: Shipped, path: str | None = None) -> str:
    """The command that runs a recipe, or the file `path` instead of it."""
    from cige.extensions import recipe_kinds
    from cige.recipes.shipped import OWN_DATA, SEARCH

    recipe = shlex.quote(path or one.name)
    stem = one.name.rpartition("/")[2]
    output = shlex.quote(f"runs/{Path(path).stem}" if path else f"runs/{one.name if one.data else stem}")
    added = recipe_kinds().get(one.kind)
    if added is not None:
        return added.command(stem, recipe if path else None, output)
    if one.kind == SEARCH:
        return f"cige search weibo/flat --space {recipe} --n-trials 20 --output runs/weibo/search"
    if one.name == OWN_DATA and not path:
        return "cige train --data train.bmes --dev dev.bmes --output runs/own"
    return f"cige train {recipe} --output {output}"


def _described(recipe: str) -> Shipped:
    """The shipped recipe that `recipe` is or extends; if a file extends none, one with the kind of its settings."""
    from cige.extensions import recipe_kinds
    from cige.recipes.recipe_file import read_recipe_file, shipped_base
    from cige.recipes.shipped import SEARCH, TAGGING, Shipped, example_of, shipped

    base = shipped_base(recipe)
    if base is not None:
        return shipped()[base]
    given = set(read_recipe_file(recipe)[0])
    kinds = [TAGGING, *recipe_kinds()]
    n_known = {kind: len(given & _resolve(kind, example_of(kind), [])[0].keys()) for kind in kinds}
    kind = SEARCH if any("." in name for name in given) else max(n_known, key=n_known.__getitem__)
    return Shipped("TASK", kind, data="", system="", about="")  # a file of fine-tuning does not say of which task


def _resolve(kind: str, recipe: str, overrides: list[str]) -> tuple[Settings, dict[str, str]]:
    """Every setting of a recipe, and where each value that is not a default comes from, by key path."""
    from cige.extensions import recipe_kinds
    from cige.recipes.shipped import SEARCH

    if kind == SEARCH:
        from cige.recipes.recipe_file import read_recipe_file

        return read_recipe_file(recipe, overrides)
    added = recipe_kinds().get(kind)
    if added is None:
        from cige.training.recipe import resolve_recipe

        settings, sources = resolve_recipe(recipe, overrides)
    else:
        settings, sources = added.resolve(recipe, overrides)
    return asdict(settings), sources


def _wrapped(paragraphs: list[str]) -> list[str]:
    return [line for paragraph in paragraphs for line in textwrap.wrap(paragraph, 116)]
