"""Answer over HTTP: entities, lattices and a lexicon that clients change, with a page to try it on at /.

What is added to the lexicon counts for every request from then on, in all workers. With --lexicon-file it is kept
there; without, until the server stops. If the environment has CIGE_SERVE_TOKEN, clients must send that token as
`Authorization: Bearer TOKEN`.

Examples:
  cige serve                                              # http://127.0.0.1:8000
  cige serve --workers 2 --lexicon-file words.json
  cige serve --model news=bundled --model own=runs/own    # requests choose with "model": "own"
  CIGE_SERVE_TOKEN=secret cige serve --host 0.0.0.0 --port 80 --model runs/own/model
  curl -d '{"text": "李娜出生于武汉。"}' -H 'Content-Type: application/json' http://127.0.0.1:8000/v1/entities
"""

from __future__ import annotations

import argparse
import dataclasses

from cige.commands.options import add_model_options, at_least, seconds

# Limits that can be set, and what they limit.
LIMITS = {
    "body_bytes": ("BYTES", "the longest body of a request"),
    "texts": ("N", "texts of a request"),
    "chars": ("N", "characters of all texts of a request"),
    "explained_chars": ("N", "characters of a request that is explained"),
    "waiting_chars": ("N", "characters that may wait; beyond, requests are answered with 429"),
    "batch_nodes": ("N", "characters and words that are read at once"),
}
SECONDS = {
    "answer_s": "seconds within which a short request must be expected to be answered; beyond, it is answered with 429",
    "deadline_s": "seconds until a request is answered with 504",
    "drain_s": "seconds that requests have to be answered once the server is told to stop",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from cige.serving.settings import Limits

    add_model_options(
        parser,
        models_help="model folder, hub id or `bundled`, or NAME=FOLDER to give it a name; may be given several times: "
        "requests choose by name, and the first answers those that name none (default: the bundled model)",
    )
    parser.add_argument("--host", default="127.0.0.1", help="where to listen (default: 127.0.0.1, this machine alone)")
    parser.add_argument("--port", type=at_least(0), default=8000, help="(default: 8000)")
    parser.add_argument("--workers", type=at_least(1), default=1, metavar="N", help="processes (default: 1)")
    parser.add_argument(
        "--lexicon-file", metavar="FILE", help="where words that clients add are kept; made if it is not there"
    )
    parser.add_argument(
        "--allow-origin",
        metavar="URL",
        action="append",
        default=[],
        help="a web origin whose pages may call this server, such as https://example.org; may be given several times",
    )
    parser.add_argument("--access-log", action="store_true", help="log each request, without its text")
    parser.add_argument("--log-text", action="store_true", help="log the texts of requests")
    defaults = Limits()
    for name, (metavar, what) in LIMITS.items():
        _add_limit(parser, name, what, getattr(defaults, name), type=at_least(1), metavar=metavar)
    for name, what in SECONDS.items():
        _add_limit(parser, name, what, getattr(defaults, name), type=seconds, metavar="S")
    parser.set_defaults(run=run)


def _add_limit(parser: argparse.ArgumentParser, name: str, what: str, default: float, **options: object) -> None:
    flag = f"--max-{name.removesuffix('_s').replace('_', '-')}"
    parser.add_argument(flag, dest=name, default=default, help=f"{what} (default: {default:,g})", **options)  # type: ignore[arg-type]


def run(args: argparse.Namespace) -> None:
    from cige.serving.server import serve
    from cige.serving.settings import Limits, Settings

    limits = dataclasses.replace(Limits(), **{name: getattr(args, name) for name in (*LIMITS, *SECONDS)})
    settings = Settings(
        models=tuple(args.model or ()),
        device=args.device,
        precision=args.precision,
        domain=args.domain,
        lexicon_files=tuple(args.lexicon_add),
        lexicon_file=args.lexicon_file,
        origins=tuple(args.allow_origin),
        limits=limits,
        log_text=args.log_text,
    )
    serve(settings, host=args.host, port=args.port, n_workers=args.workers, access_log=args.access_log)
