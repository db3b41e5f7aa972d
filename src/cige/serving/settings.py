"""Settings of a server: the model, the limits on what one request may ask, and how workers are told of them."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from typing import Any

from cige.json_text import to_json

SETTINGS_VARIABLE = "CIGE_SERVE_SETTINGS"  # from the parent to its workers
TOKEN_VARIABLE = "CIGE_SERVE_TOKEN"


@dataclass(frozen=True)
class Limits:
    """What one request may ask, and how much may wait.

    Attributes:
        body_bytes: length of a request's body; more is answered with 413, as are the next four.
        texts: texts of a request.
        chars: characters of all texts of a request.
        explained_chars: characters of a text that is explained or whose lattice is asked for.
        words: words of the user's own in one request.
        lexicon_words: words of the shared lexicon; adding beyond is answered with 409.
        waiting_chars: characters that may wait to be read; a request that would make it more is answered with 429,
            unless nothing else waits. A long request counts for a quarter of it at most.
        answer_s: seconds within which a short request must be expected to be answered; beyond, it is answered with 429.
        batch_nodes: characters and words of the lattices that are read at once.
        deadline_s: seconds until a request is answered with 504, unless it asks for less.
        drain_s: seconds that requests have to be answered once the server is told to stop.
    """

    body_bytes: int = 4 << 20
    texts: int = 512
    chars: int = 500_000
    explained_chars: int = 4_000
    words: int = 1_000
    lexicon_words: int = 200_000
    waiting_chars: int = 8_192
    answer_s: float = 0.15
    batch_nodes: int = 4_096
    deadline_s: float = 30.0
    drain_s: float = 30.0


@dataclass(frozen=True)
class Settings:
    """Everything that a worker must know to serve; the token comes from the environment alone.

    Attributes:
        models: model folders or hub ids, each as it is or as NAME=FOLDER (see `cige.serving.model.named_models`); the
            first answers requests that name none. Empty for the bundled model alone.
        device: where PyTorch computes.
        precision: as in `cige.load`.
        domain: kind of text for which scores are calibrated, as in `cige.load`.
        lexicon_files: word lists that every request is read with.
        lexicon_file: where words that are added over HTTP are kept; None keeps them in memory.
        origins: web origins whose pages may call the server; none may by default.
        limits: see `Limits`.
        log_text: log the texts of requests.
        metrics_folder: where several workers keep their metrics; None for one worker.
    """

    models: tuple[str, ...] = ()
    device: str = "cpu"
    precision: str = "auto"
    domain: str | None = None
    lexicon_files: tuple[str, ...] = ()
    lexicon_file: str | None = None
    origins: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)
    log_text: bool = False
    metrics_folder: str | None = None

    def to_environment(self) -> None:
        """Put the settings where `from_environment` of a worker reads them."""
        os.environ[SETTINGS_VARIABLE] = to_json(asdict(self))

    @classmethod
    def from_environment(cls) -> Settings:
        """What `to_environment` put there, or the defaults."""
        values: dict[str, Any] = json.loads(os.environ.get(SETTINGS_VARIABLE, "{}"))
        limits = Limits(**values.pop("limits", {}))
        values |= {name: tuple(values.get(name, ())) for name in ("models", "lexicon_files", "origins")}
        return cls(limits=limits, **values)
