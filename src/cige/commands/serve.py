"""Serve models over HTTP: entities, lattices, and a lexicon that clients can change. The page at / tries them out.

Words that are added to the lexicon take effect for all later requests, in all workers. With --lexicon-file, they are
stored in that file; otherwise, they are lost when the server stops. If the environment variable CIGE_SERVE_TOKEN is
set, clients must send its value as `Authorization: Bearer TOKEN`; a server that other machines reach must have one,
unless --no-token is given.

Examples:
  cige serve                                              # http://127.0.0.1:8000
  cige serve --workers 2 --lexicon-file words.json
  cige serve --model news=bundled --model own=runs/own    # requests select a model with "model": "own"
  CIGE_SERVE_TOKEN=secret cige serve --host 0.0.0.0 --port 80 --model runs/own/model
  curl -d '{"text": "李娜出生于武汉。"}' -H 'Content-Type: application/json' http://127.0.0.1:8000/v1/entities
"""

from __future__ import annotations

import argparse
import dataclasses

from cige.commands.options import add_model_options, at_least, seconds, tell_incomplete

# The limits that can be set, with the help text of their options.
LIMITS = {
    "body_bytes": ("BYTES", "maximum size of a request body, decompressed too"),
    "texts": ("N", "maximum number of texts per request"),
    "chars": ("N", "maximum number of characters per request"),
    "explained_chars": ("N", "maximum number of characters per explained request"),
    "waiting_chars": ("N", "maximum number of waiting characters; further requests get status 429"),
    "batch_nodes": ("N", "maximum number of characters and words per batch"),
    "connections": ("N", "maximum number of connections per worker; beyond it, those that wait longest are closed"),
}
SECONDS = {
    "answer_s": "maximum expected waiting time of a short request in seconds; if it is longer, the status is 429",
    "deadline_s": "seconds after which a request gets status 504",
    "read_s": "seconds within which the body of a request must have arrived; otherwise, the status is 408",
    "drain_s": "seconds for finishing requests when the server is stopped",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from cige.serving.settings import Limits

    add_model_options(
        parser,
        models_help="model folder, hub id, `bundled` or `research`, or NAME=FOLDER to name it; may be given several "
        "times: requests select a model by name, and the first is the default (default: the bundled model)",
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1, local only)")
    parser.add_argument("--port", type=at_least(0), default=8000, help="(default: 8000)")
    parser.add_argument("--workers", type=at_least(1), default=1, metavar="N", help="processes (default: 1)")
    parser.add_argument(
        "--lexicon-file", metavar="FILE", help="file in which words of clients are stored; created if missing"
    )
    parser.add_argument(
        "--allow-origin",
        metavar="URL",
        action="append",
        default=[],
        help="a web origin whose pages may call this server, such as https://example.org; may be given several times",
    )
    parser.add_argument(
        "--allow-host",
        metavar="NAME",
        action="append",
        default=[],
        help="a name by which requests may call the server in their Host header, such as ner.example.org; a server on "
        "a local address knows its own names, and others accept any name unless this is given; may be given several "
        "times",
    )
    parser.add_argument(
        "--no-token", action="store_true", help="listen on an address that other machines reach without a token"
    )
    parser.add_argument("--access-log", action="store_true", help="log each request, without its text")
    parser.add_argument("--log-text", action="store_true", help="log the texts of requests")
    defaults = Limits()
    for name, (metavar, what) in LIMITS.items():
        _add_limit(parser, name, what, getattr(defaults, name), type=at_least(1), metavar=metavar)
    for name, what in SECONDS.items():
        _add_limit(parser, name, what, getattr(defaults, name), type=seconds, metavar="S")
    parser.set_defaults(run=run)


def _shown(number: float) -> str:
    return f"{number:,}" if isinstance(number, int) else f"{number:g}"


def _add_limit(parser: argparse.ArgumentParser, name: str, what: str, default: float, **options: object) -> None:
    flag = f"--max-{name.removesuffix('_s').replace('_', '-')}"
    parser.add_argument(flag, dest=name, default=default, help=f"{what} (default: {_shown(default)})", **options)  # type: ignore[arg-type]


def run(args: argparse.Namespace) -> None:
    from cige.lexicon.word_versions import word_file
    from cige.serving.server import serve
    from cige.serving.settings import Limits, Settings

    limits = dataclasses.replace(Limits(), **{name: getattr(args, name) for name in (*LIMITS, *SECONDS)})
    settings = Settings(
        models=tuple(args.model or ()),
        device=args.device,
        precision=args.precision,
        domain=args.domain,
        names=args.names,
        lexicon_files=tuple(map(word_file, args.lexicon_add)),
        lexicon_file=args.lexicon_file,
        origins=tuple(args.allow_origin),
        hosts=tuple(args.allow_host),
        limits=limits,
        log_requests=args.access_log,
        log_text=args.log_text,
    )
    serve(
        settings,
        host=args.host,
        port=args.port,
        n_workers=args.workers,
        no_token=args.no_token,
        on_report=tell_incomplete,
    )
