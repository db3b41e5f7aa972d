"""SoftLexicon without PyTorch: weighted vectors of word sets (`nn.soft_lexicon`), then bidirectional LSTMs.

The word sets are computed in NumPy, since they are small; the LSTM is in C if it was compiled (runtime.recurrent).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cige.data.vocabulary import USER, Vocabulary
from cige.models.soft_lexicon_config import SoftLexiconConfig
from cige.runtime.embedding_table import CharVectors, EmbeddingTable
from cige.runtime.native import Library
from cige.runtime.ragged import RaggedLattices
from cige.runtime.recurrent import BiLstm

N_SETS = 4
B, M, E, S = range(N_SETS)


class RuntimeSoftLexicon:
    """Ragged lattices -> emissions.

    Args:
        config: the configuration of the network, without a BERT.
        weights: all weights of the tagger, by their names in the model folder.
        vocabulary: the vocabulary, with the counts of words in the training text.
        library: the compiled runtime, or None for NumPy.

    Attributes:
        n_threads: the number of threads of the compiled LSTM; None for `cige.runtime.native.n_threads()`.
    """

    def __init__(
        self,
        config: SoftLexiconConfig,
        weights: Mapping[str, np.ndarray],
        vocabulary: Vocabulary,
        library: Library | None,
    ):
        self._config, self._weights = config, weights
        self.n_threads: int | None = None
        self._chars = CharVectors(config, weights)
        if config.use_words:
            self._word = EmbeddingTable.of(weights, "encoder.embeddings.word")
            self._char_word = EmbeddingTable.of(weights, "encoder.embeddings.char_word")
        self._counts, self._user_count = vocabulary.word_counts, vocabulary.user_count
        self._lstm = BiLstm(weights, "encoder.lstm", n_layers=config.n_layers, library=library)

    def emissions(self, batch: RaggedLattices) -> np.ndarray:
        """float32[sum of n_chars, L]."""
        return self._read(batch, None)

    def read_words(self, batch: RaggedLattices) -> tuple[np.ndarray, list[np.ndarray]]:
        """Emissions, and float32[n_chars, n_words] of each sentence: the weights of words in the characters' sets."""
        shares = [np.zeros(n, np.float32) for n in zip(batch.n_chars.tolist(), batch.n_words.tolist(), strict=True)]
        return self._read(batch, shares), shares

    def _read(self, batch: RaggedLattices, shares: list[np.ndarray] | None) -> np.ndarray:
        """The emissions; what `read_words` returns besides is added to `shares`."""
        x = self._chars(batch)
        if self._config.use_words:
            x = np.concatenate([x, self._word_sets(batch, shares)], 1)
        x = self._lstm(x, batch.n_chars, self.n_threads)
        return np.ascontiguousarray(x @ self._weights["output.weight"].T + self._weights["output.bias"])

    def _word_sets(self, batch: RaggedLattices, shares: list[np.ndarray] | None) -> np.ndarray:
        """float32[sum of n_chars, 4 * width]: the sets B, M, E, S, concatenated; word weights are added to `shares`, if
        they are asked for."""
        config, n_chars = self._config, len(batch.chars)
        first_char = np.repeat(np.cumsum(batch.n_chars) - batch.n_chars, batch.n_words)  # of each word's sentence
        lengths = (batch.ends - batch.starts).astype(np.int64)
        member = np.repeat(np.arange(len(lengths)), lengths)  # a word, once for each of its characters
        within = np.arange(len(member)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        char = (first_char + batch.starts)[member] + within
        is_first, is_last = within == 0, within == lengths[member] - 1
        kind = np.where(is_first, np.where(is_last, S, B), np.where(is_last, E, M))
        place = char * N_SETS + kind
        n_members = np.bincount(place, minlength=n_chars * N_SETS)
        counts = self._counts_of(batch)[member]
        if config.weighting == "smoothed":
            weights, once = counts + config.smoothing, 1 + config.smoothing
        else:
            of_set = np.bincount(place, counts, minlength=n_chars * N_SETS)
            weights, once = np.where(of_set[place] == 0, 1.0, counts), 1.0
        of_set = np.bincount(place, weights, minlength=n_chars * N_SETS).reshape(n_chars, N_SETS)
        none = once * (n_members.reshape(n_chars, N_SETS)[:, :S] == 0)  # NONE in an empty B, M or E
        total = of_set.sum(1) + none.sum(1) + once  # Z
        weights = weights / total[char]
        if shares is not None:
            self._note_shares(batch, shares, char, member, weights)
        order = np.argsort(place, kind="stable")
        sets = np.zeros((n_chars * N_SETS, self._word.width), np.float32)
        if len(order):
            vectors = self._word.rows(batch.words)[member[order]] * weights[order, None].astype(np.float32)
            own = place[order]
            begins = np.flatnonzero(np.concatenate([[True], own[1:] != own[:-1]]))
            sets[own[begins]] = np.add.reduceat(vectors, begins)
        by_char = sets.reshape(n_chars, N_SETS, -1)
        by_char[:, :S] += (none / total[:, None])[..., None] * self._weights["encoder.soft_lexicon.none"]
        by_char[:, S] += (once / total)[:, None] * self._char_word.rows(batch.chars)
        return (by_char * np.float32(N_SETS if config.weighting == "counts" else 1)).reshape(n_chars, -1)

    def _counts_of(self, batch: RaggedLattices) -> np.ndarray:
        """float64[sum of n_words]: the count of each word in the training text, with a default for user words."""
        counts = np.zeros(len(batch.words))
        is_user = batch.words == USER
        if self._counts is not None:
            is_base = batch.word_ids < len(self._counts)
            counts[is_base] = self._counts[batch.word_ids[is_base]]
        return np.where(is_user, self._user_count, counts)

    @staticmethod
    def _note_shares(
        batch: RaggedLattices, shares: list[np.ndarray], char: np.ndarray, member: np.ndarray, weights: np.ndarray
    ) -> None:
        of_word = np.repeat(np.arange(len(batch.n_words)), batch.n_words)[member]  # the sentence
        first_char, first_word = (np.cumsum(n) - n for n in (batch.n_chars, batch.n_words))
        for b in np.flatnonzero(np.bincount(of_word, minlength=len(shares))).tolist():
            own = of_word == b
            np.add.at(shares[b], (char[own] - first_char[b], member[own] - first_word[b]), weights[own])
