"""LabelFacts: facts about the labels of a model and about how it reads a text, which its folder contains."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from cige.data.sentence import Sentence
from cige.entities.calibration import Calibration


@dataclass(frozen=True)
class LabelFacts:
    """Facts about the labels of a model, and about how it reads a text; all have defaults.

    Attributes:
        parents: the parent of each label that has one, such as "COMPANY" -> "ORG"; ancestors need not be labels of the
            model.
        silent: labels that are reported only if the user requests them; otherwise, they are reported as their nearest
            ancestor that is reported.
        coarse_labels: the labels that types="coarse" reports; if empty, these are the topmost ancestors of all labels.
        max_lengths: label -> the maximum length of entities in characters; other labels have no maximum.
        calibration: the calibration of scores for "fine" and for "coarse" labels.
        domains: the same for text of one domain, such as "posts", by the domain's name.
        set_apart: in rows of tables, cells of at most this many characters are read between two semicolons, as items
            of a list; see `cige.tagging.windows`.
        wide_commas: whether half-width commas next to Chinese characters are read as full-width ones.
        nested: whether the model finds entities within entities.
    """

    parents: Mapping[str, str] = field(default_factory=dict)
    silent: frozenset[str] = frozenset()
    max_lengths: Mapping[str, int] = field(default_factory=dict)
    calibration: Mapping[str, Calibration] = field(default_factory=dict)
    coarse_labels: frozenset[str] = frozenset()
    domains: Mapping[str, Mapping[str, Calibration]] = field(default_factory=dict)
    set_apart: int = 0
    wide_commas: bool = False
    nested: bool = False

    def for_domain(self, name: str) -> LabelFacts:
        """The same facts with the calibration of a domain instead of the general one, as far as the domain has one.
        Raises a ValueError if there is no such domain, as in every model of nested entities, which cannot be calibrated
        yet."""
        if name not in self.domains:
            if self.nested:
                raise ValueError(
                    f"no domain {name!r}; models of nested entities cannot be calibrated yet, so leave domain out"
                )
            known = ", ".join(sorted(self.domains)) or "none: `cige calibrate --domain` makes one"
            raise ValueError(f"no domain {name!r}; the model is calibrated for {known}")
        return replace(self, calibration={**self.calibration, **self.domains[name]})

    def fine(self, label: str, labels: Collection[str], *, named: Collection[str] = ()) -> str | None:
        """The label among `labels` that types="fine" reports for entities of `label`, or None if it reports none."""
        for above in self._line(label):
            if above in labels and (above not in self.silent or (above == label and above in named)):
                return above
        return None

    def coarse(self, label: str, labels: Collection[str], *, named: Collection[str] = ()) -> str | None:
        """The label that types="coarse" reports: the topmost ancestor of `label`."""
        if label in self.silent and label in named:
            return label
        reported = [above for above in self._line(label) if above in labels and above not in self.silent]
        if self.coarse_labels:
            reported = [above for above in reported if above in self.coarse_labels or above in named]
        return reported[-1] if reported else None

    def _line(self, label: str) -> list[str]:
        """A label, its parent, the parent's parent, and so on; stops if a label occurs again."""
        line = [label]
        while (above := self.parents.get(line[-1])) is not None and above not in line:
            line.append(above)
        return line

    def renamed(self, names: Mapping[str, str]) -> LabelFacts:
        """The same facts with some labels renamed."""

        def of(label: str) -> str:
            return names.get(label, label)

        return replace(
            self,
            parents={of(label): of(parent) for label, parent in self.parents.items()},
            silent=frozenset(map(of, self.silent)),
            max_lengths={of(label): n for label, n in self.max_lengths.items()},
            calibration={types: calibration.renamed(names) for types, calibration in self.calibration.items()},
            coarse_labels=frozenset(map(of, self.coarse_labels)),
            domains={
                name: {types: calibration.renamed(names) for types, calibration in calibrations.items()}
                for name, calibrations in self.domains.items()
            },
        )

    def to_manifest(self) -> dict[str, object]:
        """These facts as the keys of a manifest, without empty ones."""
        keys = {
            "parents": dict(sorted(self.parents.items())),
            "silent": sorted(self.silent),
            "max_lengths": dict(sorted(self.max_lengths.items())),
            "coarse": sorted(self.coarse_labels),
            "calibration": _to_dicts(self.calibration),
            "domains": {name: _to_dicts(calibrations) for name, calibrations in sorted(self.domains.items())},
            "set_apart": self.set_apart,
            "wide_commas": self.wide_commas,
            "nested": self.nested,
        }
        return {key: value for key, value in keys.items() if value}

    @classmethod
    def from_manifest(cls, facts: Mapping[str, Any]) -> LabelFacts:
        """The facts in a manifest. Raises a ValueError if the value of a key does not have the form that `to_manifest`
        writes."""
        parents, max_lengths = dict(facts.get("parents", {})), dict(facts.get("max_lengths", {}))
        silent, coarse = frozenset(facts.get("silent", ())), frozenset(facts.get("coarse", ()))
        if not all(isinstance(name, str) for name in [*parents, *parents.values(), *silent, *coarse]):
            raise ValueError("parents, silent and coarse must hold names of labels")
        if not all(isinstance(n, int) and n >= 1 for n in max_lengths.values()):
            raise ValueError("max_lengths must hold whole numbers from 1 on")
        set_apart, wide_commas = facts.get("set_apart", 0), facts.get("wide_commas", False)
        if type(set_apart) is not int or set_apart < 0 or not isinstance(wide_commas, bool):
            raise ValueError("set_apart must be a whole number from 0 on, and wide_commas true or false")
        nested = facts.get("nested", False)
        if not isinstance(nested, bool):
            raise ValueError("nested must be true or false")
        calibration = _from_dicts(facts.get("calibration", {}))
        domains = {name: _from_dicts(calibrations) for name, calibrations in facts.get("domains", {}).items()}
        return cls(parents, silent, max_lengths, calibration, coarse, domains, set_apart, wide_commas, nested)


def _to_dicts(calibration: Mapping[str, Calibration]) -> dict[str, object]:
    return {types: of_types.to_dict() for types, of_types in sorted(calibration.items())}


def _from_dicts(calibrations: Mapping[str, Any]) -> dict[str, Calibration]:
    return {types: Calibration.from_dict(fields) for types, fields in calibrations.items()}


def learn_max_lengths(sentences: Iterable[Sentence]) -> dict[str, int]:
    """The maximum length of entities of each label in characters: 1.25 times that of the longest one, at least 4 more.

    This allows every labelled entity, and longer names than those of a label with few entities.
    """
    longest: dict[str, int] = {}
    for sentence in sentences:
        for span in sentence.spans:
            longest[span.label] = max(longest.get(span.label, 0), span.end - span.start)
    return {label: n + max(4, n // 4) for label, n in sorted(longest.items())}
