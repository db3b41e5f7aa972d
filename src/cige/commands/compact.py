"""Write a smaller model folder for prediction: fewer words and bigrams, embeddings in 8 or 16 bits, no training state.

Examples:
  cige compact runs/msra/flat small --n-words 132000 --n-bigrams 125000 --labels NR=PER,NS=LOC,NT=ORG
"""

from __future__ import annotations

import argparse

from cige.commands.options import at_least, flat_tagger_folder, folder_bytes, refuse_own_folder


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="model folder")
    parser.add_argument("output", help="folder to write")
    parser.add_argument(
        "--n-words",
        type=at_least(0),
        default=132_000,
        help="number of words to keep, the most frequent ones (default: %(default)s)",
    )
    parser.add_argument(
        "--n-bigrams", type=at_least(0), default=125_000, help="number of bigrams to keep (default: %(default)s)"
    )
    parser.add_argument(
        "--dtype", choices=["int8", "float16"], default="int8", help="number type of the embedding tables"
    )
    parser.add_argument("--labels", default="", metavar="NR=PER,...", help="labels to rename, as OLD=NEW")
    parser.add_argument("--names", metavar="FILE", help="list of names instead of the model's own (see `cige names`)")


def run(args: argparse.Namespace) -> None:
    from cige.entities.labels import parse_label_map
    from cige.lexicon.names_list import NamesList

    names = parse_label_map(args.labels)
    listed = None if args.names is None else NamesList.read(args.names)
    folder = flat_tagger_folder(args.model)
    refuse_own_folder(args.output, folder)
    from cige.models.model import LatticeModel
    from cige.models.trim import rename_labels, trim

    model = LatticeModel.load(folder, listed)
    small = rename_labels(trim(model, n_words=args.n_words, n_bigrams=args.n_bigrams), names)
    small.save(args.output, table_dtype=args.dtype)
    sizes = f"{len(small.lexicon):,} words, {len(small.vocabulary.bigrams):,} bigrams"
    print(f"{args.output}: {sizes}, {folder_bytes(args.output) / 1e6:.1f} MB")
