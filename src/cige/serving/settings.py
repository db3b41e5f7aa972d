"""Settings of a server: models and limits, which are passed to workers through the environment."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field

from cige.json_text import JsonObject, to_json

SETTINGS_VARIABLE = "CIGE_SERVE_SETTINGS"  # set by the parent process for its workers
TOKEN_VARIABLE = "CIGE_SERVE_TOKEN"


@dataclass(frozen=True)
class Limits:
    """Limits of requests and of the queue.

    Attributes:
        body_bytes: maximum size of a request body; larger requests get status 413, which also applies to the next four.
        texts: maximum number of texts per request.
        chars: maximum number of characters of all texts of a request.
        explained_chars: maximum number of characters of texts that are explained or whose lattice is requested.
        words: maximum number of user words per request.
        lexicon_words: maximum number of words in the shared lexicon; status 409 if it would be exceeded.
        waiting_chars: maximum number of characters that are waiting; a request that would exceed it gets status 429,
            unless no other request is waiting. A long request counts as at most a quarter of it.
        connections: maximum number of connections per worker, or fewer if the operating system allows fewer files.
        answer_s: maximum expected waiting time of a short request in seconds; if it is longer, the status is 429.
        batch_nodes: maximum number of characters and words of the lattices of a batch.
        deadline_s: seconds after which a request gets status 504, unless it requests less.
        read_s: seconds within which the body of a request must have arrived.
        drain_s: seconds for finishing requests after the server was told to stop.
    """

    body_bytes: int = 4 << 20
    texts: int = 512
    chars: int = 100_000
    explained_chars: int = 4_000
    words: int = 1_000
    lexicon_words: int = 200_000
    waiting_chars: int = 8_192
    connections: int = 1_024
    answer_s: float = 0.15
    batch_nodes: int = 4_096
    deadline_s: float = 30.0
    read_s: float = 30.0
    drain_s: float = 30.0


@dataclass(frozen=True)
class Settings:
    """The settings of a worker, except for the token, which is only in the environment.

    Attributes:
        models: model folders or hub ids, or NAME=FOLDER (see `cige.serving.model.named_models`); the first is the
            default. If empty, only the bundled model is served.
        device: the PyTorch device.
        precision: as in `cige.load`.
        domain: kind of text for which scores are calibrated, as in `cige.load`.
        names: the path of a list of names instead of those of the models, as in `cige.load`.
        lexicon_files: word lists whose words are used for all requests.
        lexicon_file: the file for words that are added over HTTP; None keeps them in memory.
        origins: web origins whose pages may call the server; none by default.
        hosts: the names that the Host header of requests may have (see `cige.serving.hosts`); empty allows any.
        limits: see `Limits`.
        log_requests: whether to log the path, status and time of requests.
        log_text: whether to log the texts of requests, too.
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
