"""Show the size of a Lattice-BERT and what a character costs it, or what the instances of some data are like.

Examples:
  cige pretrain describe --size base
  cige pretrain describe --size lite --n-words 0                     characters alone (BERT-our)
  cige pretrain describe --model runs/tiny/model --n-chars 512
  cige pretrain describe --data data --n-chars 128                   its instances, and how many are asked for order
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from cige.commands.options import at_least, make_console
from cige.json_text import to_json

if TYPE_CHECKING:
    from cige.models.lattice_bert.network import LatticeBertConfig

SIZES = ("tiny", "lite", "base")  # of cige.models.lattice_bert.network, which needs PyTorch


def add_arguments(parser: argparse.ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--size", choices=SIZES, default="base", help="(default: base)")
    what.add_argument("--model", metavar="M", help="a pre-trained model: a folder or a hub id")
    what.add_argument("--data", metavar="FOLDER", help="what `cige pretrain data` made")
    parser.add_argument("--n-pieces", type=at_least(1), metavar="N", help="word pieces of the vocabulary (21,128)")
    parser.add_argument("--n-words", type=at_least(0), metavar="N", help="its words (81,000); 0 for characters alone")
    parser.add_argument("--n-chars", type=at_least(1), default=128, metavar="N", help="characters of a text (128)")
    parser.add_argument(
        "--tokens-per-char", type=float, metavar="R", help="lattice tokens a character (1.35; 1 for characters alone)"
    )
    parser.add_argument(
        "--max-tokens", type=at_least(5), metavar="N", help="with --data: tokens of an instance (twice --n-chars)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON in place of tables")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    from cige.errors import CigeError
    from cige.models.lattice_bert.costs import TOKENS_PER_CHAR, describe

    if args.data is not None:
        _describe_data(args)
        return
    config, has_words = _config(args)
    tokens_per_char = args.tokens_per_char or (TOKENS_PER_CHAR if has_words else 1.0)
    if tokens_per_char < 1:
        raise CigeError(f"--tokens-per-char {tokens_per_char}: each character is a token, so expected 1 or more")
    facts = describe(config, n_chars=args.n_chars, tokens_per_char=tokens_per_char)
    if args.json:
        print(to_json(facts, indent=1, ensure_ascii=True))
    else:
        _print(args.model or args.size, config, facts)


def _describe_data(args: argparse.Namespace) -> None:
    """The instances of an epoch as a recipe's phase would make them."""
    from dataclasses import asdict

    from rich.table import Table

    from cige.pretraining.census import census, long_documents
    from cige.pretraining.data import open_data
    from cige.pretraining.dataset import InstanceConfig, InstanceSet, TokenIds
    from cige.pretraining.packing import Room

    data = open_data(args.data, check_contents=False)
    room = Room(args.n_chars, args.max_tokens or 2 * args.n_chars)
    ids = TokenIds.of(data.vocabulary, use_words=True)
    found = census(InstanceSet(data.train, config=InstanceConfig(), ids=ids, room=room, seed=1))
    long, held = long_documents(data.train, room.n_text_characters)
    if args.json:
        more = {"long_documents": long, "text_in_long_documents": held}
        print(to_json(asdict(found) | {"max_characters": room.n_characters, "max_tokens": room.n_tokens} | more))
        return
    table = Table(show_header=False)
    table.add_column("")
    table.add_column("", justify="right")
    for name, value in (
        ("instances per epoch", f"{found.n_instances:,}"),
        ("characters per instance, on average", f"{found.n_characters:.1f}"),
        ("lattice tokens per instance, on average", f"{found.n_tokens:.1f}"),
        ("lattice tokens of the largest instance", f"{found.most_tokens:,}"),
        ("instances that are asked for the order of two texts", f"{found.with_label:.1%}"),
        ("instances with text of one document only", f"{found.in_one_document:.1%}"),
        ("of these, asked for the order of two texts", f"{found.with_label_of_these:.1%}"),
        (f"documents of {room.n_text_characters} characters or more", f"{long:.1%}"),
        ("text that they hold", f"{held:.1%}"),
    ):
        table.add_row(name, value)
    console = make_console()
    console.print(f"{args.data}: instances of at most {room.n_characters} characters and {room.n_tokens} tokens", table)
    console.print(f"Averages over {found.n_seen:,} random instances, with the settings of a recipe that names none.")


def _config(args: argparse.Namespace) -> tuple[LatticeBertConfig, bool]:
    """The settings that the options name, and whether its vocabulary has words."""
    from dataclasses import replace

    from cige.errors import CigeError
    from cige.models.lattice_bert.network import BASELINE, PAPER_N_PIECES, PAPER_N_WORDS, SIZES

    if args.model is not None:
        if (args.n_pieces, args.n_words) != (None, None):
            raise CigeError("--model has a vocabulary of its own; leave out --n-pieces and --n-words")
        from cige.models.lattice_bert.pretrained import PretrainedLatticeBert

        model = PretrainedLatticeBert.from_pretrained(args.model)
        return model.config, model.vocabulary.n_words > 0
    n_pieces = PAPER_N_PIECES if args.n_pieces is None else args.n_pieces
    n_words = PAPER_N_WORDS if args.n_words is None else args.n_words
    settings: dict[str, Any] = {} if n_words else BASELINE
    return replace(SIZES[args.size], n_tokens=n_pieces + n_words, **settings), n_words > 0


def _print(name: str, config: LatticeBertConfig, facts: dict[str, Any]) -> None:
    from rich.table import Table

    about = f"{config.n_layers} layers of width {config.width}, {config.n_heads} heads, {config.n_tokens:,} tokens"
    sizes = Table()
    sizes.add_column("part")
    sizes.add_column("parameters", justify="right")
    for part, n in facts["parameters"].items():
        sizes.add_row(part, f"{n:,}")
    sizes.add_section()
    sizes.add_row("in all", f"{facts['n_parameters']:,}")

    costs = Table()
    costs.add_column("for each character")
    costs.add_column("million operations", justify="right")
    for part, n in facts["flops"].items():
        costs.add_row(part, f"{n / 1e6:,.2f}")
    costs.add_section()
    costs.add_row("forward", f"{facts['forward_flops'] / 1e6:,.2f}")
    costs.add_row("a pre-training step", f"{facts['training_flops'] / 1e6:,.2f}")
    console = make_console()
    console.print(f"{name}: {about}", sizes, sep="\n")
    console.print(f"\n{facts['n_chars']} characters as {facts['n_tokens']} tokens", costs, sep="\n")
