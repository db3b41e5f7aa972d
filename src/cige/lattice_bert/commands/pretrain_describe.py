"""Show the size of a Lattice-BERT and its cost per character, or statistics of the instances of some data.

Examples:
  cige lattice-bert pretrain describe --size base
  cige lattice-bert pretrain describe --size lite --n-words 0    # characters alone (BERT-our)
  cige lattice-bert pretrain describe --model runs/tiny/model --n-chars 512
  cige lattice-bert pretrain describe --data data                # instances: length, share with an order label, masks
  cige lattice-bert pretrain describe --data data --recipe pretrain/tiny_released --set instances.short_prob=0
"""

from __future__ import annotations

import argparse
import math
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from cige.commands.options import add_set_option, at_least, make_console
from cige.errors import CigeError
from cige.json_text import to_json
from cige.lattice_bert.encoder.network_config import BASELINE, PAPER_N_PIECES, PAPER_N_WORDS, SIZES, LatticeBertConfig
from cige.recipes.settings import Settings

if TYPE_CHECKING:
    from cige.lattice_bert.encoder.word_adapter import WordAdapter


def add_arguments(parser: argparse.ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--size", choices=tuple(SIZES), default="base", help="(default: base)")
    what.add_argument("--model", metavar="M", help="a pre-trained model: a folder or a hub id")
    what.add_argument("--data", metavar="FOLDER", help="data that `cige lattice-bert pretrain data` wrote")
    parser.add_argument(
        "--n-pieces", type=at_least(1), metavar="N", help="number of word pieces in the vocabulary (default: 21,128)"
    )
    parser.add_argument(
        "--n-words",
        type=at_least(0),
        metavar="N",
        help="number of words in the vocabulary; 0 for characters only (default: 81,000)",
    )
    parser.add_argument(
        "--n-chars", type=at_least(1), default=128, metavar="N", help="characters per text (default: 128)"
    )
    parser.add_argument(
        "--tokens-per-char",
        type=float,
        metavar="R",
        help="lattice tokens per character (default: 1.35; 1 for characters only)",
    )
    parser.add_argument("--recipe", metavar="RECIPE", help="with --data: the recipe of the instances, a name or a file")
    add_set_option(parser)
    parser.add_argument(
        "--n-instances",
        type=at_least(1),
        default=5000,
        metavar="N",
        help="with --data: number of instances to examine (default: 5,000)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    from cige.lattice_bert.encoder.costs import TOKENS_PER_CHAR, describe

    if args.data is not None:
        _describe_data(args)
        return
    if args.recipe or args.set:
        raise CigeError("--recipe and --set are about the instances of data; name the data with --data")
    config, has_words, adapter = _network(args)
    tokens_per_char = args.tokens_per_char or (TOKENS_PER_CHAR if has_words else 1.0)
    if not 1 <= tokens_per_char < math.inf:
        raise CigeError(f"--tokens-per-char {tokens_per_char}: expected 1 or more, because each character is a token")
    facts = describe(config, n_chars=args.n_chars, tokens_per_char=tokens_per_char, adapter=adapter)
    if args.json:
        print(to_json(facts, indent=1))
    else:
        _print(args.model or args.size, config, facts)


def _describe_data(args: argparse.Namespace) -> None:
    """The instances of an epoch of each phase of a recipe."""
    from cige.lattice_bert.pretraining.census import census, long_documents
    from cige.lattice_bert.pretraining.data import open_data
    from cige.lattice_bert.pretraining.dataset import InstanceSet, TokenIds
    from cige.lattice_bert.pretraining.recipe import PretrainRecipe, load_pretrain_recipe

    if args.set and not args.recipe:
        raise CigeError("--set changes the settings of a recipe; name one with --recipe")
    recipe = load_pretrain_recipe(args.recipe, args.set) if args.recipe else PretrainRecipe("defaults")
    data = open_data(args.data, check_contents=False)
    ids = TokenIds.of(data.vocabulary, use_words=recipe.instances.use_words)
    rows = []
    for phase in recipe.phases or [recipe.short, recipe.long]:
        instances = InstanceSet(data.train, config=recipe.instances, ids=ids, room=phase.room, seed=1)
        share, held = long_documents(data.train, phase.room.n_text_characters)
        limits = {"max_characters": phase.n_characters, "max_tokens": phase.max_tokens}
        documents = {"long_documents": share, "text_in_long_documents": held}
        rows.append(limits | asdict(census(instances, n_most=args.n_instances)) | documents)
    if args.json:
        print(to_json({"recipe": recipe.name, "phases": rows}, indent=1))
    else:
        _print_instances(f"{args.data}, {recipe.name}", rows)


def _print_instances(name: str, rows: list[Settings]) -> None:
    from rich.table import Table

    table = Table("instances of at most")
    for one in rows:
        table.add_column(f"{one['max_characters']} characters, {one['max_tokens']:,} tokens", justify="right")
    for text, key, form in (
        ("instances per epoch", "n_instances", ","),
        ("characters, on average", "n_characters", ".1f"),
        ("lattice tokens, on average", "n_tokens", ".1f"),
        ("lattice tokens of the largest", "most_tokens", ","),
        ("with a label for the order of two texts", "with_label", ".1%"),
        ("text of one document only", "in_one_document", ".1%"),
        ("of these, with a label for the order", "with_label_of_these", ".1%"),
        ("documents of at least this length", "long_documents", ".1%"),
        ("share of the text in these documents", "text_in_long_documents", ".1%"),
        ("tokens to predict", "masked", ".1%"),
    ):
        table.add_row(text, *(format(one[key], form) for one in rows))
    table.add_section()
    for length in dict.fromkeys(length for one in rows for length in one["masked_by_length"]):
        shares = (one["masked_by_length"].get(length) for one in rows)
        table.add_row(f"masked, of length {length}", *("" if share is None else f"{share[1]:.1%}" for share in shares))
    console = make_console()
    console.print(name, table, sep="\n")
    console.print(f"Shares and averages are over {rows[0]['n_seen']:,} random instances of an epoch, seed 1.")


def _network(args: argparse.Namespace) -> tuple[LatticeBertConfig, bool, WordAdapter | None]:
    """The settings that the options specify, whether the layers read words, and what else reads them."""
    if args.model is not None:
        if (args.n_pieces, args.n_words) != (None, None):
            raise CigeError("--model has its own vocabulary; leave out --n-pieces and --n-words")
        from cige.lattice_bert.encoder.pretrained import PretrainedLatticeBert

        model = PretrainedLatticeBert.from_pretrained(args.model)
        adapter = model.bert.adapter
        return model.config, model.vocabulary.n_words > 0 and adapter is None, adapter
    n_pieces = PAPER_N_PIECES if args.n_pieces is None else args.n_pieces
    n_words = PAPER_N_WORDS if args.n_words is None else args.n_words
    settings: Settings = {} if n_words else BASELINE
    return replace(SIZES[args.size], n_tokens=n_pieces + n_words, **settings), n_words > 0, None


def _print(name: str, config: LatticeBertConfig, facts: Settings) -> None:
    from rich.table import Column, Table

    about = f"{config.n_layers} layers of width {config.width}, {config.n_heads} heads, {config.n_tokens:,} tokens"
    sizes = Table("part", Column("parameters", justify="right"))
    for part, n in facts["parameters"].items():
        sizes.add_row(part, f"{n:,}")
    sizes.add_section()
    sizes.add_row("in total", f"{facts['n_parameters']:,}")
    costs = Table("per character", Column("million operations", justify="right"))
    for part, n in facts["flops"].items():
        costs.add_row(part, f"{n / 1e6:,.2f}")
    costs.add_section()
    costs.add_row("forward", f"{facts['forward_flops'] / 1e6:,.2f}")
    costs.add_row("a pre-training step", f"{facts['training_flops'] / 1e6:,.2f}")
    console = make_console()
    console.print(f"{name}: {about}", sizes, sep="\n")
    console.print(f"\n{facts['n_chars']} characters as {facts['n_tokens']} tokens", costs, sep="\n")
