"""The models of a server: their names, loading them with the shared word lists, and warming them up."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from cige.api import NER, load_as
from cige.errors import ModelError
from cige.lexicon.report import LoadReport
from cige.nn.memory import keep_freed_memory
from cige.serving.schemas import ServedModelOut
from cige.serving.settings import Settings
from cige.serving.work import Reader

WARM_UP = "昨天罗氏公司在上海宣布了新的计划。"
UNNAMED = "default"  # the name of a model without a name
BUNDLED = "bundled"  # the name of the bundled model in `cige.load`
_NAMED = re.compile(r"([^\s=/\\]{1,64})=(.+)")


def named_models(given: Sequence[str]) -> dict[str, str]:
    """Name -> model folder or hub id, in the order given.

    Args:
        given: folders or hub ids, which are also used as names; or NAME=FOLDER, unless that is a folder itself. FOLDER
            may be `bundled`, as in `cige.load`. If empty, only the bundled model is served.

    Raises:
        ModelError: two models have the same name.
    """
    sources: dict[str, str] = {}
    for spec in given or (BUNDLED,):
        parts = None if Path(spec).exists() else _NAMED.fullmatch(spec)
        name, source = (parts[1], parts[2]) if parts else (spec, spec)
        if name in sources:
            raise ModelError(f"two models are called {name}; give them names: --model NAME={source}")
        sources[name] = source
    return sources


def open_models(settings: Settings, on_report: Callable[[LoadReport], None] | None = None) -> dict[str, NER]:
    """Load the models of the settings, add the words of the word lists, and warm them up.

    The report of each word list goes to `on_report` once, whatever the number of models.

    Raises:
        ModelError: the errors of `cige.load`; a model has no lexicon; or two models have the same name.
        LexiconError: a word list cannot be read.
    """
    keep_freed_memory()
    models: dict[str, NER] = {}
    for name, source in named_models(settings.models).items():
        ner = load_as(source, settings)
        if not isinstance(ner, NER):
            raise ModelError(f"{source}: reads the words of its own vocabulary alone; serve a model with a lexicon")
        reports = [ner.lexicon.add_file(path) for path in settings.lexicon_files]
        if on_report is not None and not models:  # each model takes the same lines
            for report in reports:
                on_report(report)
        ner(WARM_UP)
        ner.explain(WARM_UP, removals=False)
        models[name] = ner
    return models


def described(reader: Reader) -> ServedModelOut:
    """The description of a model at /v1/models."""
    ner = reader.ner
    return ServedModelOut(
        name=reader.name,
        n_base=len(ner.lexicon),
        labels=ner.labels,
        silent_labels=sorted(ner.label_facts.silent),
        word_labels=list(ner.read_word_labels),
    )
