"""NER: text to entities, with offsets into the string that the user passed."""

from __future__ import annotations

import tempfile
import warnings
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cige.entities.entity import Entity
from cige.entities.finder import EntityFinder
from cige.errors import ModelError
from cige.files import kind_of
from cige.hub import model_folder, push_folder
from cige.lattice.lattice import Lattice, build_lattice
from cige.lexicon.lexicon import Lexicon, LexiconSnapshot
from cige.prediction import PredictionModel, ScoredSpan, predict_spans
from cige.text.windows import LINE_BREAKS, Window, split_windows

if TYPE_CHECKING:
    from cige.explain import Explanation

POOL_BATCHES = 16  # batches' worth of windows that `pipe` holds, to read those of like length together


class WordBudgetWarning(UserWarning):
    """A text had more overlapping words than its lattice may hold, so some were left out; characters never are."""


@dataclass(frozen=True)
class LatticeWord:
    """A word over [start, end) of the user's text, spelled as the lexicon has it; `is_user` if the user added it."""

    start: int
    end: int
    text: str
    is_user: bool


@dataclass(frozen=True)
class Analysis:
    """What was found in a text and what it was read from.

    Attributes:
        text: the user's own string.
        entities: sorted, not overlapping.
        words: every word of the lattice, sorted by start and end.
        n_dropped: matched words that the node budget left out; 0 on real text.
    """

    text: str
    entities: list[Entity]
    words: list[LatticeWord]
    n_dropped: int


@dataclass(frozen=True)
class ReadWindow:
    """A window of a text, and the lattice of what is read in it (its trailing line breaks are not)."""

    window: Window
    lattice: Lattice


def load(path_or_hub_id: str | PathLike[str] | None = None, device: str = "cpu") -> NER:
    """Load a model: the bundled one, a folder that training, `save_pretrained` or `cige export` wrote, or a hub id.

    Args:
        device: where PyTorch computes; a model exported for ONNX Runtime runs on the CPU, without PyTorch.

    Raises:
        ModelError: there is none, it is damaged, or it cannot run on that device.
    """
    return NER.from_pretrained(path_or_hub_id, device=device)


class NER(EntityFinder):
    """Finds entities in texts of any length.

    Words of the user's own go into `lexicon` (`ner.lexicon.add("罗氏婴儿配方粉")`) and count from the next call on. A
    call reads one snapshot of the lexicon, so one NER may serve several threads while words come and go.

    Args:
        model: what turns lattices into emissions, be it a LatticeModel (PyTorch) or an OnnxModel.
    """

    def __init__(self, model: PredictionModel):
        self.model: Any = model  # and whatever else its class offers

    @property
    def lexicon(self) -> Lexicon:
        return self.model.lexicon

    @property
    def labels(self) -> list[str]:
        """The types of entity that the model knows."""
        return list(self.model.labels)

    def analyze(self, text: str) -> Analysis:
        """Entities, the words of the lattice they were read from, and how many words the node budget left out."""
        snapshot = self.lexicon.snapshot()
        parts = self.read(text, snapshot)
        found = predict_spans(self.model, [part.lattice for part in parts])
        return Analysis(
            text=text,
            entities=merge_windows(text, zip((part.window for part in parts), found, strict=True)),
            words=[word for part in parts for word in core_words(part, snapshot)],
            n_dropped=sum(part.lattice.n_dropped for part in parts),
        )

    def explain(
        self,
        text: str,
        *,
        n_words: int = 5,
        removals: bool = True,
        word_sets: bool | None = None,
        maps: bool = False,
    ) -> Explanation:
        """Which words each entity was read from and what changes without them; see `cige.explain`.

        Args:
            n_words: list the words that an entity attended to most, up to this many.
            removals: read the text again without each word that overlaps an entity.
            word_sets: list the word sets of each character; None does where the model has them.
            maps: draw attention as maps.

        Raises:
            ModelError: word sets or maps were asked of a model that has none.
        """
        from cige.explain import explain

        return explain(self, text, n_words=n_words, removals=removals, word_sets=word_sets, maps=maps)

    def read(self, text: str, snapshot: LexiconSnapshot) -> list[ReadWindow]:
        """The windows of a text that hold more than whitespace, each with its lattice."""
        windows = _windows(text)
        return [ReadWindow(window, _lattice(text, window, snapshot)) for window in windows]

    @classmethod
    def from_pretrained(
        cls, path_or_hub_id: str | PathLike[str] | None = None, *, device: str = "cpu", **hub_options: Any
    ) -> NER:
        """Load a model folder or a model of the hub; `hub_options` are those of `hub.model_folder`."""
        return cls(_load_model(model_folder(path_or_hub_id, **hub_options), device=device))

    def save_pretrained(self, folder: str | PathLike[str]) -> None:
        """Write the model folder, the user's words included; it appears whole or not at all."""
        self.model.save(Path(folder))

    def push_to_hub(self, repo_id: str, *, private: bool = False, token: str | None = None) -> str:
        """Upload the model to the Hugging Face hub as `repo_id` ("owner/name"); the address of the commit."""
        with tempfile.TemporaryDirectory() as folder:
            self.save_pretrained(Path(folder) / "model")
            return push_folder(
                Path(folder) / "model", repo_id, private=private, token=token, message="Upload a cige model"
            )

    def _stream(self, texts: Iterable[str], batch_size: int) -> Iterator[list[Entity]]:
        return self._stream_with(self.lexicon.snapshot(), texts, batch_size)

    def _stream_with(self, snapshot: LexiconSnapshot, texts: Iterable[str], batch_size: int) -> Iterator[list[Entity]]:
        n_pooled = 1 if batch_size == 1 else batch_size * POOL_BATCHES
        waiting: deque[_PendingText] = deque()
        pool: list[tuple[_PendingText, Window]] = []
        for number, text in enumerate(texts, 1):
            if not isinstance(text, str):
                raise TypeError(f"text {number} is {type(text).__name__}; expected str{_hint(text)}")
            windows = _windows(text)
            pending = _PendingText(text, len(windows))
            waiting.append(pending)
            pool += [(pending, window) for window in windows]
            while len(pool) >= n_pooled:
                self._answer(pool[:n_pooled], snapshot, batch_size)
                del pool[:n_pooled]
            while waiting and not waiting[0].n_unread:
                yield waiting.popleft().entities()
        self._answer(pool, snapshot, batch_size)
        yield from (pending.entities() for pending in waiting)

    def _answer(self, pool: list[tuple[_PendingText, Window]], snapshot: LexiconSnapshot, batch_size: int) -> None:
        lattices = [_lattice(pending.text, window, snapshot) for pending, window in pool]
        found = predict_spans(self.model, lattices, batch_size=batch_size)
        for (pending, window), lattice, spans in zip(pool, lattices, found, strict=True):
            pending.found.append((window, spans))
            pending.n_dropped += lattice.n_dropped
            pending.n_unread -= 1


