"""The sentences that benchmarks read: texts whose speed is measured, and sets on which models are scored."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from cige.api import NER, load
from cige.data.reading import read_sentences
from cige.data.sentence import Sentence, Span
from cige.data.source_types import TypeTree
from cige.entities.entity import Entity
from cige.recipes.shipped import NAMES, TODAY
from cige.training.recipe import SourceConfig, load_recipe
from cige.training.sources import Source, read_sources

UNSEEN = {
    "msra": SourceConfig(n_held_out=2000),
    "weibo": SourceConfig(),
    "cluener": SourceConfig(),
    "resume": SourceConfig(),
}
"""Sets that people annotated and that nothing of the bundled model was trained or calibrated on."""
RECIPES = (TODAY, NAMES)
DOMAINS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    TODAY: {
        "today": ("today", "today_wide"),
        "news": ("people1998",),
        "posts": ("cmner",),
        "encyclopedia": ("uner_gsdsimp",),
    },
    NAMES: {
        "news": ("msra", "people1998", "time"),
        "headlines": ("cluener",),
        "posts": ("weibo",),
        "tweets": ("cmner",),
        "encyclopedia": ("uner_gsdsimp",),
        "resumes": ("resume",),
        "products": ("ecommerce",),
    },
}
"""The sets of each domain, by the recipe of the model; a model is calibrated on these."""
CORE = ("PER", "LOC", "ORG")
FULL_BATCHES = 64  # texts of two batches of 32


def texts_of(data_dir: Path, name: str, split: str) -> list[str]:
    """The texts of one split of a data set."""
    return [sentence.text for sentence in read_sentences(data_dir / "ner" / name / f"{split}.bmes")]


def posts_and_news(data_dir: Path, n: int) -> dict[str, list[str]]:
    """The first of Weibo's development texts, and the last of MSRA's, on which no model of the package was trained."""
    return {"Weibo dev": texts_of(data_dir, "weibo", "dev")[:n], "MSRA": texts_of(data_dir, "msra", "train")[-n:]}


def texts_by_length(data_dir: Path, n: int, lengths: Iterable[int]) -> dict[str, list[str]]:
    """Posts and news as they are, and news cut to pieces of each length, at least FULL_BATCHES of them: a batch of few
    texts is slower per character."""
    texts = posts_and_news(data_dir, n)
    n_chars, news = sum(map(len, texts["MSRA"])), "".join(texts_of(data_dir, "msra", "train"))
    cut = {}
    for length in lengths:
        joined = news[-max(n_chars, FULL_BATCHES * length) :]
        cut[f"{length} characters"] = [joined[k : k + length] for k in range(0, len(joined) - length + 1, length)]
    return texts | cut


def tagger(model: str | Path | None = None, **options: Any) -> NER:
    """A model of this project; the bundled one by default."""
    ner = load(model, **options)
    assert isinstance(ner, NER)
    return ner


def scored_sets(recipe: str, data_dir: str | Path | None, only: Sequence[str] = ()) -> list[Source]:
    """The sets of a recipe with development sentences; for the bundled model, UNSEEN as well."""
    data = load_recipe(recipe).data
    if recipe == TODAY:
        data = replace(data, sources={**data.sources, **UNSEEN})
    return [source for source in read_sources(data, data_dir)[0] if source.dev and (not only or source.name in only)]


class Judge:
    """Spans of a set in the types by which they are compared: those that the set annotates throughout.

    Args:
        labels: those of the model.
    """

    def __init__(self, source: Source, labels: Sequence[str]):
        assert source.types is not None
        self._compare = partial(source.types.comparable, labels=labels, tree=source.tree)
        self._tree: TypeTree = source.tree

    def spans(self, of_text: Iterable[Span | Entity]) -> list[Span]:
        return list(self._compare([Span(x.start, x.end, x.label) for x in of_text]))

    def gold(self, sentences: Iterable[Sentence]) -> list[list[Span]]:
        return [self.spans(sentence.spans) for sentence in sentences]

    def names(self, spans: Iterable[Span]) -> list[Span]:
        """Those that are PER, LOC or ORG, or of one of their kinds, as these."""
        tops = ((span, next((x for x in self._tree.line(span.label) if x in CORE), None)) for span in spans)
        return [Span(span.start, span.end, top) for span, top in tops if top is not None]


def percent(counts: Any) -> dict[str, float]:
    """Precision, recall and F1 of counts, 0..100."""
    return {name: 100 * getattr(counts, name) for name in ("precision", "recall", "f1")}
