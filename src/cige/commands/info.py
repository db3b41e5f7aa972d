"""Describe a model and this installation.

Examples:
  cige info
  cige info --model runs/weibo/model --json
"""

from __future__ import annotations

import argparse
import platform
from collections.abc import Iterator
from typing import TYPE_CHECKING

from cige.commands.options import MODEL_HELP, folder_bytes, make_console
from cige.json_text import JsonObject, to_json

if TYPE_CHECKING:
    from rich.table import Table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", "-m", metavar="M", help=MODEL_HELP)
    parser.add_argument("--json", action="store_true", help="print everything as JSON instead of tables")


def run(args: argparse.Namespace) -> None:
    facts = {"installation": _installation(), "model": _model(args.model)}
    if args.json:
        print(to_json(facts, indent=1))
        return
    console = make_console()
    for title, group in facts.items():
        console.print(facts_table(title, group))


def facts_table(title: str, facts: JsonObject) -> Table:
    """A table of names and values; each nested fact has its own row, such as "facts: machine: device"."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, show_header=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, value in _rows(facts):
        table.add_row(name, Text(value))
    return table


def _rows(facts: JsonObject, prefix: str = "") -> Iterator[tuple[str, str]]:
    for name, value in facts.items():
        if name == "recipe" and isinstance(value, dict):
            yield f"{prefix}{name}", f"{len(value):,} sections of settings; --json shows them"
        elif isinstance(value, dict):
            yield from _rows(value, f"{prefix}{name}: ")
        elif isinstance(value, list):
            yield f"{prefix}{name}", ", ".join(map(str, value)) or "none"
        elif isinstance(value, bool) or value is None:
            yield f"{prefix}{name}", "none" if value is None else "yes" if value else "no"
        else:
            form = "" if name == "seed" or isinstance(value, str) else "," if isinstance(value, int) else ",.4g"
            yield f"{prefix}{name}", f"{value:{form}}"


def _installation() -> JsonObject:
    from cige import __version__
    from cige.extras import install_command
    from cige.runtime.native import level, n_threads

    facts: JsonObject = {"cige": __version__, "python": platform.python_version(), "threads": n_threads()}
    facts["compiled kernels"] = level() or "none (slower)"
    try:
        import torch
    except ImportError:
        return facts | {"torch": f"not installed; training and GPUs need it: {install_command('train')}"}
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else "none"
    return facts | {"torch": torch.__version__, "gpu": gpu}


def _model(name: str | None) -> JsonObject:
    from cige.api import NER, load
    from cige.folders.hub import model_folder

    folder = model_folder(name)
    finder = load(folder)
    facts = {"model": str(folder), "megabytes": round(folder_bytes(folder) / 1e6, 1), "labels": finder.labels}
    if not isinstance(finder, NER):
        return facts | {"facts": getattr(finder, "facts", {})}
    model = finder.model
    components = model.vocabulary.components
    with_components = {} if components is None else {"characters with components": len(components.codes)}
    grid = getattr(model, "pair_grid", None)  # of a model of nested entities, which has no tags
    return facts | {
        "precision": model.precision or "float32",
        **({"scheme": model.scheme} if grid is None else {"head": f"pair_grid, which scores {grid.scores}"}),
        "lexicon words": len(model.lexicon),
        "user words": len(model.lexicon.user_words),
        "vocabulary": dict(zip(("characters", "bigrams", "words"), model.vocabulary.n_rows, strict=True))
        | with_components,
        "facts": model.facts,
    }
