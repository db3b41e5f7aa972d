"""Annotate a file or a folder of files: add the entities of each row, with several processes.

Examples:
  cige annotate news.txt annotated/
  cige annotate posts.jsonl annotated/ --text-column body --lexicon-add names.txt --processes 8
  cige annotate posts.csv annotated/ --to parquet --min-score 0.5
  cige annotate posts/ annotated/ --engine ray --processes 16

The input can be lines of text, JSON lines, CSV, TSV or Parquet; .gz and .xz files are decompressed. The rows are
written to OUTPUT/data with the file and line that they are from, rows that cannot be processed to OUTPUT/rejected with
the reason, and OUTPUT/manifest.json records the model, the lexicon and the input. If a job is stopped or killed, run
the same command again: it continues where it stopped, and the result is the same, byte for byte.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cige.bulk.records import PartRecord
from cige.commands.exit_codes import INTERRUPTED
from cige.commands.options import add_model_options, add_request_options, at_least, request_of, tell, tell_incomplete
from cige.errors import DataError
from cige.folders.in_use import in_use
from cige.text.counted import counted

if TYPE_CHECKING:
    from cige.bulk.annotator import AnnotatorSettings
    from cige.bulk.job import Job

ENGINES = ("local", "ray", "spark")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("input", metavar="INPUT", help="file, or folder of files of one format")
    parser.add_argument("output", metavar="OUTPUT", help="folder to write to")
    add_model_options(parser)
    add_request_options(parser)
    parser.add_argument(
        "--format", choices=("txt", "jsonl", "csv", "tsv", "parquet"), help="format of INPUT (default: by file name)"
    )
    parser.add_argument(
        "--to",
        choices=("jsonl", "csv", "tsv", "parquet"),
        help="format to write (default: that of INPUT; jsonl for txt)",
    )
    parser.add_argument(
        "--text-column", default="text", metavar="NAME", help="column or key with the text (default: text)"
    )
    parser.add_argument(
        "--entities-column", default="entities", metavar="NAME", help="column or key to add (default: entities)"
    )
    parser.add_argument(
        "--no-source",
        action="store_true",
        help="leave out the columns source_file and source_row, the file and the line (or record) that a row is from",
    )
    parser.add_argument(
        "--offsets",
        choices=("code-points", "utf-16"),
        default="code-points",
        help="unit of the offsets; use utf-16 for Java and JavaScript (default: code-points)",
    )
    parser.add_argument("--max-chars", type=at_least(1), metavar="N", help="reject longer texts (default: no limit)")
    parser.add_argument(
        "--batch-size", type=at_least(1), default=16, metavar="N", help="sentences per batch (default: 16)"
    )
    parser.add_argument("--part-rows", type=at_least(1), metavar="N", help="rows per part (default: by size of INPUT)")
    parser.add_argument(
        "--verify",
        action="store_true",
        help="when a job is run again: compare the checksums of finished parts, and annotate those again that differ",
    )
    parser.add_argument(
        "--processes",
        type=at_least(1),
        metavar="N",
        help="number of processes, actors or tasks (default: one per core)",
    )
    parser.add_argument("--engine", choices=ENGINES, default="local", help="where processes run (default: local)")
    parser.add_argument(
        "--gpus-per-process", type=float, default=0.0, metavar="SHARE", help="share of a GPU per actor of --engine ray"
    )


def run(args: argparse.Namespace) -> int:
    from cige.bulk.annotator import Annotator
    from cige.bulk.job import Job
    from cige.bulk.packages import check_installed

    if args.engine != "local":
        check_installed(f"--engine {args.engine}", args.engine)
    settings = settings_of(args)
    annotator = Annotator.open(settings)  # also reports errors in the model or the words immediately
    tell_incomplete(*annotator.reports)  # workers read the words again, and say nothing
    versions = annotator.versions
    del annotator
    job = Job.plan(
        Path(args.input).absolute(),
        Path(args.output).absolute(),
        settings,
        versions,
        form=args.format,
        to=args.to,
        text_column=args.text_column,
        entities_column=args.entities_column,
        part_rows=args.part_rows,
        with_source=not args.no_source,
    )
    if job.to == "parquet":  # workers write it, whose exceptions are not shown
        check_installed("Parquet", "documents")
    # before `begin`, which removes the temporary files of killed processes
    with in_use(job.output, by="another `cige annotate`", error=DataError):
        return _annotate(job, args, is_there=job.begin())


def settings_of(args: argparse.Namespace) -> AnnotatorSettings:
    """The settings that the options specify; paths are absolute, since workers may run elsewhere."""
    from cige.bulk.annotator import AnnotatorSettings

    request, model = request_of(args), args.model
    if model is not None and Path(model).exists():
        model = str(Path(model).absolute())
    return AnnotatorSettings(
        model=model,
        device=args.device,
        precision=args.precision,
        domain=args.domain,
        names=None if args.names is None else str(Path(args.names).absolute()),
        lexicon_add=_words_of(args),
        batch_size=args.batch_size,
        offsets=args.offsets,
        max_chars=args.max_chars,
        **vars(request),
    )


def _words_of(args: argparse.Namespace) -> tuple[str, ...]:
    """The word files; for a folder of versions, the version with which the job was started or else the current one."""
    from cige.bulk.job import versions_begun_with
    from cige.lexicon.word_versions import WordVersions

    begun_with = iter(versions_begun_with(Path(args.output)))
    files = []
    for path in (Path(path).absolute() for path in args.lexicon_add):
        if path.is_dir():
            versions = WordVersions(path)
            path = versions.path(next(begun_with, None) or versions.current())
        files.append(str(path))
    return tuple(files)


def _annotate(job: Job, args: argparse.Namespace, *, is_there: bool) -> int:
    from cige.bulk.progress import JobProgress

    pending = job.pending(verify=args.verify)
    n_parts, n_left = len(job.parts), sum(part.n_rows for part in pending)
    if is_there and pending:
        done = f"{n_parts - len(pending):,} of {counted(n_parts, 'part')}"
        tell(f"resuming: {done} finished")
    by_number = {part.number: part for part in pending}
    progress = JobProgress(job.n_rows, job.n_rows - n_left, prints_lines=args.engine != "spark")  # see spark_sql.py
    try:
        with progress:
            for record in _records(job, pending, args):
                progress.add(by_number.pop(record["part"]).n_rows)
    except KeyboardInterrupt:
        tell(
            f"stopped with {n_parts - len(by_number):,} of {counted(n_parts, 'part')} in {args.output}. "
            "Run the same command again to continue.",
        )
        return INTERRUPTED
    totals = job.finish()
    n_rejected = totals["rejected"]
    if n_rejected and not totals["rows"]:
        rows = "the only row was" if n_rejected == 1 else f"all {n_rejected:,} rows were"
        with open(min((job.output / "rejected").iterdir()), encoding="ascii") as file:
            first = json.loads(file.readline())
        raise DataError(f"{args.output}: {rows} rejected ({first['reason']}); see {Path(args.output, 'rejected')}")
    were = counted(n_rejected, "row was", "rows were")
    rejected = f"; {were} rejected, see {Path(args.output, 'rejected')}" if n_rejected else ""
    rate = f", {progress.rows_per_second:,.0f} rows per second" if pending else ""
    if n_parts and not pending:
        rate = " (all parts were finished already)"
    rows, entities = counted(totals["rows"], "row"), counted(totals["entities"], "entity", "entities")
    print(f"wrote {args.output}: {rows} with {entities}{rate}{rejected}")
    return 0


def _records(job: Job, pending: list[Any], args: argparse.Namespace) -> Iterator[PartRecord]:
    from cige.runtime.native import n_cores

    n = args.processes or n_cores()
    if args.engine == "ray":
        from cige.bulk.ray_data import annotate_parts as with_ray

        return with_ray(job, pending, n_actors=n, gpus_per_actor=args.gpus_per_process)
    if args.engine == "spark":
        from cige.bulk.spark_sql import annotate_parts as with_spark

        return with_spark(job, pending, n_tasks=n)
    from cige.bulk.local import annotate_parts

    return annotate_parts(job, pending, n_processes=min(n, max(1, len(pending))))
