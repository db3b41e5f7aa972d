"""Show, build, extend and replace the list of names that a model reads in addition to its words.

A line of a list is a name, a tab and its kinds: 阿莫西林<TAB>MEDICINE. The model learned in training what a kind is
worth, so a list can be replaced without training: `cige predict --names FILE`, `cige.load(names=FILE)`.

Examples:
  cige names info
  cige names info names.tsv
  cige names add hospital.tsv --output names.tsv
  cige names replace names.tsv --output my-model
  cige names build collected.tsv.xz --kinds kinds.tsv --text corpus.txt.xz --output names.tsv
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from cige.commands.options import MODEL_HELP, folder_bytes, refuse_own_folder
from cige.commands.parser import add_verb
from cige.errors import LexiconError, ModelError
from cige.json_text import to_json

if TYPE_CHECKING:
    from cige.lexicon.names_list import NamesList

_SUFFIXES = (".tsv", ".txt", ".csv", ".jsonl", ".gz", ".bz2", ".xz", ".zst")  # of files, and not of models


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(metavar="info|add|replace|build", required=True)

    info = add_verb(verbs, "info", run_info, "print version, date and the number of names of each kind")
    info.add_argument(
        "names", nargs="?", metavar="LIST", help="a list of names, or a model (default: the bundled model)"
    )
    info.add_argument("--json", action="store_true", help="print JSON")

    add = add_verb(verbs, "add", run_add, "write a list that also has the names of other lists")
    add.add_argument(
        "files", nargs="+", metavar="FILE", help="lists to add: name<TAB>kind, such as 阿莫西林<TAB>MEDICINE"
    )
    add.add_argument("--to", metavar="LIST", help="a list of names, or a model (default: the bundled model)")
    _add_output(add)

    replace_list = add_verb(verbs, "replace", run_replace, "write a copy of a model that reads another list")
    replace_list.add_argument("names", metavar="LIST", help="the list that the copy reads")
    replace_list.add_argument("--model", "-m", metavar="M", help=MODEL_HELP)
    replace_list.add_argument("--output", required=True, metavar="FOLDER", help="model folder to write")

    build = add_verb(verbs, "build", run_build, "build a list from collected ones, keeping what a text supports")
    build.add_argument("files", nargs="+", metavar="FILE", help="collected names: name<TAB>type<TAB>source")
    build.add_argument(
        "--kinds",
        required=True,
        metavar="FILE",
        help="table of kinds, one per line, separated by tabs: type, source, kind, minimum count, and whether common "
        "words are kept (keep or drop)",
    )
    build.add_argument("--text", required=True, metavar="FILE", help="raw text in which names are counted")
    _add_output(build)


def _add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--output", required=True, metavar="FILE", help="list to write")
    parser.add_argument("--version", default="", metavar="TEXT", help="version of the list, stated in the file")
    parser.add_argument("--date", default="", metavar="DATE", help="date of the list, stated in the file")


def run_info(args: argparse.Namespace) -> None:
    names = _names_of(args.names)
    counts = names.counts()
    if args.json:
        print(to_json({"version": names.version, "date": names.date, "n_names": len(names), "kinds": counts}))
        return
    about = ", ".join(f"{what} {value}" for what, value in (("version", names.version), ("of", names.date)) if value)
    print(f"{len(names):,} names{f' ({about})' if about else ''}")
    for kind, count in counts.items():
        print(f"{count:>9,}  {kind}")
    if names.report is not None and names.report.n_refused:
        print(names.report)


def run_add(args: argparse.Namespace) -> None:
    from cige.lexicon.names_list import NamesList, merged

    first = _names_of(args.to)
    lists = [_of_known_kinds(NamesList.read(path), first.all_kinds) for path in args.files]
    names = merged([first, *lists], version=args.version or first.version, date=args.date or first.date)
    names.write(args.output)
    print(f"{args.output}: {len(names):,} names, {len(names) - len(first):,} of them new")
    for listed in lists:
        if listed.report is not None and listed.report.n_refused:
            print(listed.report)


def _of_known_kinds(names: NamesList, known: Sequence[str]) -> NamesList:
    """The list with the kinds of another one, so that MEDICINE counts as its MEDICINE/curated."""
    from cige.data.names_of_model import known_kinds

    kind_of = known_kinds(names, known)
    return replace(names, kinds={name: tuple(kind_of[kind] for kind in kinds) for name, kinds in names.kinds.items()})


def run_replace(args: argparse.Namespace) -> None:
    """Copy a model whose words are those of another list, with its weights as they are."""
    from cige.data.model_words import LEXICON, VOCABULARY, load_words, save_words
    from cige.data.names_of_model import UnknownKind
    from cige.folders.hub import model_folder
    from cige.folders.kinds import TAGGER
    from cige.folders.manifest import MANIFEST, entry_of, read_manifest, saving
    from cige.lexicon.names_list import NamesList

    names = NamesList.read(args.names)
    folder = model_folder(args.model)
    refuse_own_folder(args.output, folder, or_in_it=True)
    facts = read_manifest(folder, kind=TAGGER, version=1, error=ModelError, check_contents=True)
    try:
        vocabulary, lexicon = load_words(folder, facts, names)
    except UnknownKind:
        raise
    except LexiconError as reason:
        raise LexiconError(f"{folder}: {reason}") from None
    with saving(Path(args.output), TAGGER) as aside:
        shutil.copytree(folder, aside, dirs_exist_ok=True, ignore=shutil.ignore_patterns(MANIFEST, VOCABULARY, LEXICON))
        facts |= save_words(aside, vocabulary, lexicon)
        facts["facts"] = facts.get("facts", {}) | {"names": names.about}
        facts["files"] = {name: entry_of(aside / name) for name in facts["files"]}  # not a card beside them
        (aside / MANIFEST).write_text(to_json(facts, indent=1, sort_keys=True), encoding="utf-8")
    print(f"{args.output}: {len(names):,} names, {folder_bytes(args.output) / 1e6:.1f} MB")
    if names.report is not None and names.report.n_refused:
        print(names.report)


def run_build(args: argparse.Namespace) -> None:
    from cige.lexicon.names_build import build_names, common_words, count_in, read_kinds, read_rows

    rules = read_kinds(args.kinds)
    rows = [row for path in args.files for row in read_rows(path)]
    in_text = count_in(args.text, {word for word, _, _ in rows})
    names, report = build_names(
        rows, rules, counts=in_text, is_common=common_words(), version=args.version, date=args.date
    )
    names.write(args.output)
    left_out = f"{report.n_without_rule:,} rows without a rule, {report.n_refused:,} that are no words"
    print(f"{args.output}: {len(names):,} names; left out: {left_out}")
    for kind in sorted({rule.kind for rule in rules.values()}):
        n_kept, rare, common = (counts.get(kind, 0) for counts in (report.n_kept, report.n_rare, report.n_common))
        print(f"{n_kept:>9,}  {kind} ({rare:,} too rare, {common:,} common words)")


def _names_of(source: str | None) -> NamesList:
    """The list in a file, or that of a model."""
    from cige.data.model_words import load_words
    from cige.data.names_of_model import names_of
    from cige.folders.hub import SHIPPED, model_folder
    from cige.folders.kinds import TAGGER
    from cige.folders.manifest import read_manifest
    from cige.lexicon.names_list import NamesList

    if source is not None and Path(source).is_file():
        return NamesList.read(source)
    if source is not None and not Path(source).exists() and Path(source).suffix in _SUFFIXES:
        raise LexiconError(
            f"{source}: no such file; expected a list of names (name<TAB>kind, as `cige names build` writes it), or a "
            f"model: a folder, a hub id such as owner/name, or one of {', '.join(SHIPPED)}"
        )
    folder = model_folder(source)
    facts = read_manifest(folder, kind=TAGGER, version=1, error=ModelError)
    about = facts.get("facts", {}).get("names", {})
    try:
        names = names_of(*load_words(folder, facts))
    except LexiconError as reason:
        raise LexiconError(f"{folder}: {reason}") from None
    return replace(names, version=about.get("version", ""), date=about.get("date", ""))
