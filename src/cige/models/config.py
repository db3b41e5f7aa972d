"""ModelConfig: the settings that every model has, and those of the components of characters that it may read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar


@dataclass(frozen=True, kw_only=True)
class ComponentsConfig:
    """The settings of `nn.components`; widths are those of MECT."""

    table: str
    """A file with the components of characters (see data/components.py); a path, relative to the data folder."""
    embedding_width: int = 30
    """Width of the vector of a component, and of the convolution over the components of a character."""
    width: int = 50
    """Width of the vector of a character's components."""
    dropout_prob: float = 0.2
    """Dropout on the vectors of components and on that of the character; MECT uses 0.1 to 0.4."""
    unknown_prob: float = 0.0
    """How often training replaces the components of a character by the unknown component (MECT's char_dropout)."""


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """The settings of the input, and of the layers after the encoder. Each model adds its own fields."""

    use_bigrams: bool = True
    """Whether to read character bigrams in addition to characters."""
    bigram_backoff: bool = False
    """Whether to compute missing bigram vectors from those of their characters (ours; see LatticeVectors)."""
    embed_dropout_prob: float = 0.5
    """Dropout on character and bigram vectors."""
    word_dropout_prob: float = 0.5
    """Dropout on word vectors."""
    bert: str | None = None
    """A BERT whose features are added to the vectors of characters: a folder or hub id (BertFeatures; needs
    cige[bert]), or a folder with a Lattice-BERT of `cige lattice-bert pretrain` (LatticeBertFeatures)."""
    bert_tuned: bool = False
    """Whether to fine-tune the BERT (as in Table 4 of FLAT) or keep it fixed."""
    components: ComponentsConfig | None = None
    """A table of the components of characters, such as radicals, from which each character gets one more vector (an
    idea of MECT; see nn/components.py)."""
    output_dropout_prob: float = 0.3
    """Dropout before the tag scores."""
    constrained: bool = True
    """Whether to exclude illegal tag transitions in the CRF."""
    boundary_scores: bool = True
    """Whether to learn CRF scores of the first and the last tag."""

    @property
    def reads_word_labels(self) -> bool:
        """Whether the network reads the labels of user words."""
        return False

    @property
    def reads_gazetteers(self) -> bool:
        """Whether the network adds vectors of the gazetteers that list a word."""
        return False

    def problems(self) -> list[str]:
        """The problems of settings that have the right types; empty if they are valid."""
        return []


def bert_problems(settings: ModelConfig, *, reads: str) -> list[str]:
    """The problems of a model that needs a BERT and reads no bigrams; `reads` says what it reads."""
    problems = []
    if settings.bert is None:
        problems.append("model.bert names no BERT, which this model needs; give a folder or a hub id")
    if settings.use_bigrams:
        problems.append(f"model.use_bigrams is true, but this model reads only {reads}")
    return problems


def odd_widths(**widths: int) -> list[str]:
    """The problems of those settings whose width two directions cannot share."""
    odd = {name: width for name, width in widths.items() if width % 2}
    return [
        f"model.{name} is {width}, expected an even number (half for each direction)" for name, width in odd.items()
    ]


C = TypeVar("C", bound=ModelConfig)


def config_from_json(config_class: type[C], values: Mapping[str, Any]) -> C:
    """The settings that a manifest states, as `asdict` returned them and JSON keeps them; values are not checked.

    Raises:
        TypeError: a setting is unknown, or the settings of components are none.
    """
    given: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
    if given.get("components") is not None:
        given["components"] = ComponentsConfig(**given["components"])
    return config_class(**given)
