"""FLAT in C: describe a model to runtime/native/flat.c, with the relative spans that a batch needs, and call it."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from cige.errors import ModelError
from cige.lattice.lattice import Lattice
from cige.models.flat_config import FlatConfig
from cige.runtime.flat_weights import InputTables, layer_fields
from cige.runtime.native import Library, Struct, address, n_threads
from cige.runtime.native_crf import DONE, MISSING, NO_ROOM, LabelFamilies, NativeCRF, read_spans
from cige.runtime.packed_linear import PackedLinear
from cige.runtime.precision import FLOAT32, attention_precision, available
from cige.runtime.ragged import RaggedLattices, RowReader, closed_chars, packed
from cige.runtime.relations import Relations, RelationTables

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
        self._input = InputTables(config, weights, library, linear)
        self._layers = [layer_fields(config, weights, library, linear, number) for number in range(config.n_layers)]
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

        return read_spans(
            read,
            self._library,
            n_sentences=len(lattices),
            n_chars=given.total_chars,
            n_threads=n_threads(self.n_threads),
            is_closed=closed_chars(lattices),
            families=families and families.struct,
            rules=rules,
        )

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
        # Addresses for queries that are characters, then for words of each length.
        self._tables = np.zeros(shape, np.uintp)
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
            scale=np.float32(config.score_scale),
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
