"""NER: text to entities, with offsets into the string that the user passed."""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cige.entities.entity import Entity
from cige.entities.label_facts import LabelFacts
from cige.errors import ModelError
from cige.folders.hub import model_folder, push_folder
from cige.folders.kinds import KINDS, TAGGER
from cige.folders.manifest import kind_of, read_manifest
from cige.lexicon.lexicon import Lexicon, LexiconSnapshot
from cige.lexicon.rules import Rules
from cige.lexicon.user_word import UserWords, user_words_of
from cige.tagging.finder import EntityFinder
from cige.tagging.merging import merge_windows
from cige.tagging.prediction import PredictionModel, ScoredSpan, predict_spans
from cige.tagging.selection import Request, Selection
from cige.tagging.windows import LatticeWord, core_words, lattice_of, read_windows, windows_of
from cige.text.closed import Stretch, closed_stretches
from cige.text.counted import counted
from cige.text.windows import Window

if TYPE_CHECKING:
    from cige.explain.explanation import Explanation

BACKENDS = ("auto", "native", "torch")
POOL_BATCHES = 16  # batches' worth of windows that `pipe` holds, to read those of like length together


class WordBudgetWarning(UserWarning):
    """A text had more overlapping words than its lattice may hold, so some were left out; characters never are."""


@dataclass(frozen=True)
class Analysis:
    """What was found in a text and what it was read from.

    Attributes:
        text: the user's own string.
        entities: sorted, not overlapping.
        words: every word of the lattice, sorted by start and end.
        n_dropped: matched words that the node budget left out, those of punctuation alone not counted; 0 on real text.
    """

    text: str
    entities: list[Entity]
    words: list[LatticeWord]
    n_dropped: int

    def _repr_html_(self) -> str:
        """What a notebook shows: the text with its entities marked."""
        from cige.drawing.highlight import notebook_page
        from cige.drawing.lattice import Mark

        note = f"{counted(len(self.entities), 'entity', 'entities')}, read with {counted(len(self.words), 'word')}"
        return notebook_page(self.text, [Mark(e.start, e.end, e.label) for e in self.entities], note=note)


def load(
    path_or_hub_id: str | PathLike[str] | None = None,
    device: str = "cpu",
    *,
    backend: str = "auto",
    precision: str = "auto",
    domain: str | None = None,
    **hub_options: Any,
) -> EntityFinder:
    """Load any model that finds entities.

    Args:
        path_or_hub_id: None or "bundled" for the bundled model; a model folder, whatever wrote it (`cige train`,
            `cige finetune`, `cige export`, `save_pretrained`); the folder of a finished run; or a hub id
            ("owner/name").
        device: "cpu", or where PyTorch computes, such as "cuda:1". A model exported for ONNX Runtime runs on the CPU.
        backend: what computes a model that `cige train` wrote. "auto" takes cige's own runtime on the CPU for the
            models that it reads (FLAT and SoftLexicon without BERT features), and PyTorch otherwise; "native" and
            "torch" insist on one of them. In float32 the results are equal to about 1e-5; `ner.model` is a NativeModel
            or a LatticeModel.
        precision: what cige's own runtime computes a FLAT in: "float32", "bfloat16", "int8", or "auto" for the fastest
            that this processor has. None of them lost more than 0.05 F1 on development data (docs/speed.md), but scores
            differ in the second or third digit, and the entities of some texts with them (in 4 to 8 of 1,000 lines of
            raw text); "float32" gives the same ones on every machine, to about 1e-5.
            `ner.model.precision` is what was chosen. All else computes in float32.
        domain: the kind of text that is read, such as "posts", for scores that were calibrated on it; the model card
            names those of the bundled model, and `cige calibrate --domain` makes others. The entities are the same.
        hub_options: `revision`, `token`, `cache_dir` and `local_files_only`, as huggingface_hub takes them.

    Returns:
        An NER; for a Lattice-BERT that was fine-tuned to find entities, a TunedNER, which is called in the same way
        and has no lexicon.

    Raises:
        ModelError: there is no such model, it is damaged, it finds no entities, it cannot run on that device, or what
            it needs is not installed.
    """
    folder = model_folder(path_or_hub_id, **hub_options)
    kind = KINDS.get(kind_of(folder) or "")
    if kind is None or kind.finder is None:
        read_manifest(folder, kind=TAGGER, version=0, error=ModelError)  # says what the folder holds
        raise ModelError(f"{folder}: not a model that finds entities")
    options = {name: x for name, x in (("backend", backend), ("precision", precision)) if x != "auto"}
    if options and kind is not KINDS[TAGGER]:
        given = ", ".join(f"{name}={x!r}" for name, x in options.items())
        raise ModelError(f"{folder}: {given} was given; only a model that `cige train` wrote has a choice")
    try:
        finder: EntityFinder = kind.open_finder(folder, device=device, **options)
    except ModuleNotFoundError as missing:
        if missing.name not in ("torch", "transformers"):
            raise
        extra = "train" if missing.name == "torch" else "bert"
        on_device = f" on {device}" if device != "cpu" else ""
        raise ModelError(
            f'{folder}: reading this model{on_device} needs {missing.name}; pip install "cige[{extra}]"'
        ) from missing
    if domain is None:
        return finder
    if not isinstance(finder, NER):
        raise ModelError(f"{folder}: domain={domain!r} was given; only a model that `cige train` wrote has domains")
    return finder.for_domain(domain)


