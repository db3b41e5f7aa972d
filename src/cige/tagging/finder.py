"""EntityFinder: how a model that finds entities is called, on a text, on a list of them or on a stream."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator
from typing import Any, Protocol, overload

from cige.entities.entity import Entity
from cige.entities.label_facts import LabelFacts
from cige.errors import ModelError
from cige.lexicon.lexicon import Lexicon
from cige.lexicon.user_word import UserWords, user_words_of
from cige.tagging.consistency import Reader, read_consistently
from cige.tagging.selection import Request, Selection, Types, select


class EntityFinder(ABC):
    """Finds entities in texts of any length; what `NER` and `TunedNER` have in common.

    A model has to say how it answers a stream of texts. The rest follows from that.
    """

    @property
    @abstractmethod
    def labels(self) -> list[str]:
        """The types of entity that the model knows."""

    @property
    @abstractmethod
    def label_facts(self) -> LabelFacts:
        """What else is known of the labels: kinds, lengths, calibration."""

    def __repr__(self) -> str:
        shown = [label for label in self.labels if label not in self.label_facts.silent]
        more = f" and {len(shown) - 8} more" if len(shown) > 8 else ""
        about = "; ".join(filter(None, (self._about(), f"finds {', '.join(shown[:8])}{more}")))
        return f"<{type(self).__name__}: {about}>"

    def _about(self) -> str:
        """What else `repr` says of a finder of this class."""
        return ""

    @property
    def word_labels(self) -> Collection[str]:
        """Labels of the user's own words; none where a model has no lexicon."""
        return ()

    def select(self, request: Request) -> Selection:
        """What a request means for this model; raises ModelError as a call does."""
        return select(request, self.labels, self.label_facts, word_labels=self.word_labels)

    def with_words(self, words: UserWords) -> EntityFinder:
        """A finder that reads these words besides; itself if there are none.

        Raises:
            ModelError: the model reads no words of a user's own.
            LexiconError: naming the words that cannot be used.
        """
        if not user_words_of(words):
            return self
        raise ModelError(
            f"given words={words!r}; a {type(self).__name__} reads the words of its own vocabulary and no others"
        )

    @abstractmethod
    def _stream(self, texts: Iterable[str], batch_size: int, selection: Selection) -> Iterator[list[Entity]]:
        """What is selected of the entities of each text, in order; raises TypeError at a text that is no str."""

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
    ) -> list[Entity] | list[list[Entity]]:
        """The entities of a text, or of each text of a list; sorted, and not overlapping unless `recall` is given.

        Args:
            min_score: leave out entities with a lower score, 0..1.
            labels: report only these. A label that a model keeps silent (`LabelFacts`) is reported if it is named.
            types: "coarse" reports each entity under the topmost label that its label is a kind of, such as ORG for
                COMPANY, where the model knows of kinds; its score is the sum over the labels of that kind.
            recall: report every span that is probable enough for this share, 0..1, of the entities of a text to be
                found, in place of the best reading alone; such spans may overlap. Needs a model that was calibrated
                (`cige calibrate`), and text like that which it was calibrated on.
            words: words of the user's own for this call alone, besides those of the lexicon: strings, `UserWord`s with
                label and mode, or a dict of words and labels, such as `{"阿拉善贺兰草": "COMPANY"}`.
            consistent: take each text for a document: where a name was found in one place and not in another, the text
                is read again with the names found as words (docs/documents.md has what it gives and costs).

        Raises:
            TypeError: neither a str nor a list of str.
            ValueError: an option is out of range, or `consistent` and `recall` were given together.
            ModelError: the model does not report such a label, cannot answer for such a recall, or reads no words of
                a user's own.
            LexiconError: naming the words that cannot be used.
        """
        options: dict[str, Any] = {"min_score": min_score, "labels": labels, "types": types, "recall": recall}
        options |= {"words": words, "consistent": consistent}
        if isinstance(text, str):
            return next(iter(self.pipe([text], **options)))
        if not isinstance(text, list | tuple):
            raise TypeError(f"given {type(text).__name__}; expected a str or a list of str; ner.pipe takes others")
        return list(self.pipe(text, **options))

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
    ) -> Iterator[list[Entity]]:
        """The entities of each text, in order, while texts keep coming; memory does not grow with their number.

        Texts are read ahead to make batches of like length. With `batch_size=1` each text is answered before the
        next is asked for. Where the model has a lexicon, all texts are read with it as it is when `pipe` is called.

        Args:
            min_score, labels, types, recall: what is reported, as in a call.
            words: words of the user's own for these texts alone, as in a call.
            consistent: take each text for a document, as in a call.

        Raises:
            TypeError: `texts` is itself a string, or one of them is none.
            ValueError: `batch_size` is below 1, or another option is out of range.
            ModelError, LexiconError: as in a call.
        """
        finder = self.with_words(words)
        request = Request.of(min_score=min_score, labels=labels, types=types, recall=recall)
        return finder.stream(texts, finder.select(request), batch_size=batch_size, consistent=consistent)

    def stream(
        self, texts: Iterable[str], selection: Selection, *, batch_size: int = 16, consistent: bool = False
    ) -> Iterator[list[Entity]]:
        """As `pipe`, for a selection that was made already."""
        if isinstance(texts, str | bytes):
            raise TypeError(f"given one {type(texts).__name__}; expected an iterable of str, such as [text]")
        if batch_size < 1:
            raise ValueError(f"given batch_size={batch_size}; expected 1 or more")
        if not consistent:
            return self._stream(texts, batch_size, selection)
        if selection.overlapping:
            raise ValueError("given consistent and recall; candidates of a recall overlap, so give one of the two")
        return read_consistently(self._as_it_is(), texts, selection, batch_size=batch_size)

    def _as_it_is(self) -> Reader:
        """A finder with the words of now, which no later change reaches.

        Raises:
            ModelError: the model reads no words of a user's own.
        """
        raise ModelError(
            f"given consistent=True; a {type(self).__name__} reads the words of its own vocabulary, and cannot be "
            "given the names of a document"
        )


class Finder(Protocol):
    """Whatever finds entities: an EntityFinder, or an object of a user's own with these two members."""

    @property
    def labels(self) -> list[str]: ...

    def pipe(self, texts: Iterable[str], *, batch_size: int = 16) -> Iterator[list[Entity]]: ...


class LexiconFinder(Finder, Protocol):
    """A finder that reads the words of a lexicon, which its user may change or replace."""

    @property
    def lexicon(self) -> Lexicon: ...

    def with_lexicon(self, lexicon: Lexicon) -> LexiconFinder:
        """A finder with the same weights and another lexicon."""
        ...
