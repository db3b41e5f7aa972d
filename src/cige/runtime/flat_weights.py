"""FLAT's weights as the structs of runtime/native/flat.h.

The following is computed from the weights once:

- Queries, keys and values of the first layer are linear in the rows of the input tables, so both linear maps become
  one product, whose output is [x | q | k | v].
- The contribution of a character's row to this product is cached when the character first occurs, and so are the two
  contributions of its vector to bigrams without a vector.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from cige.models.flat_config import FlatConfig
from cige.nn.memory import zeros_on_demand
from cige.runtime.embedding_table import EmbeddingTable
from cige.runtime.native import Library, Struct
from cige.runtime.packed_linear import PackedLinear, parts_padded
from cige.runtime.row_products import in_one_thread, row_by_row


class InputTables:
    """Converts rows of the input tables to [x | q | k | v], each of which has `step` numbers.

    Attributes:
        n_char_numbers: number of cached values per character.
        is_known: bool[rows of characters], whether a character is cached.
        fields: fields of the struct Flat of native/flat.h, by name.
    """

    def __init__(
        self,
        config: FlatConfig,
        weights: Mapping[str, np.ndarray],
        library: Library,
        linear: Callable[..., PackedLinear],
    ):
        panel = library.constants["PANEL"]
        self.step = -(-config.width // panel) * panel
        self._char = EmbeddingTable.of(weights, "encoder.embeddings.char")
        bigram = EmbeddingTable.of(weights, "encoder.embeddings.bigram") if config.use_bigrams else None
        word = EmbeddingTable.of(weights, "encoder.embeddings.word")
        reads = config.reads_char_words
        self._char_word = EmbeddingTable.of(weights, "encoder.embeddings.char_word") if reads else None
        chars, char_bias = _folded(config, weights, "encoder.char_projection")
        words, word_bias = _folded(config, weights, "encoder.word_projection")
        n_bigram = bigram.width if bigram is not None else 0
        of_char, of_bigram, of_char_word = np.split(chars, [self._char.width, self._char.width + n_bigram], axis=1)
        self._from_char = parts_padded(np.concatenate([of_char, of_char_word], 1), 4, self.step)  # [4 step, C]
        self._bias = parts_padded(char_bias, 4, self.step)
        has_backoff = bigram is not None and config.bigram_backoff
        if has_backoff:  # contributions of the two characters' vectors to a bigram
            halves = np.split(weights["encoder.embeddings.backoff.weight"], 2, axis=1)
            own = np.zeros((2 * n_bigram, self._from_char.shape[1]), np.float32)
            own[:, : self._char.width] = np.concatenate(halves)
            self._from_char = np.concatenate([self._from_char, own])
            bias = weights["encoder.embeddings.backoff.bias"]
            self._bias = np.concatenate([self._bias, bias, np.zeros_like(bias)])
        self.n_char_numbers = len(self._from_char)
        # Only rows of cached characters use memory.
        self._char_rows = zeros_on_demand((len(self._char), self.n_char_numbers))
        self.is_known = np.zeros(len(self._char), bool)
        label_rows = None  # the model ignores labels of words
        if config.reads_word_labels or config.reads_gazetteers:
            labels = weights["encoder.word_labels.weight"].astype(np.float64)
            parts = [in_one_thread(labels, part.T) for part, _ in _query_key_value(config, weights, 0)]
            labels = np.concatenate([labels, *parts], 1)  # [n, 4D], what a label adds to [x | q | k | v]
            label_rows = np.ascontiguousarray(parts_padded(labels.T, 4, self.step).T)
        unused = np.zeros((4 * config.width, 1), np.float32)
        self.fields = {
            "char_rows": self._char_rows,
            "label_rows": label_rows,
            "bigram": None if bigram is None else _table(bigram, library),
            "word": _table(word, library),
            "from_bigram": linear(of_bigram if bigram is not None else unused, n_parts=4).struct,
            "from_word": linear(words, word_bias, n_parts=4).struct,
            "has_bigrams": bigram is not None,
            "has_backoff": has_backoff,
        }

    def learn(self, rows: np.ndarray) -> None:
        """Cache the characters in these rows; concurrent calls for the same row write the same values."""
        if self.is_known[rows].all():
            return
        is_new = np.zeros(len(self.is_known), bool)
        is_new[rows] = True
        new = np.flatnonzero(is_new & ~self.is_known)  # np.unique imports numpy.ma, which takes 20 ms
        vectors = [table.rows(new) for table in (self._char, self._char_word) if table is not None]
        self._char_rows[new] = row_by_row(np.concatenate(vectors, 1), self._from_char) + self._bias
        self.is_known[new] = True


def _folded(config: FlatConfig, weights: Mapping[str, np.ndarray], name: str) -> tuple[np.ndarray, np.ndarray]:
    """Weight [4D, n_in] and bias [4D] of x and of the first layer's query, key and value."""
    weight, bias = (weights[f"{name}.{part}"].astype(np.float64) for part in ("weight", "bias"))
    made = [(in_one_thread(part, weight), part @ bias + own) for part, own in _query_key_value(config, weights, 0)]
    return _joined([(weight, bias), *made])


def _query_key_value(
    config: FlatConfig, weights: Mapping[str, np.ndarray], number: int
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Weight [D, D] and bias [D] of each; without a key projection, keys are the input."""
    found = []
    for part in ("query", "key", "value"):
        name = f"encoder.layers.{number}.attention.{part}"
        is_raw = part == "key" and not config.key_projection
        weight = np.eye(config.width) if is_raw else weights[f"{name}.weight"].astype(np.float64)
        found.append((weight, weights.get(f"{name}.bias", np.zeros(config.width)).astype(np.float64)))
    return found


def _table(table: EmbeddingTable, library: Library) -> Struct:
    sizes = {"n_tuned": len(table.tuned), "width": table.width, "n_bytes": table.fixed.dtype.itemsize}
    return library.struct("Table", tuned=table.tuned, fixed=table.fixed, scale=table.scale, **sizes)


def layer_fields(
    config: FlatConfig,
    weights: Mapping[str, np.ndarray],
    library: Library,
    linear: Callable[..., PackedLinear],
    number: int,
) -> dict[str, Struct | np.ndarray | None]:
    """The fields of the struct Layer of native/flat.h, by name, without the relation tables."""
    own = {
        name[len(prefix) :]: x for name, x in weights.items() if name.startswith(prefix := f"encoder.layers.{number}.")
    }

    def norm(name: str) -> Struct:
        weight, bias = (np.ascontiguousarray(own[f"{name}.{part}"], np.float32) for part in ("weight", "bias"))
        return library.struct("Norm", weight=weight, bias=bias)

    scale = np.float32(config.score_scale)
    u = np.ascontiguousarray(own["attention.u"]).reshape(-1) * scale
    first = linear(*_joined(_query_key_value(config, weights, number)), n_parts=3).struct if number else None
    return {
        "query_key_value": first,  # the first layer's are in the input tables
        **{part: linear(own[f"{part}.weight"], own[f"{part}.bias"]).struct for part in ("ff_in", "ff_out")},
        "attention_norm": norm("attention_norm"),
        "ff_norm": norm("attention_norm" if config.shared_layer_norm else "ff_norm"),
        "u": u,
        "v": u if config.position_score == "bias" else own["attention.v"].reshape(-1) * scale,
    }


def _joined(parts: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    return np.concatenate([w for w, _ in parts]), np.concatenate([b for _, b in parts])
