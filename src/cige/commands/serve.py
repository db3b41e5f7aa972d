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
from typing import Any

from cige.commands.options import add_model_options, at_least, origin, port, seconds, tell_incomplete


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model_options(
        parser,
        models_help="model folder, hub id, `bundled` or `research`, or NAME=FOLDER to name it; may be given several "
        "times: requests select a model by name, and the first is the default (default: the bundled model)",
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1, local only)")
    parser.add_argument("--port", type=port, default=8000, help="(default: 8000)")
    parser.add_argument("--workers", type=at_least(1), default=1, metavar="N", help="processes (default: 1)")
    parser.add_argument(
        "--lexicon-file", metavar="FILE", help="file in which words of clients are stored; created if missing"
    )
    parser.add_argument(
        "--allow-origin",
        type=origin,
        metavar="URL",
        action="append",
        default=[],
        help="a web origin whose pages may call this server, such as https://example.org, or * for any; may be "
        "given several times",
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
    for limit in _limits_with_options():
        number, is_whole = limit.default, isinstance(limit.default, int)
        parser.add_argument(
            f"--max-{limit.name.removesuffix('_s').replace('_', '-')}",
            dest=limit.name,
            default=number,
            type=at_least(1) if is_whole else seconds,
            metavar=limit.metadata["metavar"],
            help=f"{limit.metadata['what']} (default: {number:{',' if is_whole else 'g'}})",
        )


def _limits_with_options() -> list[dataclasses.Field[Any]]:
    from cige.serving.settings import Limits

    return [limit for limit in dataclasses.fields(Limits) if limit.metadata]


def run(args: argparse.Namespace) -> None:
    from cige.lexicon.word_versions import word_file
    from cige.serving.server import serve
    from cige.serving.settings import Limits, Settings

    limits = Limits(**{limit.name: getattr(args, limit.name) for limit in _limits_with_options()})
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
