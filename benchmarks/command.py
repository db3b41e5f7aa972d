"""A command line for a function: its arguments are the options.

Keyword arguments become `--options`, others positional ones; sequences take several values, booleans none (one that is
true by default becomes `--no-option`). `Annotated[str, CHOICES, "help"]` allows only some values; what many benchmarks
share is explained by HELP.
"""

import argparse
import inspect
import os
from collections.abc import Callable, Collection, Sequence
from inspect import Parameter
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, get_args, get_origin

HELP = {
    "rounds": "turns of each way",
    "threads": "of each way",
    "device": "cpu or cuda",
    "data_dir": "holds ner/ and lexicon/ ($CIGE_DATA)",
    "model": "model folder or hub id; none for the bundled model",
    "lac_python": "interpreter that has LAC (benchmarks/parts/lac_worker.py says how that is made)",
    "seed": "gives the same again",
    "processes": "that run at once",
    "texts": "texts of each source",
    "json": "write to this file after each step, and go on from it",
}
DATA = "data_dir"


def options_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Arguments of a function and their defaults; None for those without."""
    parameters = inspect.signature(function).parameters.values()
    return {p.name: None if p.default is Parameter.empty else p.default for p in parameters}


def parser_of(function: Callable[..., Any], *, prog: str, description: str | None) -> argparse.ArgumentParser:
    """A parser whose namespace has only the arguments that were given, so that the function's defaults hold."""
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog=prog, description=description, formatter_class=form)
    for name, parameter in inspect.signature(function, eval_str=True).parameters.items():
        default = os.environ.get("CIGE_DATA") if name == DATA else parameter.default
        several, kind, metavar, told = _kind(parameter.annotation)
        shown = "" if default in (Parameter.empty, None, False, True, ()) else f" (default: {_as_given(default)})"
        options: dict[str, Any] = {"help": (told or HELP.get(name, "")) + shown, "default": argparse.SUPPRESS}
        option = f"--{name.replace('_', '-')}"
        if isinstance(default, bool):
            option = option.replace("--", "--no-") if default else option
            parser.add_argument(option, dest=name, action=f"store_{str(not default).lower()}", **options)
            continue
        options |= {"type": kind, "metavar": metavar}
        if parameter.kind is not Parameter.KEYWORD_ONLY:
            parser.add_argument(name, **options | ({"nargs": "*"} if several else {}))
            continue
        if name == DATA and default:
            options["default"] = Path(default)
        needed = parameter.default is Parameter.empty and default in (Parameter.empty, None)
        options |= {"nargs": "+", "action": "extend"} if several else {}
        parser.add_argument(option, dest=name, required=needed, **options)
    return parser


def _as_given(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, Sequence) and not isinstance(value, str) else str(value)


def _kind(annotation: Any) -> tuple[bool, Callable[[str], Any], str, str]:
    """Whether there may be several values, what makes one of a text, what it is called, and its help."""
    facts: Sequence[Any] = ()
    if get_origin(annotation) is Annotated:
        annotation, *facts = get_args(annotation)
    choices: Collection[str] = next((fact for fact in facts if not isinstance(fact, str)), ())
    if isinstance(annotation, UnionType):
        annotation = next(x for x in get_args(annotation) if x is not NoneType)
    several = get_origin(annotation) is not None
    kind = get_args(annotation)[0] if several else annotation

    def chosen(text: str) -> str:
        if text not in choices:
            raise argparse.ArgumentTypeError(f"no {text!r}; expected one of {', '.join(choices)}")
        return text

    metavar = "{" + ",".join(choices) + "}" if choices else {int: "N", float: "X", Path: "PATH"}.get(kind, "TEXT")
    return several, chosen if choices else kind, metavar, next((fact for fact in facts if isinstance(fact, str)), "")
