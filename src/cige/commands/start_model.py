"""The model that training starts from: which labels of the data it does not know, and its F1 before training."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from cige.commands.label_proposals import labels_option, propose
from cige.commands.options import tell

if TYPE_CHECKING:
    from cige.data.sentence import Sentence
    from cige.tagging.finder import EntityFinder
    from cige.training.recipe import Recipe

MAPPED = ".labelled"  # hidden, since a run refuses a folder that has other files


def mapped_file(sentences: Iterable[Sentence], labels: Mapping[str, str], output: str, name: str) -> str:
    """Write sentences with mapped labels ("" leaves entities out) into the folder of the run; returns the path."""
    from cige.data.reading import write_sentences

    path = Path(output).absolute() / MAPPED / f"{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_sentences(path, [relabelled(sentence, labels) for sentence in sentences])
    return str(path)


def relabelled(sentence: Sentence, labels: Mapping[str, str]) -> Sentence:
    """The sentence with mapped labels; entities whose label is mapped to "" are left out."""
    from cige.data.sentence import Sentence

    spans = (replace(span, label=labels.get(span.label, span.label)) for span in sentence.spans)
    return Sentence(sentence.text, tuple(span for span in spans if span.label))


class StartModel:
    """The model that training starts from, compared with the data to train on.

    Args:
        train, dev: labelled sentences to train on, and those for choosing the epoch.
        labels: the label map of the command line.
    """

    def __init__(self, recipe: Recipe, train: Sequence[Sentence], dev: Sequence[Sentence], labels: Mapping[str, str]):
        from cige.api import load
        from cige.training.recipe import start_folder

        assert recipe.start_from is not None
        self.name = "the bundled model" if recipe.start_from == "bundled" else recipe.start_from
        self._finder: EntityFinder = load(start_folder(recipe.start_from))
        self._dev, self._labels = dev, labels
        self._finds_the_same = recipe.head == "crf" or self._finder.label_facts.nested
        data_labels = {span.label for sentence in (*train, *dev) for span in sentence.spans}
        self._unknown = sorted(data_labels - set(self._finder.labels))
        self._proposals = propose(self._unknown, self._finder.labels)

    @property
    def option(self) -> str:
        """The option --labels with which the data has the labels of this model, as far as names tell."""
        given = {label: self._proposals.get(name, name) for label, name in self._labels.items()}
        renamed = set(self._labels.values())  # these labels are names that the option gave, and are not in the files
        return labels_option(given | {label: name for label, name in self._proposals.items() if label not in renamed})

    def note_labels(self) -> None:
        """Say on standard error which labels the model knows under other names."""
        if self._proposals:
            tell(
                f"the data have labels that {self.name} does not know: {', '.join(self._unknown)}. What "
                "it knows of them is lost under other names; to keep it, train into a new folder with\n"
                f"  {self.option}",
            )

    def dev_f1(self) -> float | None:
        """The F1 of this model on the development sentences, without training, 0..1.

        Labels are renamed as proposed; entities of labels that it does not know count as missed. None if it knows none
        of the labels, if some of the text is left open, or if it cannot find nested entities and the new model can.
        """
        from cige.data.sentence import EITHER, OPEN
        from cige.entities.scores import score

        dev = [relabelled(sentence, self._proposals) for sentence in self._dev]
        labels = {span.label for sentence in dev for span in sentence.spans}
        known = sorted(labels.intersection(self._finder.labels))
        if not known or not self._finds_the_same or any(label == OPEN or EITHER in label for label in labels):
            return None
        texts = [sentence.text for sentence in dev]
        predicted = list(self._finder.pipe(texts, labels=known))
        return score([sentence.spans for sentence in dev], predicted, texts=texts).f1

    def note_loss(self, before: float, after: float) -> None:
        """Say on standard error if the development F1 was higher before training."""
        if before <= after:
            return
        advice = (
            f"renaming labels keeps what the model knows: train into a new folder with {self.option}"
            if self._proposals
            else "use that model as it is, or train on more sentences"
        )
        tell(
            f"{self.name} has dev F1 {100 * before:.2f} without training, more than {100 * after:.2f} after it; "
            f"{advice}",
        )
