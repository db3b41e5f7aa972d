"""FLAT in C: convert the weights of a model folder for runtime/native/flat.c, and call it for each batch.

The following is computed from the weights once:

- Queries, keys and values of the first layer are linear in the rows of the input tables, so both linear maps become
  one product, whose output is [x | q | k | v].
- The contribution of a character's row to this product is cached when the character first occurs, and so are the two
  contributions of its vector to bigrams without a vector.
- The tables of relative spans (runtime.relations).
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from cige.errors import ModelError
from cige.lattice.lattice import Lattice
from cige.models.flat_config import FlatConfig
from cige.nn.memory import zeros_on_demand
from cige.runtime.embedding_table import EmbeddingTable
from cige.runtime.native import address, n_threads
from cige.runtime.native_crf import NO_ROOM, LabelFamilies, NativeCRF, with_room
from cige.runtime.packed_linear import N_FIELDS, PackedLinear
from cige.runtime.precision import FLOAT32, PRECISIONS, attention_precision, available
from cige.runtime.ragged import RaggedLattices, RowReader, closed_chars, joined
from cige.runtime.relations import Relations, RelationTables
from cige.runtime.row_products import in_one_thread, row_by_row

_MISSING = 2  # return code of native/spans.c: a table is missing
_MOST_TRIES = 3  # the tables that a batch lacks are made at once, so a second try finds them
_ERRORS = {1: "no memory for a work buffer; use smaller batches", 2: "a sentence is too long for the tables"}


class NativeFlat:
    """Ragged lattices -> emissions, equal to those of NumpyFlat to about 1e-5.

    Args:
        config: the configuration of the network, without a BERT.
        weights: all weights of the tagger, by their names in the model folder.
        library: the compiled runtime.
        precision: a precision that the library supports (runtime.precision).
    """

    def __init__(
        self, config: FlatConfig, weights: Mapping[str, np.ndarray], library: ctypes.CDLL, precision: str = FLOAT32
    ):
        self._config, self._weights, self._library = config, weights, library
        self.precision = precision
        self.n_threads: int | None = None  # None: see `n_threads`
        self._attention = attention_precision(precision, available(library), config.head_width)
        packed = partial(PackedLinear, library, precision=precision)
        self._relations = RelationTables(config, weights)
        self._n_tags = len(weights["output.weight"])
        self._output = packed(weights["output.weight"], weights["output.bias"])
        self._input = _InputTables(config, weights, library.panel_width(), packed)
        self._layers = [_Layer(config, weights, packed, number) for number in range(config.n_layers)]
        self._described: _Described | None = None
        self._making = threading.Lock()  # arrays that C reads by address are created once and never replaced

    def emissions(self, batch: RaggedLattices) -> np.ndarray:
        """float32[sum of n_chars, L]."""
        return self.padded_emissions(batch)[:, : self._n_tags]

    def read_words(self, batch: RaggedLattices) -> tuple[np.ndarray, list[np.ndarray]]:
        """Emissions, and float32[n_chars, n_words] of each sentence: attention, averaged over layers and heads."""
        shapes = list(zip(batch.n_chars.tolist(), batch.n_words.tolist(), strict=True))
        sizes = [t * w for t, w in shapes]
        attention = np.zeros(sum(sizes), np.float32)
        emissions = self.padded_emissions(batch, attention)[:, : self._n_tags]
        parts = np.split(attention, np.cumsum(sizes)[:-1])
        return emissions, [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]

    def spans(
        self,
        lattices: Sequence[Lattice],
        rows: RowReader,
        chain: NativeCRF,
        families: LabelFamilies | None = None,
        rules: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """The spans of lattices, of which at least one has characters; see NativeCRF.spans."""
        n_chars, n_words, text, matches = joined(lattices)
        n_spans = np.zeros(len(lattices), np.int32)
        codes = text.encode("utf-32-le", "surrogatepass")
        arrays = (rows.labels(lattices), closed_chars(lattices), None if families is None else families.fields)
        optional = [None if x is None else address(x) for x in arrays]
        held = None if rules is None else address(rules)

        def read(found: np.ndarray) -> int:
            sizes = np.array([len(lattices), len(matches), n_threads(self.n_threads), len(text), len(found)], np.int64)
            described = self._described or self._prepare(rows(lattices))
            for _ in range(_MOST_TRIES):
                inputs = (rows.packed, described.fields, chain.fields, self._input.is_known, sizes, n_chars, n_words)
                outputs = (address(found), address(n_spans))
                failed = self._library.read_lattices(
                    *map(address, inputs), codes, address(matches), *optional, *outputs, held
                )
                if failed != _MISSING:
                    break
                described = self._prepare(rows(lattices))
            if failed == _MISSING:
                raise ModelError("FLAT: the words of this text need tables that its lexicon rules out; it is damaged")
            if failed not in (0, NO_ROOM):
                raise MemoryError(f"FLAT: {_ERRORS.get(failed, failed)}")
            return failed

        return with_room(read, len(text), n_spans), n_spans

    def padded_emissions(self, batch: RaggedLattices, attention: np.ndarray | None = None) -> np.ndarray:
        """float32[sum of n_chars, L and padding]; attention is added to `attention`."""
        described = self._prepare(batch)
        emissions = np.empty((len(batch.chars), self._output.n_out), np.float32)
        arrays = (batch.n_chars, batch.n_words, batch.chars, batch.bigrams, batch.words, batch.starts, batch.ends)
        labels = 0 if batch.labels is None else address(batch.labels)
        sentences = np.array([len(batch.n_chars), *map(address, arrays), labels], np.int64)
        failed = self._library.flat_emissions(
            address(described.fields),
            address(sentences),
            n_threads(self.n_threads),
            address(emissions),
            None if attention is None else address(attention),
        )
        if failed:
            raise MemoryError(f"FLAT: {_ERRORS.get(failed, failed)}")
        return emissions

    def _prepare(self, batch: RaggedLattices) -> _Described:
        """Create the tables and cached rows that this batch needs."""
        reaches = np.zeros(0, np.int64)
        if self._config.use_words and len(batch.starts):
            reaches = np.flatnonzero(np.bincount(batch.ends - batch.starts - 1))
        with self._making:
            self._input.learn(batch.chars)
            relations = self._relations.for_batch(int(batch.n_chars.max()), int(reaches.max(initial=0)))
            described = self._described
            if described is None or described.relations is not relations:
                described = self._described = _Described(self, relations)
            described.make_tables(reaches)
        return described


class _Described:
    """The struct Flat of native/flat.h for one set of relation tables; it keeps the arrays that it points to alive.

    Attributes:
        relations: the relation tables.
        fields: int64, the struct.
    """

    def __init__(self, flat: NativeFlat, relations: Relations):
        config = flat._config
        self.relations = relations
        self._config, self._n_lanes = config, flat._library.panel_width() // 2
        self._form = FLOAT32 if config.position_score == "bias" else flat._attention
        shape = (config.n_layers, relations.max_reach + 2, relations.max_reach + 1)
        self._tables = np.zeros(
            shape, np.int64
        )  # addresses for queries that are characters, then for words of each length
        self._kept: list[np.ndarray] = []
        layers = zip(flat._layers, self._tables, strict=True)
        self._layers = np.array([[*layer.fields, address(own), address(own[1:])] for layer, own in layers], np.int64)
        fields = [
            *(config.n_layers, config.n_heads, config.head_width, config.width, config.ff_width, flat._input.step),
            *(relations.n_chars, relations.column_step, relations.max_reach + 1),
            *(config.residual, config.position_score == "bias", config.use_words, config.mask_self_matched),
            *(config.max_distance or 0, config.max_distance is not None, PRECISIONS.index(flat._attention)),
            flat._input.n_char_numbers,
            *(int(np.float64(_scale(config)).view(np.int64)), *flat._input.fields, *flat._output.fields),
            address(self._layers),
        ]
        self.fields = np.array(fields, np.int64)

    def make_tables(self, reaches: np.ndarray) -> None:
        """Create the missing tables for characters and for words of these lengths (tail - head)."""
        keys = [0, *reaches.tolist()]
        for number, tables in enumerate(self._tables):
            for key in keys:
                if not tables[0, key]:
                    tables[0, key] = address(self.relations.columns(number, key, precision=self._form))
            if number + 1 < self._config.n_layers:
                for query in reaches.tolist():
                    for key in keys:
                        if not tables[1 + query, key]:
                            tables[1 + query, key] = self._rows_by_head(number, query, key)

    def _rows_by_head(self, number: int, query: int, key: int) -> int:
        """The address of float32[2M - 1, d or 1, H padded to whole vectors]: rows of W_kR R, with heads last."""
        rows, n_heads = self.relations.rows(number, query, key), self._config.n_heads
        n_padded = -(-n_heads // self._n_lanes) * self._n_lanes
        padded = np.zeros((len(rows), rows.shape[1] // n_heads, n_padded), np.float32)
        padded[:, :, :n_heads] = rows.reshape(len(rows), n_heads, -1).transpose(0, 2, 1)
        self._kept.append(padded)
        return address(padded)


class _InputTables:
    """Converts rows of the input tables to [x | q | k | v], each of which has `step` numbers.

    Attributes:
        n_char_numbers: number of cached values per character.
        is_known: bool[rows of characters], whether a character is cached.
        fields: the fields of native/flat.h from char_rows to has_backoff.
    """

    def __init__(
        self, config: FlatConfig, weights: Mapping[str, np.ndarray], panel: int, packed: Callable[..., PackedLinear]
    ):
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
        self._from_char = self._in_parts(np.concatenate([of_char, of_char_word], 1))  # [4 step, C]
        self._bias = self._in_parts(char_bias)
        has_backoff = bigram is not None and config.bigram_backoff
        if has_backoff:  # contributions of the two characters' vectors to a bigram
            halves = np.split(weights["encoder.embeddings.backoff.weight"], 2, axis=1)
            own = np.zeros((2 * n_bigram, self._from_char.shape[1]), np.float32)
            own[:, : self._char.width] = np.concatenate(halves)
            self._from_char = np.concatenate([self._from_char, own])
            bias = weights["encoder.embeddings.backoff.bias"]
            self._bias = np.concatenate([self._bias, bias, np.zeros_like(bias)])
        self.n_char_numbers = len(self._from_char)
        self._char_rows = zeros_on_demand(
            (len(self._char), self.n_char_numbers)
        )  # only rows of cached characters use memory
        self.is_known = np.zeros(len(self._char), bool)
        self._kept = (bigram, word)
        label_rows = 0  # null: the model ignores labels of words
        if config.reads_word_labels or config.reads_gazetteers:
            labels = _of_labels(config, weights)
            self._labels = np.zeros((len(labels), 4 * self.step), np.float32)
            self._labels[:] = self._in_parts(labels.T).T
            label_rows = address(self._labels)
        unused = np.zeros((4 * config.width, 1), np.float32)
        self._from_bigram = packed(of_bigram if bigram is not None else unused, n_parts=4)
        self._from_word = packed(words, word_bias, n_parts=4)
        self.fields = [
            *(address(self._char_rows), label_rows, *_table_fields(bigram), *_table_fields(word)),
            *(*self._from_bigram.fields, *self._from_word.fields, bigram is not None, has_backoff),
        ]

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

    def _in_parts(self, x: np.ndarray) -> np.ndarray:
        """[4 D, ...] -> float32[4 step, ...]."""
        parts = np.zeros((4, self.step, *x.shape[1:]), np.float32)
        parts[:, : len(x) // 4] = x.reshape(4, -1, *x.shape[1:])
        return parts.reshape(-1, *x.shape[1:])


def _folded(config: FlatConfig, weights: Mapping[str, np.ndarray], name: str) -> tuple[np.ndarray, np.ndarray]:
    """Weight [4D, n_in] and bias [4D] of x and of the first layer's query, key and value."""
    weight, bias = (weights[f"{name}.{part}"].astype(np.float64) for part in ("weight", "bias"))
    made = [(weight, bias)]
    for part, own in _query_key_value(config, weights, 0):
        made.append((in_one_thread(part, weight), part @ bias + own))
    return np.concatenate([w for w, _ in made]), np.concatenate([b for _, b in made])


