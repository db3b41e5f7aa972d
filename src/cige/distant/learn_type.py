"""learn_types: teach a model new entity types from word lists and raw text, in addition to its own types.

    cige learn-type GADGET --words gadgets.txt --text titles.txt --output runs/gadgets

Each round labels the text and trains on it, starting from the given model. The first round trusts a list according to
its estimated noise (`trust`). Later rounds also use the predictions of the previous round: its entities are kept, and
listed words that it rarely predicted as entities are rarely labelled. Text without a label is open: it may contain
entities of a new type, so training sums over both possibilities (data/tag_sets.py).

The output folder contains a run per round (round1, ...), the labelled text of each round (text1, ...), and the model in
model/.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import numpy as np

from cige.api import NER
from cige.data.reading import write_sentences
from cige.data.sentence import Sentence
from cige.data.source_types import DOUBT, EITHER
from cige.data.tags import Scheme
from cige.data.user_words import UserWordRegime
from cige.distant.labelling import drawn_words, labelled
from cige.distant.matching import ListMatcher, TextWord
from cige.distant.trust import bands_of, trust_by_band, trust_of_words
from cige.engine.run_folder import RECIPE, refuse_foreign
from cige.entities.entity import Entity
from cige.entities.label_facts import LabelFacts, learn_max_lengths
from cige.errors import DataError, LexiconError, ModelError, RecipeError
from cige.folders.atomic import write_atomically
from cige.folders.in_use import in_use, is_main_process
from cige.json_text import to_json
from cige.lexicon.user_word import RESERVED_LABELS
from cige.models.model import LatticeModel
from cige.tagging.windows import read_windows
from cige.text.counted import counted
from cige.text.normalize import normalize
from cige.training.recipe import Recipe, SourceConfig, start_folder
from cige.training.train import train

_SOURCE = "text"  # the name of the labelled text in recipes and types files
_MAX_HELD_OUT = 100  # sentences on which the model's own types are evaluated after training


@dataclass(frozen=True)
class LearntType:
    """Statistics of the word list of a type.

    Attributes:
        n_words, n_in_text, n_uses: numbers of words, of those in the text, and of their occurrences.
        trust: mean probability, 0..1, that these occurrences are entities, according to the noise of the list.
        n_labelled: number of entities of the type in the training text of the last round.
    """

    name: str
    n_words: int
    n_in_text: int
    n_uses: int
    trust: float
    n_labelled: int


@dataclass(frozen=True)
class LearnResult:
    """The result of `learn_types`: the model folder, statistics of each list, and seconds of training."""

    model: Path
    types: tuple[LearntType, ...]
    seconds: float


def learn_types(
    lists: Mapping[str, Sequence[str]],
    texts: Iterable[str],
    recipe: Recipe,
    output_dir: str | Path,
    *,
    n_rounds: int = 2,
    seed: int = 1,
    device: str = "auto",
    resume: bool = True,
    show_progress: bool = True,
) -> LearnResult:
    """Learn new types and write the model folder `output_dir/model`.

    Args:
        lists: new type -> words that name entities of this type.
        texts: raw texts of any length, such as the lines of a file, in which some of the words occur.
        recipe: training settings, including `start_from`; its `data` is filled in.
        n_rounds: number of rounds, at least 1.
        seed: determines which occurrences of words are labelled, and training.
        resume: whether to resume an interrupted run with the same words and texts.

    Raises:
        LexiconError: a list has no word of two or more characters.
        DataError: the text is empty, or contains no words of a list.
        ModelError: the model already has such a type, or training cannot start from it.
        RecipeError: the folder contains a run with other words, texts or settings, or files of something else.
    """
    if recipe.start_from is None:
        raise ModelError("learning types needs a model to start from; the recipe has no start_from")
    if n_rounds < 1:
        raise ValueError(f"given n_rounds={n_rounds}; expected 1 or more")
    folder = Path(output_dir)
    if (folder / RECIPE).exists():  # only the folders of rounds have one
        raise RecipeError(f"{folder} holds a training run, whose model would be replaced; give a new folder")
    refuse_foreign(folder, files_of_run=("text1", "round1"))
    with in_use(folder, by="another run", error=RecipeError):
        base = NER.from_pretrained(start_folder(recipe.start_from))
        _check_types(lists, base)
        words = {name: _usable_words(name, listed) for name, listed in lists.items()}
        text = _RawText.read(texts, base, words)
        entities = text.entities(base, labels=base.labels)
        recipe = _filled_in(recipe, base, words)
        trust, seconds = text.trust, 0.0
        learnt: list[list[Entity]] = [[] for _ in text.texts]
        for number in range(1, n_rounds + 1):
            sentences = [
                labelled(
                    text.texts[k],
                    drawn_words(text.words[k], trust, np.random.default_rng((seed, number, k))),
                    entities[k],
                    silent=base.label_facts.silent,
                    learnt=learnt[k],
                )
                for k in range(len(text.texts))
            ]
            n_labelled = _count(sentences, words)
            for name, n in n_labelled.items():
                if not n:
                    raise DataError(
                        f"{name}: the text uses {len(text.counts[name]):,} words of the list, but none of them can be "
                        "believed to name an entity: they are ordinary words. Give a list of names, or more text"
                    )
            result = train(
                _with_sentences(recipe, folder / f"text{number}", sentences, base, words),
                folder / f"round{number}",
                seed=seed,
                device=device,
                resume=resume,
                show_progress=show_progress,
            )
            seconds += result.seconds
            if number < n_rounds:
                student = NER.from_pretrained(result.model)
                learnt = text.entities(student, labels=list(words))
                trust = text.trust_after(learnt)
        model = LatticeModel.load(result.model)
        model.label_facts = _facts_of(base, sentences, words)
        if is_main_process():
            model.save(folder / "model")
    return LearnResult(folder / "model", tuple(text.report(name, n_labelled[name]) for name in words), seconds)


@dataclass(frozen=True)
class _RawText:
    """The distinct windows of a text and the words of each; by list, its size, the number of occurrences of each word
    and the trust in it, 0..1.
    """

    texts: list[str]
    words: list[list[TextWord]]
    n_listed: dict[str, int]
    counts: dict[str, Counter[str]]
    trust: dict[str, dict[str, float]]

    @classmethod
    def read(cls, texts: Iterable[str], base: NER, lists: Mapping[str, Sequence[str]]) -> _RawText:
        snapshot = base.lexicon.snapshot()
        windows = dict.fromkeys(part.lattice.text for text in texts for part in read_windows(text, snapshot))
        if len(windows) < 2:
            expected = "expected raw text to learn from"
            raise DataError(f"the text has {len(windows)} different lines or sentences; {expected}")
        matcher = ListMatcher(snapshot, lists)
        words = [matcher.words(window) for window in windows]
        band = bands_of(base.lexicon)
        counts, trust = {}, {}
        for name, listed in lists.items():
            counts[name] = Counter(word.text for of_text in words for word in of_text if name in word.lists)
            if not counts[name]:
                joined = "\n".join(windows)
                hidden = next((word for word in listed[:1000] if word in joined), None)
                reason = f"; {hidden} occurs in it, but the segmentation prefers other words there" if hidden else ""
                raise DataError(
                    f"{name}: the text uses no word of the list ({counted(len(listed), 'word')}, such as "
                    f"{listed[0]}){reason}; expected raw text of the kind in which they occur"
                )
            by_band = trust_by_band((word for of_text in words for word in of_text), name, band)
            trust[name] = {word: by_band[band(word)] for word in counts[name]}
        return cls(list(windows), words, {name: len(listed) for name, listed in lists.items()}, counts, trust)

    def entities(self, ner: NER, *, labels: Sequence[str]) -> list[list[Entity]]:
        """The entities with one of `labels` that a model predicts in each text."""
        return list(ner.pipe(self.texts, labels=labels)) if labels else [[] for _ in self.texts]

    def trust_after(self, learnt: Sequence[Sequence[Entity]]) -> dict[str, dict[str, float]]:
        """The probability of listed words to be entities, given the predictions after a round."""
        predicted: dict[str, Counter[str]] = {name: Counter() for name in self.counts}
        for words, entities in zip(self.words, learnt, strict=True):
            places = {(e.start, e.end, e.label) for e in entities}
            for word in words:
                for name in word.lists:
                    predicted[name][word.text] += (word.start, word.end, name) in places
        return {name: trust_of_words(self.counts[name], predicted[name], self.trust[name]) for name in self.counts}

    def report(self, name: str, n_labelled: int) -> LearntType:
        counts = self.counts[name]
        mean = sum(self.trust[name][word] * n for word, n in counts.items()) / counts.total()
        return LearntType(name, self.n_listed[name], len(counts), counts.total(), mean, n_labelled)


def _check_types(lists: Mapping[str, Sequence[str]], base: NER) -> None:
    if not lists:
        raise DataError("no type to learn; expected a type and a list of words")
    for name in lists:
        if not name or name != name.strip() or {EITHER, DOUBT} & set(name) or name in RESERVED_LABELS:
            expected = f"a name such as GADGET, without {EITHER} and {DOUBT}, and not {' or '.join(RESERVED_LABELS)}"
            raise DataError(f"the type {name!r}: expected {expected}")
        if name in base.labels:
            raise ModelError(
                f"the model finds {name} already (it knows {', '.join(base.labels)}); call the new type by another "
                "name, or teach the model more of its own type with labelled sentences (`cige train --data`)"
            )


def _usable_words(name: str, listed: Sequence[str]) -> list[str]:
    words = [word for word in dict.fromkeys(map(normalize, listed)) if len(word) > 1]
    if not words:
        raise LexiconError(f"{name}: no word to learn from; expected words of two or more characters, one a line")
    return words


def _facts_of(base: NER, sentences: Sequence[Sentence], names: Collection[str]) -> LabelFacts:
    """The base model's facts with the new types, without calibrations, which are of the weights before training."""
    facts = base.label_facts
    longest = {k: n for k, n in learn_max_lengths(sentences).items() if k in names}
    return replace(
        facts,
        max_lengths={**facts.max_lengths, **longest},
        coarse_labels=facts.coarse_labels.union(names) if facts.coarse_labels else facts.coarse_labels,
        calibration={},
        domains={},
    )


