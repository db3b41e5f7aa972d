"""Learn a new entity type from just a word list and raw text, in addition to the types of an existing model.

  cige learn-type GADGET --words gadgets.txt --text titles.txt --output runs/gadgets
  cige learn-type GADGET=gadgets.txt MAKER=makers.txt --text titles.txt news.txt --output runs/shop

No labelled sentences are needed. The list has one word per line (or any format of `--lexicon-add`) and may be noisy:
the more of the most common words of the language it contains, the less its words are trusted. The text should be
similar to the text that the model will process, one text per line, with some thousand lines or more, in which some of
the words occur. To preserve the quality on other text, include some of it: the current predictions of the model are
part of the training data.

The model is in OUTPUT/model. --set changes settings of the recipe `learn_type` (`cige recipes show learn_type`), such
as data.hidden_odds: lower it if the model finds too many entities, and raise it (up to 1) if it finds too few.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from cige.commands.options import add_no_resume_option, add_set_option, at_least, seed, tell, tell_incomplete
from cige.commands.texts import sentences_of
from cige.errors import CigeError, DataError
from cige.folders.in_use import is_main_process
from cige.text.counted import counted

if TYPE_CHECKING:
    from cige.distant.learn_type import LearnResult
    from cige.lexicon.words_file import WordList


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "types",
        metavar="TYPE[=FILE]",
        nargs="+",
        help="name of the new type; TYPE=FILE, with its word list, if there are several",
    )
    parser.add_argument("--words", metavar="FILE", help="word list of the new type, if there is only one")
    parser.add_argument("--text", metavar="FILE", nargs="+", required=True, help="raw text, one text per line")
    parser.add_argument("--output", "-o", required=True, metavar="FOLDER", help="folder of the run")
    parser.add_argument("--model", "-m", metavar="M", help="model folder to start from (default: the bundled model)")
    parser.add_argument("--rounds", type=at_least(1), default=2, metavar="N", help="rounds of training (default: 2)")
    add_set_option(parser)
    parser.add_argument("--seed", type=seed, default=1, help="(default: 1)")
    parser.add_argument("--device", default="auto", choices=("auto", "cpu", "cuda"), help="(default: auto)")
    add_no_resume_option(parser)


def run(args: argparse.Namespace) -> None:
    from cige.lexicon.words_file import read_words
    from cige.recipes.recipe_file import override_pairs
    from cige.recipes.shipped import LEARN_TYPE
    from cige.training.recipe import load_recipe

    files = list_files(args.types, args.words)
    overrides = dict(override_pairs(args.set))
    if args.model is not None:
        overrides["start_from"] = args.model
    recipe = load_recipe(LEARN_TYPE, overrides)  # before torch is imported, so that errors are reported at once
    lists = {name: _names_in(read_words(path, spaces=True), name) for name, path in files.items()}
    from cige.distant.learn_type import learn_types

    result = learn_types(
        lists,
        _lines(args.text),
        recipe,
        args.output,
        n_rounds=args.rounds,
        seed=args.seed,
        device=args.device,
        resume=not args.no_resume,
    )
    if is_main_process():
        _report(result)


def list_files(types: list[str], words: str | None) -> dict[str, str]:
    """The word list of each type; raises a CigeError if a type has none, or several."""
    files: dict[str, str] = {}
    for given in types:
        name, _, path = given.partition("=")
        if name in files:
            raise CigeError(f"the type {name} is given twice; put its words into one file")
        files[name] = path
    missing = [name for name, path in files.items() if not path]
    if words is not None and len(missing) == 1 and len(files) == 1:
        return {missing[0]: words}
    if words is not None:
        raise CigeError("--words is for a single type; for several types, give TYPE=FILE for each")
    if missing:
        raise CigeError(f"{missing[0]} has no words: give --words FILE, or {missing[0]}=FILE")
    return files


def _names_in(listed: WordList, type_: str) -> list[str]:
    """The words of a list without the blocked ones, which name nothing; says on stderr what is not used of the file."""
    from cige.lexicon.user_word import BLOCKING

    tell_incomplete(listed.report)
    source = listed.report.source
    names = [(text, label) for text, label, mode in listed.triples() if mode not in BLOCKING]
    if n_blocked := len(listed.words) - len(names):
        tell(f"{source}: {counted(n_blocked, 'blocked word')} left out")
    others = sorted({label for _, label in names if label not in (None, type_)})
    if others:
        tell(
            f"{source}: labels in the file are ignored ({', '.join(others[:3])}{' ...' if others[3:] else ''}); "
            f"every word is learnt as {type_}, so leave out those that are not",
        )
    return [text for text, _ in names]


def _lines(paths: list[str]) -> Iterator[str]:
    for path in paths:
        if path != "-" and not os.path.exists(path):
            raise DataError(f"{path}: no such file; expected files of raw text, one text per line")
        n_lines = 0
        for line in sentences_of(path):
            n_lines += 1
            yield line
        if not n_lines:
            raise DataError(f"{path}: the file is empty; expected raw text, one text per line")


def _report(result: LearnResult) -> None:
    from cige.recipes.spans import show_duration

    for learnt in result.types:
        print(
            f"{learnt.name}: {learnt.n_in_text:,} of {counted(learnt.n_words, 'word')} are in the text, "
            f"{counted(learnt.n_uses, 'time')}; {learnt.trust:.0%} of these are trusted; learnt from "
            f"{counted(learnt.n_labelled, 'entity', 'entities')}"
        )
    print(f"{show_duration(result.seconds)} of training; model in {result.model}")