def _of_labels(config: FlatConfig, weights: Mapping[str, np.ndarray]) -> np.ndarray:
    """float64[n, 4D]: the contribution of the label of a word to its x, query, key and value in the first layer."""
    labels = weights["encoder.word_labels.weight"].astype(np.float64)
    return np.concatenate(
        [labels, *(in_one_thread(labels, part.T) for part, _ in _query_key_value(config, weights, 0))], 1
    )


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


def _table_fields(table: EmbeddingTable | None) -> list[int]:
    if table is None:
        return [0] * 6
    addresses = (address(table.tuned), address(table.fixed), address(table.scale))
    return [*addresses, len(table.tuned), table.width, table.fixed.dtype.itemsize]


class _Layer:
    """The weights of a layer.

    Attributes:
        fields: the fields of native/flat.h up to the relation tables.
    """

    def __init__(
        self, config: FlatConfig, weights: Mapping[str, np.ndarray], packed: Callable[..., PackedLinear], number: int
    ):
        name = f"encoder.layers.{number}"
        parts = _query_key_value(config, weights, number)
        linear = [packed(*_joined(parts), n_parts=3)] if number else []  # the first layer's are in the input tables
        linear += [
            packed(weights[f"{name}.{part}.weight"], weights[f"{name}.{part}.bias"]) for part in ("ff_in", "ff_out")
        ]
        second = "attention_norm" if config.shared_layer_norm else "ff_norm"
        norms = [
            np.ascontiguousarray(weights[f"{name}.{norm}.{part}"], np.float32)
            for part in ("weight", "bias")
            for norm in ("attention_norm", second)
        ]
        scale = _scale(config)
        u = np.ascontiguousarray(weights[f"{name}.attention.u"]).reshape(-1) * scale
        v = u if config.position_score == "bias" else weights[f"{name}.attention.v"].reshape(-1) * scale
        self._kept = linear, norms, u, v
        fields = [n for one in linear for n in one.fields]
        self.fields = [*[0] * (3 * N_FIELDS - len(fields)), *fields, *map(address, (*norms, u, v))]


def _scale(config: FlatConfig) -> np.float32:
    return np.float32(config.head_width**-0.5 if config.scale_scores else 1.0)


def _joined(parts: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    return np.concatenate([w for w, _ in parts]), np.concatenate([b for _, b in parts])