@dataclass
class _PendingText:
    """A text of `pipe` some of whose windows are still to be read."""

    text: str
    n_unread: int
    found: list[tuple[Window, list[ScoredSpan]]] = field(default_factory=list)
    n_dropped: int = 0

    def entities(self) -> list[Entity]:
        if self.n_dropped:
            warnings.warn(
                f"{self.n_dropped:,} of the words over {self.text[:20]!r}... were left out: more overlap there than a "
                "lattice may hold (ner.analyze tells them apart)",
                WordBudgetWarning,
                stacklevel=3,
            )
        return merge_windows(self.text, self.found)


def merge_windows(text: str, found: Iterable[tuple[Window, Sequence[ScoredSpan]]]) -> list[Entity]:
    """Entities of a whole text from the spans found in each window, sorted.

    A window answers for the entities that start in its core. Where one reaches into the next core and overlaps an
    entity found there, the more probable one stays.
    """
    entities = [
        Entity(start, end, span.label, text[start:end], span.score)
        for window, spans in found
        for span in spans
        for start, end in [(window.start + span.start, window.start + span.end)]
        if window.core_start <= start < window.core_end
    ]
    kept: list[Entity] = []  # sorted by start, and so by end
    for entity in sorted(entities, key=lambda e: (-e.score, e.start)):
        place = bisect_left(kept, entity.start, key=lambda e: e.start)
        overlaps_left = place > 0 and kept[place - 1].end > entity.start
        overlaps_right = place < len(kept) and kept[place].start < entity.end
        if not (overlaps_left or overlaps_right):
            kept.insert(place, entity)
    return kept


def core_words(part: ReadWindow, snapshot: LexiconSnapshot) -> list[LatticeWord]:
    """The words of a window's lattice that start in its core, with offsets into the whole text."""
    window, words = part.window, part.lattice.words
    return [
        LatticeWord(window.start + start, window.start + end, snapshot.word(word), word >= part.lattice.n_base)
        for start, end, word in words.tolist()
        if window.core_start <= window.start + start < window.core_end
    ]


def _windows(text: str) -> list[Window]:
    """The windows worth reading: those whose core is not whitespace alone."""
    return [w for w in split_windows(text) if not text[w.core_start : w.core_end].isspace()]


def _lattice(text: str, window: Window, snapshot: LexiconSnapshot) -> Lattice:
    return build_lattice(text[window.start : window.end].rstrip(LINE_BREAKS), snapshot)


def _hint(value: object) -> str:
    return ", so decode it first: text.decode('utf-8')" if isinstance(value, bytes) else ""


def _load_model(folder: Path, *, device: str) -> PredictionModel:
    """The model of a folder: a LatticeModel, or without importing PyTorch an OnnxModel.

    Raises:
        ModelError: it is damaged, or an exported model was to run elsewhere than on the CPU.
    """
    from cige.serving.onnx_folder import KIND as ONNX

    if kind_of(folder) == ONNX:
        from cige.serving.onnx_model import OnnxModel

        if device != "cpu":
            raise ModelError(f"{folder}: a model exported for ONNX Runtime runs on the cpu, not on {device}")
        return OnnxModel.load(folder)

    from cige.models.model import LatticeModel

    model = LatticeModel.load(folder)
    model.tagger.to(device)
    return model
