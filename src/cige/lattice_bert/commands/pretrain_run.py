"""Pre-train with a recipe.

If a run is interrupted, run the same command again: it continues where it stopped. The model is in OUTPUT/model. With
start_from, pre-training of an existing model continues on other text; make the data with a vocabulary that has the
words of that text.

Examples:
  cige lattice-bert pretrain run pretrain/tiny --data data --output runs/tiny
  cige lattice-bert pretrain run pretrain/tiny_bert_our --data data --output runs/tiny_bert_our
  cige lattice-bert pretrain run pretrain/tiny --data data --output runs/trial --set short.n_steps=100 long.n_steps=0
  cige lattice-bert pretrain run pretrain/tiny --data ours --output runs/ours --set start_from=runs/tiny/model
  torchrun --nproc-per-node 8 -m cige.cli lattice-bert pretrain run pretrain/base --data data --output runs/base
"""

from __future__ import annotations

import argparse

from cige.commands.options import add_no_resume_option, add_set_option, minutes, seed
from cige.folders.in_use import is_main_process
from cige.text.counted import counted


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("recipe", metavar="RECIPE", help="name, such as pretrain/tiny, or YAML file")
    parser.add_argument(
        "--data", required=True, metavar="FOLDER", help="data that `cige lattice-bert pretrain data` wrote"
    )
    parser.add_argument("--output", "-o", required=True, metavar="FOLDER", help="folder of the run")
    add_set_option(parser)
    parser.add_argument("--seed", type=seed, default=1, help="(default: 1)")
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda (default: auto)")
    parser.add_argument(
        "--stop-after", type=minutes, metavar="MINUTES", help="write a checkpoint and stop after this time"
    )
    when_cut_off = parser.add_mutually_exclusive_group()
    when_cut_off.add_argument("--resume", action="store_true", help="continue the run in OUTPUT (the default)")
    add_no_resume_option(when_cut_off)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    from cige.lattice_bert.pretraining.recipe import load_pretrain_recipe

    recipe = load_pretrain_recipe(args.recipe, args.set)  # a wrong key is reported before data is opened
    from cige.lattice_bert.pretraining.objective import per_cent, shown_loss
    from cige.lattice_bert.pretraining.pretrain import pretrain
    from cige.recipes.spans import show_duration

    result = pretrain(
        recipe,
        args.data,
        args.output,
        seed=args.seed,
        device=args.device,
        resume=not args.no_resume,
        stop_after=None if args.stop_after is None else 60 * args.stop_after,
    )
    if not is_main_process():
        return  # only the first of several processes prints the result
    if result is None:
        print(f"{recipe.name}: time is up; the same command continues from the checkpoint in {args.output}")
        return
    if result.origins is not None:
        print(
            f"started from {recipe.start_from}: {result.origins.known:,} known tokens, {result.origins.made:,} "
            f"words initialised from their pieces, {result.origins.drawn:,} new tokens"
        )
    last = result.logs[-1].train
    print(
        f"{result.name}, seed {result.seed}: {counted(result.n_steps, 'step')}, {counted(result.n_tokens, 'token')}, "
        f"{show_duration(result.seconds)}; MLM loss {shown_loss(last.get('mlm_loss'))}, "
        f"accuracy {per_cent(last.get('mlm_accuracy'))}"
    )
    if result.evaluations:
        scores = result.evaluations[-1].scores
        print(
            f"held out: MLM {per_cent(scores.get('mlm_accuracy'))}, "
            f"sentences {per_cent(scores.get('sentence_accuracy'))}, "
            f"hidden segments {per_cent(scores.get('segment_accuracy'))}"
        )
    print(f"model in {result.model}")