def open_tagger(folder: Path, *, device: str = "cpu", backend: str = "auto", precision: str = "auto") -> NER:
    """The NER of a folder that a LatticeModel wrote; imports PyTorch only where that computes (see `load`)."""
    from cige.runtime.native_model import NativeModel
    from cige.runtime.precision import FLOAT32, chosen
    from cige.runtime.tagger_folder import is_readable

    if backend not in BACKENDS:
        raise ModelError(f"backend {backend!r}: expected one of {', '.join(BACKENDS)}")
    if backend == "native" and device != "cpu":
        raise ModelError(f"device {device!r}: cige's own runtime computes on the CPU; use backend='torch'")
    if backend == "native" or (backend == "auto" and device == "cpu" and is_readable(folder)):
        return NER(NativeModel.load(folder, precision=precision))
    from cige.models.model import LatticeModel
    from cige.nn.device import prediction_device

    chosen(precision, [FLOAT32], of="PyTorch, which computes this model,")
    where = prediction_device(device)
    model = LatticeModel.load(folder)
    model.tagger.to(where)
    return NER(model)


def open_onnx(folder: Path, *, device: str = "cpu") -> NER:
    """The NER of a folder that `cige export onnx` wrote; imports ONNX Runtime and no PyTorch."""
    from cige.runtime.onnx_model import OnnxModel

    if device != "cpu":
        raise ModelError(f"{folder}: a model exported for ONNX Runtime runs on the CPU; given device {device!r}")
    return NER(OnnxModel.load(folder))


