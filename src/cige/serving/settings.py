"""Settings of a server: models and limits, which are passed to workers through the environment, and of connections."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from cige.json_text import JsonObject, to_json

SETTINGS_VARIABLE = "CIGE_SERVE_SETTINGS"  # set by the parent process for its workers
TOKEN_VARIABLE = "CIGE_SERVE_TOKEN"
WAITS = "cige_waits"  # key of the lifespan state of the app, for `door`
SPARE_FILES = 48  # for connections that are accepted before others are closed, and for files that are read and written


def _limit(default: Any, metavar: str, what: str) -> Any:
    """A limit that an option of `cige serve` sets, with the help text of that option."""
    return field(default=default, metadata={"metavar": metavar, "what": what})


@dataclass(frozen=True)
class Limits:
    """Limits of requests and of the queue; those with a description have an option of `cige serve`."""

    body_bytes: int = _limit(4 << 20, "BYTES", "maximum size of a request body, decompressed too")
    texts: int = _limit(512, "N", "maximum number of texts per request")
    chars: int = _limit(100_000, "N", "maximum number of characters per request")
    # Explained, or with their lattices.
    explained_chars: int = _limit(4_000, "N", "maximum number of characters per explained request")
    words: int = 1_000  # user words per request
    lexicon_words: int = 200_000  # in the shared lexicon; status 409 if it would be exceeded
    # A request is refused unless no other waits, and a long one counts as at most a quarter of this.
    waiting_chars: int = _limit(8_192, "N", "maximum number of waiting characters; further requests get status 429")
    batch_nodes: int = _limit(4_096, "N", "maximum number of characters and words per batch")
    # Fewer if the operating system allows fewer files.
    connections: int = _limit(
        1_024, "N", "maximum number of connections per worker; beyond it, those that wait longest are closed"
    )
    answer_s: float = _limit(
        0.15, "S", "maximum expected waiting time of a short request in seconds; if it is longer, the status is 429"
    )
    deadline_s: float = _limit(30.0, "S", "seconds after which a request gets status 504")
    read_s: float = _limit(
        30.0, "S", "seconds within which the body of a request must have arrived; otherwise, the status is 408"
    )
    drain_s: float = _limit(30.0, "S", "seconds for finishing requests when the server is stopped")


@dataclass(frozen=True)
class Waits:
    """How many connections there may be, and for how many seconds they wait.

    Attributes:
        head_s: for the URL and the headers, from the first byte or from the beginning of the connection.
        read_s: for the body.
        idle_s: between requests; clients keep idle connections for less, so that none is closed while it is used again.
        write_s: for which a client may read nothing of its response.
    """

    connections: int = 1_024
    head_s: float = 10.0
    read_s: float = 30.0
    idle_s: float = 75.0
    write_s: float = 30.0


@dataclass(frozen=True)
class Settings:
    """The settings of a worker, except for the token, which is only in the environment.

    Attributes:
        models: model folders or hub ids, or NAME=FOLDER (see `cige.serving.model.named_models`); the first is the
            default. If empty, only the bundled model is served.
        device, precision, domain, names: as in `cige.load`; `names` is the path of a list.
        lexicon_files: word lists whose words are used for all requests.
        lexicon_file: the file for words that are added over HTTP; None keeps them in memory.
        origins: web origins whose pages may call the server; none by default.
        hosts: the names that the Host header of requests may have (see `cige.serving.hosts`); empty allows any.
        log_requests, log_text: whether to log the path, status and time of requests, and their texts.
        metrics_folder: the folder for the metrics of several workers; None for one worker.
    """

    models: tuple[str, ...] = ()
    device: str = "cpu"
    precision: str = "auto"
    domain: str | None = None
    names: str | None = None
    lexicon_files: tuple[str, ...] = ()
    lexicon_file: str | None = None
    origins: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)
    log_requests: bool = False
    log_text: bool = False
    metrics_folder: str | None = None

    def to_environment(self) -> None:
        """Write the settings to the environment, for `from_environment` in workers."""
        os.environ[SETTINGS_VARIABLE] = to_json(asdict(self))

    @classmethod
    def from_environment(cls) -> Settings:
        """The settings that `to_environment` wrote, or the defaults."""
        values: JsonObject = json.loads(os.environ.get(SETTINGS_VARIABLE, "{}"))
        limits = Limits(**values.pop("limits", {}))
        values |= {name: tuple(values.get(name, ())) for name in ("models", "lexicon_files", "origins", "hosts")}
        return cls(limits=limits, **values)


def token_of_environment() -> str | None:
    """The token of the server, without the line end that files of secrets have; None if it is not set or blank."""
    return os.environ.get(TOKEN_VARIABLE, "").strip() or None


def possible_connections(most: int) -> int:
    """`most`, or as many connections as this process can open files for."""
    try:
        import resource
    except ImportError:  # Windows
        return most
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return most
    listed = Path("/proc/self/fd") if Path("/proc/self/fd").is_dir() else Path("/dev/fd")
    n_open = len(os.listdir(listed)) if listed.is_dir() else 0
    return max(8, min(most, soft - n_open - SPARE_FILES))
