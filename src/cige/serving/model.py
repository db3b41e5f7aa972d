"""The model of a server: loaded with its word lists, and warmed up."""

from __future__ import annotations

from cige.api import NER, load
from cige.errors import ModelError
from cige.nn.memory import keep_freed_memory
from cige.serving.settings import Settings

WARM_UP = "昨天罗氏公司在上海宣布了新的计划。"


def open_model(settings: Settings) -> NER:
    """The model that the settings name, with the words of their word lists, ready to answer.

    Raises:
        ModelError: what `cige.load` raises; or the model reads no lexicon.
        LexiconError: a word list cannot be read.
    """
    keep_freed_memory()
    ner = load(settings.model, device=settings.device, precision=settings.precision, domain=settings.domain)
    if not isinstance(ner, NER):
        raise ModelError(f"{settings.model}: reads the words of its own vocabulary alone; serve a model with a lexicon")
    for path in settings.lexicon_files:
        ner.lexicon.add_file(path)
    ner(WARM_UP)
    ner.explain(WARM_UP, removals=False)
    return ner
