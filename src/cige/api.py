"""NER: text to entities, with offsets into the string that the user passed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, Literal, overload

import cige.explain
from cige.entities.entity import Entity
from cige.entities.label_facts import LabelFacts
from cige.errors import ModelError
from cige.explain.model import LoadedModel
from cige.folders.hub import model_folder, push_folder
from cige.folders.kinds import GRID_TAGGER, ONNX, TAGGER, find_kind
from cige.folders.manifest import kind_of, read_manifest
from cige.lexicon.lexicon import Lexicon
from cige.lexicon.names_list import Names
from cige.lexicon.user_word import UserWords, user_words_of
from cige.runtime.opening import open_onnx, open_tagger
from cige.tagging.finder import EntityFinder
from cige.tagging.merging import merge_windows
from cige.tagging.prediction import predict_spans
from cige.tagging.selection import Request, Selection, warn_of_other_case
from cige.tagging.streaming import Stream, WordBudgetWarning  # noqa: F401  # caught by users
from cige.tagging.windows import LatticeWord, core_words, read_windows
from cige.text.counted import counted
from cige.text.given import check_text, whole_number


@dataclass(frozen=True)
class Analysis:
    """The entities of a text, and the lattice words from which they were predicted.

    Attributes:
        text: the string that the user passed.
        entities: sorted; not overlapping, unless the model finds nested entities.
        words: every word of the lattice, sorted by start and end.
        n_dropped: number of matched words that exceed the maximum number of nodes, without words of punctuation only; 0
            for real text.
    """

    text: str
    entities: list[Entity]
    words: list[LatticeWord]
    n_dropped: int

    def _repr_html_(self) -> str:
        """The HTML that a notebook displays: the text with its entities marked."""
        from cige.drawing.highlight import notebook_page
        from cige.drawing.lattice import Mark

        note = f"{counted(len(self.entities), 'entity', 'entities')}, read with {counted(len(self.words), 'word')}"
        return notebook_page(self.text, [Mark(e.start, e.end, e.label) for e in self.entities], note=note)


# fmt: off
@overload
def load(path_or_hub_id: Literal["bundled", "research"] | None = None, device: str = "cpu", *, backend: str = "auto",
         precision: str = "auto", domain: str | None = None, names: Names | None = None, n_threads: int | None = None,
         **hub_options: Any) -> NER: ...
@overload
def load(path_or_hub_id: str | PathLike[str] | None = None, device: str = "cpu", *, backend: str = "auto",
         precision: str = "auto", domain: str | None = None, names: Names | None = None, n_threads: int | None = None,
         **hub_options: Any) -> EntityFinder: ...
# fmt: on
def load(
    path_or_hub_id: str | PathLike[str] | None = None,
    device: str = "cpu",
    *,
    backend: str = "auto",
    precision: str = "auto",
    domain: str | None = None,
    names: Names | None = None,
    n_threads: int | None = None,
    **hub_options: Any,
) -> EntityFinder:
    """Load a model that finds entities.

    Args:
        path_or_hub_id: None or "bundled" for the bundled model, "research" for the other one of the package; a model
            folder or the folder of a finished run; or a hub id ("owner/name").
        device: "cpu", or a PyTorch device such as "cuda:1". Models exported for ONNX Runtime run only on the CPU.
        backend: the runtime for a model that `cige train` wrote. "auto" uses cige's own runtime on the CPU for the
            models that it supports (FLAT and SoftLexicon without BERT features), and PyTorch otherwise; "native" and
            "torch" force one of the two. In float32, their results are equal to about 1e-5. `ner.model` is a
            NativeModel or a LatticeModel.
        precision: the number format in which cige's own runtime computes a FLAT: "float32", "bfloat16", "int8",
            "int16", or "auto" for the fastest one that the processor supports. None of them lost more than 0.05 F1 on
            development data (docs/speed.md), but scores differ in the second or third digit, and with them the entities
            of some texts (up to 8 of 1,000 lines of raw text). "float32" gives the same results everywhere, to about
            1e-5. `ner.model.precision` is the chosen format. All other models are computed in float32.
        domain: the kind of text, such as "posts", whose score calibration is used (those of the bundled model stand on
            its card, `cige calibrate --domain` adds others). The entities themselves do not change.
        names: a list of names with kinds (a file as `cige names build` writes it, or a NamesList) instead of the one in
            the model, which learned what each kind is worth; for models with such a list only.
        n_threads: the number of threads for prediction with cige's own runtime (default: OMP_NUM_THREADS, or one per
            processor). Many texts are shared among them, and the result does not depend on their number.
        hub_options: `revision`, `token`, `cache_dir` and `local_files_only`, as in huggingface_hub.

    Returns:
        An NER, or for a Lattice-BERT that was fine-tuned to find entities a TunedNER, which has no lexicon.

    Raises:
        ValueError: `n_threads` is not a whole number, 1 or more.
        ModelError: there is no such model, it is damaged, it does not find entities, it cannot run on that device, or a
            package that it needs is not installed.
    """
    folder = model_folder(path_or_hub_id, **hub_options)
    kind = kind_of(folder)
    open_finder = _finder_of(kind)
    if open_finder is None:
        read_manifest(folder, kind=TAGGER, version=0, error=ModelError)  # raises the error
        raise ModelError(f"{folder}: not a model that finds entities")
    options: dict[str, Any] = {name: x for name, x in (("backend", backend), ("precision", precision)) if x != "auto"}
    if names is not None:
        options["names"] = names
    if n_threads is not None:
        options["n_threads"] = whole_number("n_threads", n_threads, least=1)
    if names is not None and kind == ONNX:
        raise ModelError(
            f"{folder}: names={names!r} was given; a model exported for ONNX Runtime keeps the names that it was "
            "exported with; give the list to the folder from which it was exported"
        )
    if options and kind not in (TAGGER, GRID_TAGGER):
        given = ", ".join(f"{name}={x!r}" for name, x in options.items())
        raise ModelError(f"{folder}: {given} was given; only a model that `cige train` wrote has a choice")
    try:
        finder: EntityFinder = open_finder(folder, device=device, **options)
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


def load_as(path_or_hub_id: str | PathLike[str] | None, chosen: Any) -> EntityFinder:
    """`load` with the device, precision, domain and names of an object that has them, such as settings of a server."""
    return load(path_or_hub_id, chosen.device, precision=chosen.precision, domain=chosen.domain, names=chosen.names)


def _finder_of(kind: str | None) -> Callable[..., EntityFinder] | None:
    """The function that opens folders of a kind, called with (folder, device=); None if they find no entities."""
    if kind in (TAGGER, GRID_TAGGER):
        return lambda folder, **options: NER(open_tagger(folder, kind=kind, **options))
    if kind == ONNX:
        return lambda folder, **options: NER(open_onnx(folder, **options))
    known = find_kind(kind)
    return None if known is None else known.open_finder


class NER(EntityFinder):
    """Finds entities in texts of any length.

    Users add their own words to `lexicon` (`ner.lexicon.add("罗氏婴儿配方粉")`); they take effect from the next call.
    Each call uses one snapshot of the lexicon, so several threads may share an NER while words are added and removed.

    Args:
        model: the model that computes emissions from lattices: a NativeModel, a LatticeModel (PyTorch) or an OnnxModel.
    """

    def __init__(self, model: LoadedModel):
        self.model = model

    @property
    def lexicon(self) -> Lexicon:
        """The words of the model, and those that the user adds with `ner.lexicon.add(...)`."""
        return self.model.lexicon

    @property
    def labels(self) -> list[str]:
        """The entity types that the model knows."""
        return list(self.model.labels)

    @property
    def label_facts(self) -> LabelFacts:
        """What the model folder says about labels: parents, maximum lengths, calibration."""
        return self.model.label_facts

    @property
    def word_labels(self) -> frozenset[str]:
        """The labels that the user's words have now."""
        return self.lexicon.user_label_names

    @property
    def read_word_labels(self) -> tuple[str, ...]:
        """The labels of user words that the model was trained with; empty if it ignores such labels."""
        return tuple(self.model.vocabulary.word_labels)

    def _about(self) -> str:
        form = ", ".join(filter(None, (type(self.model).__name__, self.model.precision)))
        kind = f"{self.model.architecture} ({form})"
        n_own = len(self.lexicon.user_entries)
        return f"{kind}; {counted(len(self.lexicon), 'word')}" + (f" and {n_own:,} of your own" if n_own else "")

    def analyze(self, text: str, *, words: UserWords = ()) -> Analysis:
        """The entities, the lattice words from which they were predicted, and the number of words left out.

        Args:
            words: additional user words for this call only, as in `__call__`.

        Raises:
            TypeError: `text` is not a str.
            LexiconError: some words cannot be used; the message lists them.
        """
        check_text(text)
        snapshot = self._with_words_of_call(words).lexicon.snapshot()
        warn_of_other_case(snapshot.label_names, self.labels)
        parts = read_windows(text, snapshot, self.label_facts)
        spans = predict_spans(self.model, [part.lattice for part in parts])
        return Analysis(
            text=text,
            entities=merge_windows(
                text, zip((part.window for part in parts), spans, strict=True), overlapping=self.label_facts.nested
            ),
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
    ) -> cige.explain.Explanation:
        """Which words each entity depends on and what changes without them; see `cige.explain.explanation`.

        Args:
            n_words: the maximum number of words listed per entity, those with the most attention first.
            removals: whether to predict again without each word that overlaps an entity.
            word_sets: whether to list the word sets of each character; None lists them if the model has them.
            maps: whether to include attention maps.
            request: which entities are reported, such as `Request.of(min_score=0.5)` (from `cige.tagging.selection`).
            words: additional user words for this call only, as in `__call__`.
            on_progress: called with (characters done, characters of the text) during predictions without words.

        Raises:
            TypeError: `text` is not a str, or `request` is no Request.
            ValueError: `n_words` is not a whole number, 0 or more.
            ModelError: word sets or maps were requested, and the model has none.
            LexiconError: some words cannot be used; the message lists them.
        """
        from cige.explain.reading import explain

        check_text(text)
        n_words = whole_number("n_words", n_words, least=0)
        if request is not None and not isinstance(request, Request):
            raise TypeError(f"given request={request!r}; expected a Request, such as Request.of(min_score=0.5)")
        return explain(
            self._with_words_of_call(words).model,
            text,
            n_words=n_words,
            removals=removals,
            word_sets=word_sets,
            maps=maps,
            request=request,
            on_progress=on_progress,
        )

    def with_lexicon(self, lexicon: Lexicon) -> NER:
        """An NER with the same weights and another lexicon; both can be used at the same time."""
        return NER(replace(self.model, lexicon=lexicon))

    def for_domain(self, domain: str) -> NER:
        """An NER with the same weights and lexicon whose scores are calibrated for this domain.

        Raises:
            ModelError: the model has no calibration for this domain.
        """
        try:
            return NER(replace(self.model, label_facts=self.label_facts.for_domain(domain)))
        except ValueError as reason:
            raise ModelError(str(reason)) from None

    def with_words(self, words: UserWords) -> NER:
        """An NER with these words in addition to those of the current lexicon; the cost depends only on these words.

        The lexicon itself does not change, and words added to it later have no effect on the returned NER.

        Raises:
            LexiconError: some words cannot be used; the message lists them.
        """
        return self.with_lexicon(self.lexicon.with_words(user_words_of(words)))

    def _with_words_of_call(self, words: UserWords) -> NER:
        listed = user_words_of(words)
        return self.with_words(listed) if listed else self

    def _frozen(self) -> NER:
        return self.with_words(())

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
        """Like `cige.load`, for models with a lexicon.

        Raises:
            ModelError: the errors of `load`; or the model has no lexicon.
        """
        finder = load(path_or_hub_id, device, backend=backend, precision=precision, **hub_options)
        if not isinstance(finder, cls):
            raise ModelError(
                f"{path_or_hub_id}: opens as a {type(finder).__name__}, which has no lexicon; use cige.load"
            )
        return finder

    def save_pretrained(self, folder: str | PathLike[str]) -> None:
        """Write the model folder, including the user's words; it is written completely or not at all."""
        self.model.save(Path(folder))

    def push_to_hub(self, repo_id: str, *, private: bool = False, token: str | None = None) -> str:
        """Upload the model to the Hugging Face hub as `repo_id` ("owner/name"); returns the URL of the commit."""
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            self.save_pretrained(Path(folder) / "model")
            return push_folder(
                Path(folder) / "model", repo_id, private=private, token=token, message="Upload a cige model"
            )

    def _stream(self, texts: Iterable[str], batch_size: int, selection: Selection) -> Iterator[list[Entity]]:
        snapshot = self.lexicon.snapshot()  # of the moment of the call, not of the first text
        stream = Stream(self.model, snapshot, selection, batch_size, is_compiled=self.model.is_compiled)
        if not self.model.is_compiled:
            return stream.entities(texts)
        from cige.runtime.native import n_threads, use_threads

        return stream.entities(texts, n_threads(self.model.n_threads), partial(use_threads, 1))
