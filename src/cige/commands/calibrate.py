"""Calibrate a model's scores and the thresholds of `recall`, on labelled sentences it was not trained on.

The calibration is written to the manifest of the model folder, or to that of a copy (--output); nothing else changes.
The expected calibration error of each file is printed, without any calibration and with the new one (by
cross-validation).

Examples:
  cige calibrate runs/weibo/model weibo/dev.bmes
  cige calibrate runs/weibo/model posts.jsonl --domain posts
  cige calibrate bundled posts.jsonl --domain posts --output my-model
  cige calibrate my-model msra/dev.bmes --labels NR=PER NS=LOC NT=ORG --types coarse
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from cige.commands.evaluate import add_label_option, read_label_map
from cige.commands.label_proposals import check_labels
from cige.commands.options import add_repair_option, add_types_option, at_least, make_console, tell
from cige.errors import DataError, ModelError
from cige.folders.kinds import GRID_TAGGER, TAGGER
from cige.folders.manifest import kind_of, refuse_to_replace, saving, update_manifest


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="model folder, whose manifest is changed unless --output is given")
    parser.add_argument("data", nargs="+", metavar="DATA", help="labelled sentences, in any format cige reads")
    parser.add_argument(
        "--output", metavar="FOLDER", help="write a calibrated copy of the model to this folder instead"
    )
    add_label_option(parser)
    add_types_option(parser)
    parser.add_argument(
        "--domain",
        metavar="NAME",
        help="store the calibration for one kind of text, selected by `cige.load(domain=NAME)` and `--domain NAME`",
    )
    add_repair_option(parser)
    parser.add_argument(
        "--batch-size", type=at_least(1), default=16, metavar="N", help="sentences per batch (default: 16)"
    )
    parser.add_argument("--device", default="cpu", help="cpu, cuda, cuda:1 ... (default: cpu)")


def run(args: argparse.Namespace) -> None:
    from rich.table import Table

    from cige.api import NER, load
    from cige.data import read_sentences
    from cige.folders.hub import is_bundled, model_folder
    from cige.tagging.calibrating import calibrated, calibration_errors, calibration_of, read_labelled

    folder = model_folder(args.model)
    output = None if args.output is None else _output(Path(args.output), folder)
    exact = "float32" if kind_of(folder) in (TAGGER, GRID_TAGGER) else "auto"  # only these have a choice
    ner = load(folder, device=args.device, precision=exact)
    if not isinstance(ner, NER):
        raise ModelError(
            f"{args.model}: models of `cige lattice-bert finetune` cannot be calibrated; give a model of `cige train`"
        )
    if ner.label_facts.nested:
        raise ModelError(
            f"{args.model}: it finds nested entities, and such models cannot be calibrated yet; their scores are those "
            "of the head, and min_score= chooses among them"
        )
    readings, table = [], Table("", "sentences", "entities", "uncalibrated error", "calibrated")
    for path in args.data:
        sentences = read_sentences(path, repair=args.repair)
        labels = read_label_map(args, sentences, path)
        check_labels(ner, sentences, labels, path, types=args.types)
        labelled = read_labelled(ner, sentences, labels=labels, types=args.types, batch_size=args.batch_size)
        readings.append((path, labelled))
    everything = [reading for _, labelled in readings for reading in labelled]
    try:
        calibration = calibration_of(everything)
        rows = [(path, labelled, calibration_errors(labelled)) for path, labelled in [*readings, ("all", everything)]]
    except ValueError as reason:
        raise DataError(f"{', '.join(args.data)}: {reason}; give more labelled sentences") from None
    for path, labelled, before_and_after in rows:
        errors = (f"{100 * error:.2f}%" for error in before_and_after)
        table.add_row(path, f"{len(labelled):,}", f"{sum(len(r.gold) for r in labelled):,}", *errors)
    facts = calibrated(ner.label_facts, calibration, args.types, args.domain).to_manifest()
    if output is not None:
        with saving(output, kind_of(folder) or "model") as aside:
            shutil.copytree(folder, aside, dirs_exist_ok=True)
            update_manifest(aside, **facts)
        folder = output
    else:
        update_manifest(folder, **facts)
        if is_bundled(folder):
            tell(
                f"{folder} is part of the installed cige, so every program that uses it has the new scores until "
                "cige is installed again; --output FOLDER writes a calibrated copy instead",
            )
    make_console().print(table)
    reached = max(calibration.thresholds, default=None)
    print(f"{folder}: calibrated for recall= up to {reached:g}" if reached else f"{folder}: scores calibrated")


def _output(output: Path, folder: Path) -> Path:
    """The folder for the copy; raises a ModelError if it is the model or in it, or has something else in it."""
    if folder.resolve() in (output.resolve(), *output.resolve().parents):
        raise ModelError(
            f"--output {output}: the folder of the model itself, or in it; give another one, or leave out --output to "
            "change the model"
        )
    refuse_to_replace(output, kind=kind_of(folder) or "model", error=ModelError)
    return output
