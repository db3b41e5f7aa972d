"""FLAT in C: convert the weights of a model folder for runtime/native/flat.c, and call it for each batch.

The following is computed from the weights once:

- Queries, keys and values of the first layer are linear in the rows of the input tables, so both linear maps become
  one product, whose output is [x | q | k | v].
- The contribution of a character's row to this product is cached when the character first occurs, and so are the two
  contributions of its vector to bigrams without a vector.
- The tables of relative spans (runtime.relations).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from cige.errors import ModelError
from cige.lattice.lattice import Lattice
from cige.models.flat_config import FlatConfig
from cige.nn.memory import zeros_on_demand
from cige.runtime.embedding_table import EmbeddingTable
from cige.runtime.native import Library, Struct, address, n_threads
from cige.runtime.native_crf import DONE, MISSING, NO_ROOM, Asked, LabelFamilies, NativeCRF, read_spans
from cige.runtime.packed_linear import PackedLinear
from cige.runtime.precision import FLOAT32, attention_precision, available
from cige.runtime.ragged import RaggedLattices, RowReader, closed_chars, packed
from cige.runtime.relations import Relations, RelationTables
from cige.runtime.row_products import in_one_thread, row_by_row

_MOST_TRIES = 3  # the tables that a batch lacks are made at once, so a second try finds them
_OF_SENTENCES = ("n_chars", "n_words", "chars", "bigrams", "words", "starts", "ends", "labels")
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
        self, config: FlatConfig, weights: Mapping[str, np.ndarray], library: Library, precision: str = FLOAT32
    ):
        self._config, self._weights, self._library = config, weights, library
        self.precision = precision
        self.n_threads: int | None = None  # None: see `n_threads`
        self._attention = attention_precision(precision, available(library), config.head_width)
        linear = partial(PackedLinear, library, precision=precision)
        self._relations = RelationTables(config, weights)
        self._n_tags = len(weights["output.weight"])
        self._output = linear(weights["output.weight"], weights["output.bias"])
        self._input = _InputTables(config, weights, library, linear)
        self._layers = [_layer(config, weights, library, linear, number) for number in range(config.n_layers)]
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
        rules: Struct | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """The spans of lattices, of which at least one has characters; see NativeCRF.spans."""
        given = packed(lattices, rows.labels(lattices), self._library)

        def read(reading: Struct) -> int:
            described = self._described or self._prepare(rows(lattices))
            for _ in range(_MOST_TRIES):
                failed = self._library.read_lattices(described.model(rows, chain), given, reading)
                if failed != MISSING:
                    break
                described = self._prepare(rows(lattices))
            if failed == MISSING:
                raise ModelError("FLAT: the words of this text need tables that its lexicon rules out; it is damaged")
            if failed not in (DONE, NO_ROOM):
                raise MemoryError(f"FLAT: {_ERRORS.get(failed, failed)}")
            return failed

        asked = Asked(n_threads(self.n_threads), closed_chars(lattices), families, rules)
        return read_spans(read, asked, self._library, n_sentences=len(lattices), n_chars=given.total_chars)

    def padded_emissions(self, batch: RaggedLattices, attention: np.ndarray | None = None) -> np.ndarray:
        """float32[sum of n_chars, L and padding]; attention is added to `attention`."""
        described = self._prepare(batch)
        emissions = np.empty((len(batch.chars), self._output.n_out), np.float32)
        parts = {name: getattr(batch, name) for name in _OF_SENTENCES}
        failed = self._library.flat_emissions(
            described.flat,
            self._library.struct("Sentences", n_sentences=len(batch.n_chars), **parts),
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
    """The struct Flat of native/flat.h for one set of relation tables.

    Attributes:
        relations: the relation tables.
        flat: the struct.
    """

    def __init__(self, flat: NativeFlat, relations: Relations):
        config, library = flat._config, flat._library
        self.relations = relations
        self._config, self._library = config, library
        self._n_lanes, self._is_known = library.constants["PANEL"] // 2, flat._input.is_known
        self._form = FLOAT32 if config.position_score == "bias" else flat._attention
        shape = (config.n_layers, relations.max_reach + 2, relations.max_reach + 1)
        self._tables = np.zeros(
            shape, np.uintp
        )  # addresses for queries that are characters, then for words of each length
        self._kept: list[np.ndarray] = []
        self._model: tuple[RowReader, NativeCRF, Struct] | None = None
        self._layers = [
            library.struct("Layer", **layer, relation=own, word_relation=own[1:])
            for layer, own in zip(flat._layers, self._tables, strict=True)
        ]
        self.flat = library.struct(
            "Flat",
            **{name: getattr(config, name) for name in ("n_layers", "n_heads", "head_width", "width", "ff_width")},
            step=flat._input.step,
            relation_chars=relations.n_chars,
            relation_step=relations.column_step,
            n_reaches=relations.max_reach + 1,
            residual=config.residual,
            is_bias=config.position_score == "bias",
            uses_words=config.use_words,
            mask_self_matched=config.mask_self_matched,
            max_distance=config.max_distance or 0,
            is_masked_by_distance=config.max_distance is not None,
            attention=library.constants[flat._attention.upper()],
            n_char_numbers=flat._input.n_char_numbers,
            scale=_scale(config),
            **flat._input.fields,
            output=flat._output.struct,
            layers=library.array(self._layers),
        )
        library.model(flat=self.flat)

    def model(self, rows: RowReader, chain: NativeCRF) -> Struct:
        """The handle of the model with these parts, which is made when they are first given."""
        made = self._model
        if made is None or made[0] is not rows or made[1] is not chain:
            model = self._library.model(
                vocabulary=rows.struct, flat=self.flat, chain=chain.struct, is_known=self._is_known
            )
            self._model = made = rows, chain, model
        return made[2]

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
        label_rows = None  # the model ignores labels of words
        if config.reads_word_labels or config.reads_gazetteers:
            labels = _of_labels(config, weights)
            label_rows = np.zeros((len(labels), 4 * self.step), np.float32)
            label_rows[:] = self._in_parts(labels.T).T
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


def _table(table: EmbeddingTable, library: Library) -> Struct:
    sizes = {"n_tuned": len(table.tuned), "width": table.width, "n_bytes": table.fixed.dtype.itemsize}
    return library.struct("Table", tuned=table.tuned, fixed=table.fixed, scale=table.scale, **sizes)


def _layer(
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

    scale = _scale(config)
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


def _scale(config: FlatConfig) -> np.float32:
    return np.float32(config.head_width**-0.5 if config.scale_scores else 1.0)


def _joined(parts: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    return np.concatenate([w for w, _ in parts]), np.concatenate([b for _, b in parts])