class NER(EntityFinder):
    """Finds entities in texts of any length.

    Words of the user's own go into `lexicon` (`ner.lexicon.add("罗氏婴儿配方粉")`) and count from the next call on. A
    call reads one snapshot of the lexicon, so one NER may serve several threads while words come and go.

    Args:
        model: what turns lattices into emissions: a NativeModel, a LatticeModel (PyTorch) or an OnnxModel.
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

    @property
    def label_facts(self) -> LabelFacts:
        return self.model.label_facts

    @property
    def word_labels(self) -> list[str]:
        return sorted({entry.label for entry in self.lexicon.user_entries if entry.label is not None})

    @property
    def read_word_labels(self) -> tuple[str, ...]:
        """The labels of users' words that the model was trained to read; empty if it reads none."""
        vocabulary = getattr(self.model, "vocabulary", None)
        return () if vocabulary is None else tuple(vocabulary.word_labels)

    def _about(self) -> str:
        form = ", ".join(filter(None, (type(self.model).__name__, getattr(self.model, "precision", None))))
        kind = f"{getattr(self.model, 'architecture', '')} ({form})".strip()
        n_own = len(self.lexicon.user_entries)
        return f"{kind}; {counted(len(self.lexicon), 'word')}" + (f" and {n_own:,} of your own" if n_own else "")

    def analyze(self, text: str, *, words: UserWords = ()) -> Analysis:
        """Entities, the words of the lattice they were read from, and how many words the node budget left out.

        Args:
            words: words of the user's own for this call alone, as in a call.
        """
        snapshot = self.with_words(words).lexicon.snapshot()
        parts = read_windows(text, snapshot)
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
        request: Request | None = None,
        words: UserWords = (),
        on_progress: Callable[[int, int], None] | None = None,
    ) -> Explanation:
        """Which words each entity was read from and what changes without them; see `cige.explain.explanation`.

        Args:
            n_words: list the words that an entity attended to most, up to this many.
            removals: read the text again without each word that overlaps an entity.
            word_sets: list the word sets of each character; None does where the model has them.
            maps: draw attention as maps.
            request: which entities are reported, as `Request.of(min_score=0.5)` and the like say.
            words: words of the user's own for this call alone, as in a call.
            on_progress: called with (characters done, characters of the text) while a long text is read again.

        Raises:
            ModelError: word sets or maps were asked of a model that has none.
            LexiconError: naming the words that cannot be used.
        """
        from cige.explain.reading import explain

        return explain(
            self.with_words(words).model,
            text,
            n_words=n_words,
            removals=removals,
            word_sets=word_sets,
            maps=maps,
            request=request,
            on_progress=on_progress,
        )

    def with_lexicon(self, lexicon: Lexicon) -> NER:
        """An NER with the same weights and another lexicon; both may be used side by side."""
        return NER(replace(self.model, lexicon=lexicon))

    def for_domain(self, domain: str) -> NER:
        """An NER with the same weights and lexicon whose scores are calibrated on text of this domain.

        Raises:
            ModelError: the model was not calibrated for such a domain.
        """
        try:
            return NER(replace(self.model, label_facts=self.label_facts.for_domain(domain)))
        except ValueError as reason:
            raise ModelError(str(reason)) from None

    def with_words(self, words: UserWords) -> NER:
        """An NER that reads these words besides those of the lexicon of now, at the cost of these words alone.

        The lexicon itself stays as it is; words that are added to it later do not count for the NER given.

        Raises:
            LexiconError: naming the words that cannot be used.
        """
        listed = user_words_of(words)
        return self.with_lexicon(self.lexicon.with_words(listed)) if listed else self

    def _as_it_is(self) -> NER:
        return self.with_lexicon(self.lexicon.with_words(()))

    @classmethod
    def from_pretrained(
        cls,
        path_or_hub_id: str | PathLike[str] | None = None,
        *,
        device: str = "cpu",
        backend: str = "auto",
        precision: str = "auto",
        **hub_options: Any,
    ) -> NER:
        """As `cige.load`, for the kinds of model that read a lexicon.

        Raises:
            ModelError: what `load` raises; or the model has no lexicon.
        """
        found = load(path_or_hub_id, device, backend=backend, precision=precision, **hub_options)
        if not isinstance(found, cls):
            raise ModelError(
                f"{path_or_hub_id}: opens as a {type(found).__name__}, which has no lexicon; use cige.load"
            )
        return found

    def save_pretrained(self, folder: str | PathLike[str]) -> None:
        """Write the model folder, the user's words included; it appears whole or not at all."""
        self.model.save(Path(folder))

    def push_to_hub(self, repo_id: str, *, private: bool = False, token: str | None = None) -> str:
        """Upload the model to the Hugging Face hub as `repo_id` ("owner/name"); the address of the commit."""
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            self.save_pretrained(Path(folder) / "model")
            return push_folder(
                Path(folder) / "model", repo_id, private=private, token=token, message="Upload a cige model"
            )

    def _stream(self, texts: Iterable[str], batch_size: int, selection: Selection) -> Iterator[list[Entity]]:
        return self._stream_with(self.lexicon.snapshot(), texts, batch_size, selection)

    def _stream_with(
        self, snapshot: LexiconSnapshot, texts: Iterable[str], batch_size: int, selection: Selection
    ) -> Iterator[list[Entity]]:
        n_pooled = 1 if batch_size == 1 else batch_size * POOL_BATCHES
        waiting: deque[_PendingText] = deque()
        pool: list[tuple[_PendingText, Window]] = []
        for number, text in enumerate(texts, 1):
            if not isinstance(text, str):
                raise TypeError(f"text {number} is {type(text).__name__}; expected str{_hint(text)}")
            windows = windows_of(text)
            pending = _PendingText(text, closed_stretches(text), snapshot.rules(text), len(windows))
            waiting.append(pending)
            pool += [(pending, window) for window in windows]
            while len(pool) >= n_pooled:
                self._answer(pool[:n_pooled], snapshot, batch_size, selection)
                del pool[:n_pooled]
            while waiting and not waiting[0].n_unread:
                yield waiting.popleft().entities(overlapping=selection.overlapping)
        self._answer(pool, snapshot, batch_size, selection)
        yield from (pending.entities(overlapping=selection.overlapping) for pending in waiting)

    def _answer(
        self,
        pool: list[tuple[_PendingText, Window]],
        snapshot: LexiconSnapshot,
        batch_size: int,
        selection: Selection,
    ) -> None:
        lattices = [
            lattice_of(pending.text, window, snapshot, pending.closed, pending.rules) for pending, window in pool
        ]
        found = predict_spans(self.model, lattices, selection, batch_size=batch_size)
        for (pending, window), lattice, spans in zip(pool, lattices, found, strict=True):
            pending.found.append((window, spans))
            pending.n_dropped += lattice.n_dropped
            pending.n_unread -= 1


@dataclass
class _PendingText:
    """A text of `pipe` some of whose windows are still to be read."""

    text: str
    closed: list[Stretch]
    rules: Rules
    n_unread: int
    found: list[tuple[Window, list[ScoredSpan]]] = field(default_factory=list)
    n_dropped: int = 0

    def entities(self, *, overlapping: bool) -> list[Entity]:
        if self.n_dropped:
            warnings.warn(
                f"{self.n_dropped:,} of the words that match in {self.text[:20]!r}... were left out, because a lattice "
                "has room for fewer overlapping words; ner.analyze(text).words lists those that were read",
                WordBudgetWarning,
                stacklevel=3,
            )
        return merge_windows(self.text, self.found, overlapping=overlapping)


def _hint(value: object) -> str:
    return ", so decode it first: text.decode('utf-8')" if isinstance(value, bytes) else ""
