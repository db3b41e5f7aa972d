"""Add a new word adapter to a pre-trained BERT-our, with words and vectors from a file."""

from __future__ import annotations

from dataclasses import replace

import torch

from cige.errors import ModelError
from cige.lattice_bert.encoder.joint_vocabulary import JointVocabulary
from cige.lattice_bert.encoder.pretrained import PretrainedLatticeBert
from cige.lattice_bert.encoder.word_adapter import WordAdapter, WordAdapterConfig
from cige.lexicon.vectors import VectorTable
from cige.text.code_points import normal_form


def add_adapter(
    pretrained: PretrainedLatticeBert, vectors: VectorTable, config: WordAdapterConfig, *, seed: int = 1
) -> PretrainedLatticeBert:
    """A copy of a pre-trained model of characters that reads words by an untrained adapter; heads are left out.

    Args:
        vectors: the words and their vectors; those in normal form that consist of several pieces become tokens.
        config: settings, whose `n_words` is the maximum number of words, taken in the order of `vectors`, and whose
            `word_width` must be that of `vectors`.
        seed: determines the initial weights of the adapter; its word vectors are those of the file.

    Raises:
        ModelError: the model reads words already, it has no layer with the number `after_layer`, or no word remains.
    """
    n_layers = pretrained.config.n_layers
    if pretrained.vocabulary.n_words:
        raise ModelError(
            f"this model reads {pretrained.vocabulary.n_words:,} words already; expected one of characters alone, such "
            "as that of the recipe pretrain/tiny_bert_our"
        )
    if not 1 <= config.after_layer <= n_layers:
        raise ModelError(f"after_layer is {config.after_layer}, expected from 1 to {n_layers}, the model's last layer")
    words = [word for word in vectors.words if len(word) > 1 and normal_form(word) == word]
    vocabulary = JointVocabulary.build(pretrained.vocabulary.pieces, words, n_words=config.n_words)
    if not vocabulary.n_words:
        raise ModelError(
            f"none of the {len(vectors):,} words with vectors can be a token; expected words of two or more characters"
        )
    torch.manual_seed(seed)
    adapter = WordAdapter(
        replace(config, n_words=vocabulary.n_words, word_width=vectors.width), width=pretrained.config.width
    )
    rows = vectors.vectors[vectors.rows(vocabulary.words)]
    with torch.no_grad():
        adapter.words.weight.copy_(torch.from_numpy(rows))
    bert = pretrained.bert.copy_with(adapter)
    return PretrainedLatticeBert(network=bert, vocabulary=vocabulary, facts=pretrained.facts)
