"""EntityFinder: the common interface of models that find entities, for a text, a list or a stream of texts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Protocol, overload

from cige.entities.entity import Entity
from cige.entities.label_facts import LabelFacts
from cige.errors import ModelError
from cige.lexicon.lexicon import Lexicon
from cige.lexicon.user_word import UserWords, user_words_of
from cige.tagging.consistency import Reader, read_consistently
from cige.tagging.selection import Request, Selection, Types, select, warn_of_other_case
from cige.text.given import check_texts, decode_hint, may_hold_texts, whole_number


class EntityFinder(ABC):
    """Finds entities in texts of any length; the base class of `NER` and `TunedNER`.

    Subclasses implement `_stream`, on which the other methods are built.
    """

    _last_selection: tuple[Request, list[str], LabelFacts, Selection] | None = None

    @property
    @abstractmethod
    def labels(self) -> list[str]:
        """The entity types that the model knows."""

    @property
    @abstractmethod
    def label_facts(self) -> LabelFacts:
        """Facts about the labels: parents, maximum lengths, calibration."""

    def __repr__(self) -> str:
        shown = [label for label in self.labels if label not in self.label_facts.silent]
        more = f" and {len(shown) - 8} more" if len(shown) > 8 else ""
        about = "; ".join(filter(None, (self._about(), f"finds {', '.join(shown[:8])}{more}")))
        return f"<{type(self).__name__}: {about}>"

    def _about(self) -> str:
        """The description of the model in `repr`."""
        return ""

    @property
    def word_labels(self) -> frozenset[str]:
        """The labels of the user's words; empty if the model has no lexicon."""
        return frozenset()

    def select(self, request: Request) -> Selection:
        """The selection that a request means for this model; raises the ModelErrors of `__call__`."""
        labels, facts = self.labels, self.label_facts
        warn_of_other_case(self.word_labels, labels)
        if request.labels is not None:
            return select(request, labels, facts, word_labels=self.word_labels)
        # Nearly all calls ask for the same as the one before, and need not find it out again.
        last = self._last_selection
        if last is not None and last[0] == request and last[1] == labels and last[2] is facts:
            return last[3]
        selection = select(request, labels, facts)
        self._last_selection = request, labels, facts, selection
        return selection

    def with_words(self, words: UserWords) -> EntityFinder:
        """A finder with these additional user words, which later changes of the lexicon do not affect.

        Raises:
            ModelError: the model does not support user words.
            LexiconError: some words cannot be used; the message lists them.
        """
        if not user_words_of(words):
            return self
        raise ModelError(
            f"given words={words!r}; a {type(self).__name__} reads the words of its own vocabulary and no others"
        )

    def _with_words_of_call(self, words: UserWords) -> EntityFinder:
        """Like `with_words`, but `self` if there are none, since most calls have none."""
        return self.with_words(words)

    @abstractmethod
    def _stream(self, texts: Iterable[str], batch_size: int, selection: Selection) -> Iterator[list[Entity]]:
        """The selected entities of each text, in order; raises a TypeError if a text is not a str."""

    @overload
    def __call__(
        self,
        text: str,
        *,
        min_score: float = 0.0,
        labels: Iterable[str] | None = None,
        types: Types = "fine",
        recall: float | None = None,
        words: UserWords = (),
        consistent: bool = False,
        nested: bool = True,
    ) -> list[Entity]: ...
    @overload
    def __call__(
        self,
        text: list[str] | tuple[str, ...],
        *,
        min_score: float = 0.0,
        labels: Iterable[str] | None = None,
        types: Types = "fine",
        recall: float | None = None,
        words: UserWords = (),
        consistent: bool = False,
        nested: bool = True,
    ) -> list[list[Entity]]: ...
    def __call__(
        self,
        text: str | list[str] | tuple[str, ...],
        *,
        min_score: float = 0.0,
        labels: Iterable[str] | None = None,
        types: Types = "fine",
        recall: float | None = None,
        words: UserWords = (),
        consistent: bool = False,
        nested: bool = True,
    ) -> list[Entity] | list[list[Entity]]:
        """The entities of a text, or of each text of a list, sorted.

        They do not overlap unless `recall` is given or the model finds nested entities (`head: pair_grid`).

        Args:
            min_score: leave out entities with a lower score, 0..1.
            labels: report only these labels. Silent labels of a model (see `LabelFacts`) are reported if they are
                listed.
            types: "coarse" reports the topmost ancestor of each label, such as ORG for COMPANY, if the model has a
                hierarchy of labels; the score is the sum over the labels with this ancestor.
            recall: report all spans that are probable enough to find this share, 0..1, of the entities of a text,
                instead of only the best tag sequence; such spans may overlap. This requires a calibrated model (`cige
                calibrate`) and text that is similar to the calibration data.
            words: additional user words for this call only: strings, `UserWord`s with label and mode, or a dict of
                words and labels, such as `{"阿拉善贺兰草": "COMPANY"}`.
            consistent: treat each text as a document: if a name was found at one place and missed at another, predict
                the text again with the found names as words (see docs/documents.md for gain and cost).
            nested: False leaves out entities that overlap one with a higher score. This has an effect only for models
                that find nested entities.

        Raises:
            TypeError: `text` is neither a str nor a list of str.
            ValueError: an option is out of range, or `consistent` is given with `recall`, or with nested entities.
            ModelError: the model does not report such a label, is not calibrated for such a recall, or does not
                support user words.
            LexiconError: some words cannot be used; the message lists them.
        """
        pipe = partial(
            self.pipe,
            min_score=min_score,
            labels=labels,
            types=types,
            recall=recall,
            words=words,
            consistent=consistent,
            nested=nested,
        )
        if isinstance(text, str):
            return next(pipe([text]))
        if not isinstance(text, list | tuple):
            hint = decode_hint(text) or ("; ner.pipe takes any iterable of them" if may_hold_texts(text) else "")
            raise TypeError(f"given {type(text).__name__}; expected a str or a list of str{hint}")
        return list(pipe(text))

    def pipe(
        self,
        texts: Iterable[str],
        *,
        batch_size: int = 16,
        min_score: float = 0.0,
        labels: Iterable[str] | None = None,
        types: Types = "fine",
        recall: float | None = None,
        words: UserWords = (),
        consistent: bool = False,
        nested: bool = True,
    ) -> Iterator[list[Entity]]:
        """The entities of each text of a stream, in order; memory does not grow with the number of texts.

        Texts are read ahead to make batches of similar length. With `batch_size=1`, the entities of each text are
        returned before the next text is read. If the model has a lexicon, its state when `pipe` is called is used for
        all texts. The other arguments are those of `__call__`.

        Raises:
            TypeError: `texts` is a string, or an item of it is not a string.
            ValueError: `batch_size` is less than 1, or another option is out of range.
            ModelError, LexiconError: as in `__call__`.
        """
        finder = self._with_words_of_call(words)
        request = Request.of(min_score=min_score, labels=labels, types=types, recall=recall, nested=nested)
        return finder.stream(texts, finder.select(request), batch_size=batch_size, consistent=consistent)

    def stream(
        self, texts: Iterable[str], selection: Selection, *, batch_size: int = 16, consistent: bool = False
    ) -> Iterator[list[Entity]]:
        """Like `pipe`, with a `Selection` instead of options."""
        check_texts(texts)
        batch_size = whole_number("batch_size", batch_size, least=1)
        if not isinstance(consistent, bool):
            raise ValueError(f"given consistent={consistent!r}; expected True or False")
        if not consistent:
            return self._stream(texts, batch_size, selection)
        if selection.thresholds is not None:
            raise ValueError("given consistent and recall; candidates of a recall overlap, so give one of the two")
        if selection.nested:
            raise ValueError("given consistent=True; this model finds nested entities, so also give nested=False")
        return read_consistently(self._frozen(), texts, selection, batch_size=batch_size)

    def _frozen(self) -> Reader:
        """A finder with the current words, which later changes of the lexicon do not affect.

        Raises:
            ModelError: the model does not support user words.
        """
        raise ModelError(
            f"given consistent=True; a {type(self).__name__} reads the words of its own vocabulary, and cannot be "
            "given the names of a document"
        )


class Finder(Protocol):
    """An EntityFinder, or a user's own object with these two members."""

    @property
    def labels(self) -> list[str]: ...

    def pipe(self, texts: Iterable[str], *, batch_size: int = 16) -> Iterator[list[Entity]]: ...


class LexiconFinder(Finder, Protocol):
    """A finder with a lexicon, which users may change or replace."""

    @property
    def lexicon(self) -> Lexicon: ...

    def with_lexicon(self, lexicon: Lexicon) -> LexiconFinder:
        """A finder with the same weights and another lexicon."""
