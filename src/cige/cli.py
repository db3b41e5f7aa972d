"""The command line: `cige VERB ...`. Each verb is a file of `cige.commands`, imported only when it is called."""

from __future__ import annotations

import argparse
import difflib
import os
import shlex
import sys
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from cige.commands.exit_codes import BAD_INPUT, BROKEN_PIPE, INTERRUPTED
from cige.errors import CigeError, show_warning
from cige.extensions import extensions

CORE_VERBS = {
    "predict": "find the entities of a text, a file or standard input",
    "serve": "serve a model over HTTP, with a page to try it in a browser",
    "annotate": "find the entities of whole files with several processes; an interrupted run can be resumed",
    "explain": "show the lattice, the words that each entity depends on, and what changes without a word",
    "train": "train a model on your own labelled data, or with a recipe",
    "learn-type": "learn a new type of entity from a word list and raw text",
    "evaluate": "score a model on labelled sentences",
    "pseudo-label": "label raw text with the entities that several models agree on, as training data",
    "suggest": "choose the sentences to label next, with the model's labels to correct",
    "calibrate": "calibrate a model's scores on labelled sentences",
    "user-words": "measure how much user words improve F1 on labelled sentences",
    "compare": "train and score several systems in the same way, with tests of significance",
    "leaderboard": "train and score every system on every data set, and make the pages of the results",
    "recipes": "list, show and copy the built-in recipes",
    "search": "search hyper-parameters",
    "convert": "convert labelled documents between the formats of annotation tools",
    "lexicon": "build, look up and describe word lists",
    "names": "show, build, extend and replace the list of names that a model reads",
    "vectors": "train and convert vectors",
    "data": "download, describe and convert labelled data",
    "average": "write the mean of the weights of several trained models",
    "compact": "write a smaller model folder for prediction",
    "export": "write a model for ONNX Runtime, which needs no PyTorch",
    "info": "describe a model and this installation",
    "doctor": "check this installation, including a prediction of the bundled model",
    "completion": "print the shell code that completes cige commands",
}
# verb -> what it does; those of extensions come last
VERBS = CORE_VERBS | {verb: what for added in extensions() for verb, what in added.verbs.items()}
_ALIASES = {old: new for added in extensions() for old, new in added.aliases.items()}
# former verb -> what takes its place, for one version
_MOVED = {"bench": "benchmarks are part of the source tree: there, run `python -m benchmarks {}`"}
_COMMANDS = {verb: added.commands for added in extensions() for verb in added.verbs}
INTRODUCTION = "词格: finds entities in Chinese text by reading characters and words together."
SEE = "See `cige VERB --help` for the options of a verb."


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. Errors that users can fix are one line, with exit code 2."""
    if argv is None and "_ARGCOMPLETE" in os.environ:  # a shell requests completions
        from cige.commands.completion import answer

        answer(VERBS, parser_of)
    argv = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        _never_fail_to_encode(stream)
    warnings.showwarning = show_warning
    try:
        code = _run(argv)
        sys.stdout.flush()
        return code
    except CigeError as error:
        return _refuse(str(error))
    except BrokenPipeError:  # the reader (`head`) has enough; Python must not try to flush again at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except KeyboardInterrupt:
        return INTERRUPTED
    except OSError as error:
        return _refuse(_words_of(error))
    except ModuleNotFoundError as error:
        from cige.extras import reason_of

        reason = reason_of(f"cige {argv[0]}", error)
        if reason is None:
            raise
        return _refuse(reason)


def _run(argv: list[str]) -> int:
    if argv and argv[0] in _ALIASES:
        argv = [*_ALIASES[argv[0]], *argv[1:]]
    if argv and argv[0] in _MOVED:
        raise CigeError(_MOVED[argv[0]].format(shlex.join(argv[1:]) or "NAME"))
    if not argv or argv[0] not in VERBS:
        return _run_without_verb(argv)
    args = parser_of(argv[0]).parse_args(argv[1:])
    return args.run(args) or 0


def command_of(verb: str) -> ModuleType:
    """The module of a verb in VERBS, whose docstring describes it, with `add_arguments(parser)` and `run(args)`."""
    return import_module(f"{_COMMANDS.get(verb, 'cige.commands')}.{verb.replace('-', '_')}")


def parser_of(verb: str) -> argparse.ArgumentParser:
    """The parser of a verb in VERBS; imports its module."""
    from cige.commands import chinese
    from cige.commands.parser import VerbParser

    command = command_of(verb)
    parser = VerbParser(
        prog=f"cige {verb}", description=command.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.set_defaults(run=getattr(command, "run", None))  # verbs below it have functions of their own
    command.add_arguments(parser)
    if chinese.is_wanted():
        parser.description = chinese.description_of(VERBS[verb], parser.description or "")
        chinese.translate(parser)
    return parser


def _run_without_verb(argv: list[str]) -> int:
    from cige.commands import chinese

    shown: Callable[[str], str] = chinese.chinese if chinese.is_wanted() else str
    width = max(map(len, VERBS))
    lines = [shown(INTRODUCTION), "", *(f"  {verb:<{width}}  {shown(what)}" for verb, what in VERBS.items())]
    parser = argparse.ArgumentParser(
        prog="cige",
        usage="cige VERB ...",
        description="\n".join([*lines, "", shown(SEE)]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="store_true", help="print the version")
    if chinese.is_wanted():
        chinese.translate(parser)
    if argv and not argv[0].startswith("-"):
        near = difflib.get_close_matches(argv[0], VERBS, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        return _refuse(f"unknown verb {argv[0]!r}; known are {', '.join(VERBS)}{hint}")
    if parser.parse_args(argv).version:
        from cige import __version__

        print(__version__)
    else:
        parser.print_help()
    return 0


def _never_fail_to_encode(stream: Any) -> None:
    """Print Chinese in any locale, and a lone surrogate as \\udxxx, which is also how JSON escapes it."""
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def _refuse(message: str) -> int:
    print(f"cige: {message}", file=sys.stderr)
    return BAD_INPUT


def _words_of(error: OSError) -> str:
    """The message for an error of the operating system and its path."""
    path = error.filename
    if not isinstance(path, str | os.PathLike):
        return f"{error.strerror or error}"
    if isinstance(error, NotADirectoryError | FileExistsError):
        for parent in (Path(path), *Path(path).parents):
            if parent.is_file():
                where = "" if str(parent) == str(path) else f"{path}: "
                return f"{where}{parent} is a file, and a folder is needed in its place; give another path"
    if isinstance(error, IsADirectoryError):
        return f"{path}: a folder; expected a file"
    if isinstance(error, PermissionError):
        return f"{path}: permission denied; give another path, or ask whoever owns it for access"
    return f"{path}: {error.strerror or error}"


if __name__ == "__main__":
    sys.exit(main())
