"""ModelConfig: the settings that every model has, and the input that they describe."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from cige.data.batch import LatticeBatch
from cige.nn.embeddings import InputSizes, LatticeVectors


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """What all models share: their input, and what stands after their encoder. Each model adds its own fields."""

    use_bigrams: bool = True
    """Read character bigrams beside characters."""
    bigram_backoff: bool = False
    """Make a vector for a bigram that has none out of its characters' vectors (ours; see LatticeVectors)."""
    embed_dropout_prob: float = 0.5
    """Dropout on character and bigram vectors."""
    word_dropout_prob: float = 0.5
    """Dropout on word vectors."""
    bert: str | None = None
    """A BERT whose features join each character's vectors: a folder or a hub id (BertFeatures; needs cige[bert]), or a
    folder with a Lattice-BERT that `cige pretrain` made (LatticeBertFeatures)."""
    bert_tuned: bool = False
    """Train the BERT too (Table 4 of FLAT); False leaves it as it is."""
    output_dropout_prob: float = 0.3
    """Dropout before the tag scores."""
    constrained: bool = True
    """Rule out illegal tag transitions in the CRF."""
    boundary_scores: bool = True
    """Learn CRF scores of the first and last tag."""

    def problems(self) -> list[str]:
        """What is wrong with settings that are each of the right type; empty if they make sense together."""
        return []


def input_vectors(
    config: ModelConfig, sizes: InputSizes, *, chars: bool = True, words: bool = True, char_words: bool = False
) -> LatticeVectors:
    """The input tables that a config describes, empty; False leaves one out (see LatticeVectors)."""
    return LatticeVectors(
        sizes,
        dropout_prob=config.embed_dropout_prob,
        word_dropout_prob=config.word_dropout_prob,
        use_bigrams=config.use_bigrams,
        bigram_backoff=config.bigram_backoff,
        chars=chars,
        words=words,
        char_words=char_words,
    )


def char_width(vectors: LatticeVectors, features: nn.Module | None) -> int:
    """The width C of what `read_chars` gives."""
    return vectors.char_width + (int(features.width) if features is not None else 0)  # type: ignore[arg-type]


def read_chars(vectors: LatticeVectors, features: nn.Module | None, batch: LatticeBatch) -> Tensor:
    """float[B, T, C]: character vectors, with those of a BERT beside them if there is one."""
    chars = vectors.chars(batch)
    return chars if features is None else torch.cat([chars, features(batch)], -1)
