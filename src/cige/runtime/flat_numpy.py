"""FLAT in NumPy, for installations without compiled code, and the reference for the C implementation.

It implements the equations of `cige.models.flat` with two optimisations that do not change results: in the last layer,
only characters are queries, and W_kR R is read from tables (runtime.relations).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.lib.stride_tricks import as_strided

from cige.models.flat_config import FlatConfig
from cige.runtime.embedding_table import CharVectors, EmbeddingTable
from cige.runtime.ragged import RaggedLattices
from cige.runtime.relations import Relations, RelationTables

PAIRS_AT_ONCE = 4000  # rows of W_kR R that are gathered at once for queries that are words
HIDDEN = np.float32(-1e30)


class NumpyFlat:
    """Ragged lattices -> emissions.

    Args:
        config: the configuration of the network, without a BERT.
        weights: all weights of the tagger, by their names in the model folder.
    """

    def __init__(self, config: FlatConfig, weights: Mapping[str, np.ndarray]):
        self._config, self._weights = config, weights
        self._relations = RelationTables(config, weights)
        self._chars = CharVectors(config, weights)
        self._word = EmbeddingTable.of(weights, "encoder.embeddings.word")
        reads = config.reads_char_words
        self._char_word = EmbeddingTable.of(weights, "encoder.embeddings.char_word") if reads else None

    def emissions(self, batch: RaggedLattices) -> np.ndarray:
        """float32[sum of n_chars, L]."""
        return self._read(batch, None)

    def read_words(self, batch: RaggedLattices) -> tuple[np.ndarray, list[np.ndarray]]:
        """Emissions, and float32[n_chars, n_words] of each sentence: attention, averaged over layers and heads."""
        shape = zip(batch.n_chars.tolist(), batch.n_words.tolist(), strict=True)
        attention = [np.zeros(pair, np.float32) for pair in shape]
        return self._read(batch, attention), attention

    def _read(self, batch: RaggedLattices, attention: list[np.ndarray] | None) -> np.ndarray:
        """The emissions; what `read_words` returns besides is added to `attention`."""
        config = self._config
        n_chars = len(batch.chars)
        chars = self._chars(batch)
        if self._char_word is not None:
            chars = np.concatenate([chars, self._char_word.rows(batch.chars)], 1)
        x = self._linear(chars, "encoder.char_projection")
        if config.use_words:
            words = self._linear(self._word.rows(batch.words), "encoder.word_projection")
            if (config.reads_word_labels or config.reads_gazetteers) and batch.labels is not None:
                words += self._weights["encoder.word_labels.weight"][batch.labels]
            x = np.concatenate([x, words])  # [N, D]: all characters, then all words
        reach = int((batch.ends - batch.starts).max(initial=1)) - 1
        relations = self._relations.for_batch(int(batch.n_chars.max(initial=1)), max(0, reach))
        for number in range(config.n_layers):
            n_asking = len(x) if number + 1 < config.n_layers else n_chars
            x = self._layer(number, x, n_asking, batch, relations, attention)
        return self._linear(x[:n_chars], "output")

    def _layer(
        self,
        number: int,
        x: np.ndarray,
        n_asking: int,
        batch: RaggedLattices,
        relations: Relations,
        attention: list[np.ndarray] | None,
    ) -> np.ndarray:
        """float32[n_asking, D], for the query nodes; that of each sentence is added to `attention`, if given."""
        config, name = self._config, f"encoder.layers.{number}"
        scale = np.float32(config.score_scale)
        query = self._linear(x[:n_asking], f"{name}.attention.query") * scale
        key = self._linear(x, f"{name}.attention.key") if config.key_projection else x
        value = self._linear(x, f"{name}.attention.value")
        attended = np.empty_like(query)
        n_chars = len(batch.chars)
        for b, (chars, words) in enumerate(batch.bounds):
            if chars.start == chars.stop:
                continue
            place = np.arange(chars.start, chars.stop)
            if config.use_words:
                place = np.concatenate([place, np.arange(n_chars + words.start, n_chars + words.stop)])
            starts, ends = (side[words] for side in (batch.starts, batch.ends))
            sentence = _Spans(chars.stop - chars.start, *((starts, ends) if config.use_words else (starts[:0],) * 2))
            asking = place if n_asking > n_chars else place[: sentence.n_chars]
            shares = self._attend(number, query[asking], key[place], sentence, relations, scale)  # [H, Q, n]
            by_head = value[place].reshape(len(place), config.n_heads, -1).transpose(1, 0, 2)
            attended[asking] = (shares @ by_head).transpose(1, 0, 2).reshape(len(asking), -1)
            if config.use_words and attention is not None:
                attention[b] += shares[:, : sentence.n_chars, sentence.n_chars :].mean(0) / config.n_layers
        asked = x[:n_asking]
        x = self._norm(attended + (asked if config.residual else attended), f"{name}.attention_norm")
        changed = self._linear(np.maximum(self._linear(x, f"{name}.ff_in"), 0), f"{name}.ff_out")
        norm = "attention_norm" if config.shared_layer_norm else "ff_norm"
        return self._norm(changed + (x if config.residual else changed), f"{name}.{norm}")

    def _attend(
        self,
        number: int,
        query: np.ndarray,
        key: np.ndarray,
        sentence: _Spans,
        relations: Relations,
        scale: np.float32,
    ) -> np.ndarray:
        """float32[H, Q, n]: attention of Q query nodes to n nodes; the query is scaled already."""
        config, name = self._config, f"encoder.layers.{number}.attention"

        def by_head(x: np.ndarray) -> np.ndarray:  # [n, D] -> [H, n, d]
            return x.reshape(len(x), config.n_heads, -1).transpose(1, 0, 2)

        u = self._weights[f"{name}.u"][:, None] * scale
        score = (by_head(query) + u) @ by_head(key).transpose(0, 2, 1)
        position = None
        if config.position_score == "exact":
            position = by_head(query) + self._weights[f"{name}.v"][:, None] * scale
        n_chars = sentence.n_chars
        score[:, :n_chars] += self._of_chars(number, position, sentence, relations)
        if len(query) > n_chars:
            score[:, n_chars:] += self._of_words(number, position, sentence, relations)
        hidden = sentence.hidden(config, len(query))
        if hidden is not None:
            score = np.where(hidden, HIDDEN, score)
        shares = np.exp(score - score.max(-1, keepdims=True))
        shares /= shares.sum(-1, keepdims=True)
        return shares if hidden is None else shares * ~hidden.all(-1, keepdims=True)

    def _of_chars(self, number: int, position: np.ndarray | None, sentence: _Spans, relations: Relations) -> np.ndarray:
        """float32[H, T, n]: the position scores of characters as queries.

        The product with the columns of a table contains the scores for all distances. The score of the pair (i, j) is
        in column i - head_j, so the scores of a key are on a diagonal.
        """
        n_heads, n_chars = self._config.n_heads, sentence.n_chars
        first, n_columns = relations.n_chars - n_chars, 2 * n_chars - 1
        scores = np.empty((n_heads, n_chars, len(sentence.heads)), np.float32)
        for reach in np.flatnonzero(np.bincount(sentence.reaches)).tolist():  # np.unique is slower
            columns = relations.columns(number, reach)[:, first : first + n_columns].reshape(n_heads, -1, n_columns)
            # The form "bias": one number per head, which does not depend on the query.
            products = np.repeat(columns, n_chars, 1) if position is None else position[:, :n_chars] @ columns
            own, row, column = products.strides  # of [H, T, 2T - 1]
            shape, strides = (n_heads, n_chars, n_chars), (own, row + column, -column)
            diagonals = as_strided(products[:, :, n_chars - 1 :], shape, strides, writeable=False)  # [H, T, head_j]
            having = np.flatnonzero(sentence.reaches == reach)
            if reach == 0 and len(having) == n_chars:  # the characters, whose heads are all there are, in order
                scores[:, :, :n_chars] = diagonals
            else:
                scores[:, :, having] = diagonals[:, :, sentence.heads[having]]
        return scores

    def _of_words(self, number: int, position: np.ndarray | None, sentence: _Spans, relations: Relations) -> np.ndarray:
        """float32[H, W, n]: the same for words as queries, with one table row per pair."""
        config, n_chars, n = self._config, sentence.n_chars, len(sentence.heads)
        scores = np.empty((config.n_heads, n - n_chars, n), np.float32)
        at_once = max(1, PAIRS_AT_ONCE // n)
        width = config.n_heads if position is None else config.width
        for begin in range(n_chars, n, at_once):
            asking = np.arange(begin, min(n, begin + at_once))
            place = sentence.heads[asking, None] - sentence.heads + relations.n_chars - 1  # [w, n]
            rows = np.empty((len(asking), n, width), np.float32)
            for reach_i in np.unique(sentence.reaches[asking]).tolist():
                for reach_j in np.unique(sentence.reaches).tolist():
                    chosen = (sentence.reaches[asking] == reach_i)[:, None] & (sentence.reaches == reach_j)
                    rows[chosen] = relations.rows(number, reach_i, reach_j)[place[chosen]]
            own = slice(begin - n_chars, begin - n_chars + len(asking))
            if position is None:
                scores[:, own] = rows.transpose(2, 0, 1)
            else:
                by_head = rows.reshape(len(asking), n, config.n_heads, -1)
                scores[:, own] = np.einsum("hwd,wnhd->hwn", position[:, asking], by_head)
        return scores

    def _linear(self, x: np.ndarray, name: str) -> np.ndarray:
        y = x @ self._weights[f"{name}.weight"].T
        bias = self._weights.get(f"{name}.bias")
        return y if bias is None else y + bias

    def _norm(self, x: np.ndarray, name: str) -> np.ndarray:
        part = np.float32(1 / x.shape[1])
        x = x - x.sum(1, keepdims=True) * part
        x /= np.sqrt(np.square(x).sum(1, keepdims=True) * part + np.float32(1e-5))
        return x * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]


class _Spans:
    """The nodes of a sentence: int64[n] heads and `reaches` (tail - head), characters first."""

    def __init__(self, n_chars: int, starts: np.ndarray, ends: np.ndarray):
        self.n_chars = n_chars
        self.heads = np.concatenate([np.arange(n_chars), starts]).astype(np.int64)
        self.reaches = np.concatenate([np.zeros(n_chars, np.int64), ends - starts - 1]).astype(np.int64)

    def hidden(self, config: FlatConfig, n_asking: int) -> np.ndarray | None:
        """bool[Q, n]: the keys that are masked for each query (Table 2 of FLAT), or None without masks."""
        tails = self.heads + self.reaches
        head_i, tail_i = self.heads[:n_asking, None], tails[:n_asking, None]
        hidden = None
        if config.mask_self_matched:
            is_word = np.arange(len(tails)) >= self.n_chars
            hidden = (self.heads <= head_i) & (tail_i <= tails) & is_word & ~is_word[:n_asking, None]
        if config.max_distance is not None:
            far = np.maximum(head_i - tails, self.heads - tail_i) > config.max_distance
            hidden = far if hidden is None else hidden | far
        return hidden
