"""Build, look up, describe and check lexicons; publish versions of your own words.

Examples:
  cige lexicon build words.txt.xz my-lexicon
  cige lexicon build tencent.txt.gz my-lexicon --vectors
  cige lexicon match "南京市长江大桥" --lexicon my-lexicon
  cige lexicon info my-lexicon
  cige lexicon check my-lexicon
  cige lexicon publish names.txt my-words --name 2026-11-08.txt
  cige lexicon use my-words 2026-11-01.txt
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from cige.commands.options import at_least, tell_incomplete
from cige.commands.parser import add_verb
from cige.commands.texts import add_source_argument, texts_of
from cige.errors import LexiconError
from cige.json_text import to_json
from cige.text.counted import counted
from cige.text.normalize import normalize
from cige.text.visible import visible

if TYPE_CHECKING:
    from cige.lexicon.lexicon import Lexicon


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(metavar="build|match|info|check|publish|use", required=True)

    build = add_verb(verbs, "build", run_build, "convert a word list to a folder that loads instantly")
    build.add_argument(
        "file", metavar="FILE", help="one word per line, word<TAB>count, or word2vec text; plain, .gz or .xz"
    )
    build.add_argument("output", metavar="FOLDER", help="folder to write")
    build.add_argument("--format", default="auto", help="auto, list, counts, pairs or word2vec (default: auto)")
    build.add_argument(
        "--min-count",
        type=at_least(1),
        default=1,
        metavar="N",
        help="leave out words with a smaller count (default: 1)",
    )
    build.add_argument("--vectors", action="store_true", help="also store the vectors of a word2vec file, as float16")

    match = add_verb(verbs, "match", run_match, "list all words in a text, including overlapping ones")
    add_source_argument(match, "texts to search, one per line")
    match.add_argument("--lexicon", metavar="LEXICON", help="lexicon folder or word list (the bundled model's)")
    match.add_argument("--lexicon-add", action="append", default=[], metavar="FILE", help="additional words")
    match.add_argument("--format", choices=("table", "jsonl"), default="table", help="output format (default: table)")

    info = add_verb(verbs, "info", run_info, "print the number of words, the fingerprint and the user's changes")
    info.add_argument("lexicon", metavar="LEXICON", nargs="?", help="lexicon folder or word list")

    check = add_verb(verbs, "check", run_check, "compare all files of a lexicon folder with their checksums")
    check.add_argument("folder", metavar="FOLDER", help="folder that `build` wrote")

    publish = add_verb(
        verbs, "publish", run_publish, "add a version of a word file for --lexicon-add and make it the current one"
    )
    publish.add_argument("file", metavar="FILE", help="word file, in any format of --lexicon-add")
    publish.add_argument("folder", metavar="FOLDER", help="folder of versions, which --lexicon-add accepts")
    publish.add_argument("--name", metavar="NAME", help="name of the version (default: that of FILE)")

    use = add_verb(verbs, "use", run_use, "make another version the current one, such as the previous one")
    use.add_argument("folder", metavar="FOLDER", help="folder that `publish` wrote")
    use.add_argument("name", metavar="NAME", help="name of the version")


def open_lexicon(path: str | None) -> Lexicon:
    """A lexicon folder, a word list, the lexicon in a model folder, or (None) that of the bundled model."""
    from cige.folders.hub import model_folder
    from cige.lexicon.lexicon import Lexicon

    folder = model_folder(path) if path is None or Path(path).is_dir() else Path(path)
    if (folder / "lexicon").is_dir():
        folder = folder / "lexicon"
    return Lexicon.load(folder) if folder.is_dir() else Lexicon.from_file(folder)


def run_build(args: argparse.Namespace) -> None:
    if args.vectors:
        build_with_vectors(args)
        return
    from cige.lexicon.lexicon import Lexicon

    lexicon = Lexicon.from_file(args.file, format=args.format, min_count=args.min_count)
    print(lexicon.report)
    lexicon.save(args.output)
    print(f"wrote {args.output}: {counted(len(lexicon), 'word')}")


def build_with_vectors(args: argparse.Namespace) -> None:
    from cige.commands.read_bar import read_bar
    from cige.lexicon.convert_vectors import build_with_vectors

    if args.format not in ("auto", "word2vec") or args.min_count > 1:
        raise LexiconError("--vectors reads word2vec files, which have no counts: leave out --format and --min-count")
    begin = time.perf_counter()
    with read_bar() as on_progress:
        report = build_with_vectors(args.file, args.output, on_progress=on_progress)
    seconds = time.perf_counter() - begin
    megabytes = os.path.getsize(args.file) / 1e6
    print(report)
    print(
        f"wrote {args.output}: {counted(report.n_taken, 'word')} and their vectors, from "
        f"{megabytes:,.0f} MB in {seconds:.0f} s ({megabytes / seconds:.0f} MB/s)"
    )


def run_match(args: argparse.Namespace) -> None:
    from cige.lexicon.word_versions import word_file

    lexicon = open_lexicon(args.lexicon)
    for path in map(word_file, args.lexicon_add):
        tell_incomplete(lexicon.add_file(path))
    snapshot = lexicon.snapshot()
    for text in texts_of(args.source):
        matches = snapshot.match(normalize(text)).tolist()
        words = [
            {"start": start, "end": end, "text": snapshot.word(word), "is_user": word >= snapshot.n_base}
            for start, end, word in matches
        ]
        if args.format == "jsonl":
            print(to_json({"text": text, "words": words}))
        else:
            for word in words:
                print(f"{word['start']}-{word['end']}\t{visible(word['text'])}{'*' if word['is_user'] else ''}")


def run_info(args: argparse.Namespace) -> None:
    lexicon = open_lexicon(args.lexicon)
    print(f"words        {len(lexicon):,}")
    print(f"fingerprint  {lexicon.fingerprint}")
    for name, words in (("user words", lexicon.user_words), ("removed", lexicon.removed_words)):
        shown = "".join(f" {visible(word)}" for word in words[:20])
        print(f"{name:<12} {len(words):,}{':' if words else ''}{shown}{' ...' if len(words) > 20 else ''}")


def run_check(args: argparse.Namespace) -> None:
    from cige.lexicon.lexicon import Lexicon
    from cige.lexicon.storage import check_lexicon

    check_lexicon(args.folder)
    print(f"{args.folder}: all files are intact, {counted(len(Lexicon.load(args.folder)), 'word')}")


def run_publish(args: argparse.Namespace) -> None:
    from cige.lexicon.word_versions import WordVersions

    name = args.name or Path(args.file).name
    tell_incomplete(WordVersions(args.folder).publish(args.file, name))
    print(f"{args.folder}: {name} is current")


def run_use(args: argparse.Namespace) -> None:
    from cige.lexicon.word_versions import WordVersions

    WordVersions(args.folder).use(args.name)
    print(f"{args.folder}: {args.name} is current")