def _count(sentences: Iterable[Sentence], names: Iterable[str]) -> dict[str, int]:
    counts = Counter(type_ for s in sentences for span in s.spans for type_ in span.label.split(EITHER))
    return {name: counts[name] for name in names}


def _filled_in(recipe: Recipe, base: NER, words: Mapping[str, object]) -> Recipe:
    """The recipe with the labels and the scheme of the model, and with labelled user words if the model uses them."""
    regime = recipe.user_words
    if recipe.model.reads_word_labels and regime == UserWordRegime():
        regime = replace(regime, label_prob=0.5, wrong_label_prob=0.15, unknown_label_prob=0.15)
    return replace(
        recipe,
        name=f"learn-{'-'.join(words)}",
        data=replace(
            recipe.data,
            labels=tuple(sorted([*base.labels, *words])),
            silent=tuple(sorted(base.label_facts.silent)),
            scheme=cast(Scheme, base.model.scheme),
        ),
        training=replace(recipe.training, eval_start_epoch=recipe.training.n_epochs),
        user_words=regime,
    )


def _with_sentences(
    recipe: Recipe, folder: Path, sentences: Sequence[Sentence], base: NER, words: Mapping[str, object]
) -> Recipe:
    """Write the labelled text and the types file of a round to a folder; returns its recipe.

    The names of both contain a hash of the content, so that a run with others is detected, and its files are kept.
    """
    path = folder.absolute() / f"text-{_digest(repr([(s.text, s.spans) for s in sentences]))}.jsonl"
    folder.mkdir(parents=True, exist_ok=True)
    write_sentences(path, sentences)
    combined = {label for s in sentences for span in s.spans if EITHER in (label := span.label)}
    facts = {
        "map": {label: [label] for label in (*base.labels, *words)}
        | {label + DOUBT: [label] for label in base.labels}
        | {label: label.split(EITHER) for label in sorted(combined)},
        "annotated": list(base.labels),
        "doubtful": {label + DOUBT: 1.0 for label in base.labels},
    }
    content = to_json({"parents": dict(base.label_facts.parents), "sources": {_SOURCE: facts}}, indent=1)
    types = folder.absolute() / f"types-{_digest(content)}.json"
    write_atomically(types, content)
    n_held_out = min(_MAX_HELD_OUT, max(1, len(sentences) // 20))
    source = SourceConfig(train=str(path), n_held_out=n_held_out)
    return replace(recipe, data=replace(recipe.data, types=str(types), sources={_SOURCE: source}))


def _digest(content: str) -> str:
    return hashlib.sha256(content.encode("utf-8", "backslashreplace")).hexdigest()[:12]
