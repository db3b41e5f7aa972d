"""The arrays that a model folder must have, by its configuration; checked before C reads any of them by address.

The author of a folder also writes its checksums, so these say only that the folder is complete. What keeps compiled
code inside its arrays is that every array has the shape and the number type that the configuration gives, that every
row number is one of its table, and that numbers which decide loops are in range.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from cige.data.vocabulary import Vocabulary
from cige.folders.checked_settings import MAX_WIDTH, check_settings
from cige.models.flat_config import DISTANCES, FlatConfig
from cige.models.pair_grid_config import PairGridConfig

if TYPE_CHECKING:
    from cige.models.soft_lexicon_config import SoftLexiconConfig

Shape = tuple[int, ...]
RuntimeConfig: TypeAlias = "FlatConfig | SoftLexiconConfig"
_EMBEDDINGS = "encoder.embeddings."
_TYPES_OF_ROWS = (np.int8, np.float16, np.float32)
CRF_MASKS = {"allowed_start": "start", "allowed": "transitions", "allowed_end": "end"}
_PARTS = ("tuned", "fixed", "scale")


def check_weights(
    config: RuntimeConfig,
    weights: Mapping[str, np.ndarray],
    vocabulary: Vocabulary,
    *,
    n_tags: int,
    head: PairGridConfig | None = None,
) -> None:
    """Check the arrays of a FLAT or a SoftLexicon with a CRF, or with a head that scores spans of `n_tags` types.

    Raises:
        ValueError: an array is missing, has another shape or number type than the configuration gives, or holds a
            number that is not finite; there is an array that the network does not have; or a setting is not valid.
    """
    check_settings(config)
    _check_sizes(config)
    tables = _tables(config, vocabulary)
    widths = {name: _check_table(name, n_rows, weights) for name, n_rows in tables.items()}
    if "char_word" in widths and widths["char_word"] != widths["word"]:
        raise ValueError(f"char_word has rows of {widths['char_word']} numbers, and word of {widths['word']}")
    shapes = _flat(config, widths, vocabulary) if isinstance(config, FlatConfig) else _soft_lexicon(config, widths)
    shapes |= _backoff(config, widths) | _components(config, vocabulary)
    shapes |= _crf(config, n_tags) if head is None else _head(config, n_tags, head)
    masks = CRF_MASKS if head is None else {}
    expected = {name: ("float32", shape) for name, shape in shapes.items()}
    expected |= {f"crf.{mask}": ("bool", shapes[f"crf.{scores}"]) for mask, scores in masks.items()}
    for name, (dtype, shape) in expected.items():
        if name not in weights:
            raise ValueError(f"{name} is missing; expected {dtype}{list(shape)}")
        array = weights[name]
        if array.dtype != dtype or array.shape != shape:
            raise ValueError(f"{name} is {array.dtype}{list(array.shape)}; expected {dtype}{list(shape)}")
        if not np.isfinite(array).all():
            raise ValueError(f"{name} has numbers that are not finite")
    # Code that asks whether an array is there must not find one whose shape nobody has checked.
    of_tables = {f"{_EMBEDDINGS}{table}.{part}" for table in tables for part in _PARTS}
    if unknown := sorted(weights.keys() - expected.keys() - of_tables):
        raise ValueError(f"{unknown[0]} is none of the arrays that its configuration has")


def _linear(name: str, n_out: int, n_in: int, *, bias: bool = True) -> dict[str, Shape]:
    """The arrays of a linear layer."""
    return {f"{name}.weight": (n_out, n_in)} | ({f"{name}.bias": (n_out,)} if bias else {})


def _crf(config: RuntimeConfig, n_tags: int) -> dict[str, Shape]:
    shapes = _linear("output", n_tags, _feature_width(config))
    return shapes | {"crf.start": (n_tags,), "crf.transitions": (n_tags, n_tags), "crf.end": (n_tags,)}


def _head(config: RuntimeConfig, n_types: int, head: PairGridConfig) -> dict[str, Shape]:
    """The arrays of `nn.pair_grid`."""
    n_sets = 1 if head.efficient else n_types
    shapes = _linear("output.pairs", 2 * head.head_width * n_sets, _feature_width(config))
    return shapes | (_linear("output.types", n_types, 4 * head.head_width) if head.efficient else {})


def _check_sizes(config: RuntimeConfig) -> None:
    """What `check_settings` does not know: the width that several settings make, and the names of distances."""
    width = _feature_width(config)
    if width > MAX_WIDTH or width % 2:
        raise ValueError(f"config: a width of {width}; expected an even number of at most {MAX_WIDTH}")
    if not isinstance(config, FlatConfig):
        return
    distances = config.distances
    if not distances or not set(distances) <= set(DISTANCES) or len(set(distances)) < len(distances):
        raise ValueError(f"config.distances is {list(distances)}; expected some of {', '.join(DISTANCES)}")


def _tables(config: RuntimeConfig, vocabulary: Vocabulary) -> dict[str, int]:
    """The number of rows of each embedding table; their widths are those that the folder has."""
    n_chars, n_bigrams, n_words = vocabulary.n_rows
    tables = {"char": n_chars}
    if config.use_bigrams:
        tables["bigram"] = n_bigrams
    if config.use_words or isinstance(config, FlatConfig):
        tables["word"] = n_words
    if config.reads_char_words if isinstance(config, FlatConfig) else config.use_words:
        tables["char_word"] = n_chars
    return tables


def _check_table(table: str, n_rows: int, weights: Mapping[str, np.ndarray]) -> int:
    """The width of a table whose parts fit together."""
    name = _EMBEDDINGS + table
    missing = [part for part in _PARTS if f"{name}.{part}" not in weights]
    if missing:
        raise ValueError(f"{name}.{missing[0]} is missing")
    tuned, fixed, scale = (weights[f"{name}.{part}"] for part in _PARTS)
    if tuned.ndim != 2 or tuned.dtype != np.float32 or not 1 <= tuned.shape[1] <= MAX_WIDTH:
        raise ValueError(f"{name}.tuned is {tuned.dtype}{list(tuned.shape)}; expected float32 rows")
    n_fixed = n_rows - len(tuned)
    if fixed.shape != (n_fixed, tuned.shape[1]) or fixed.dtype not in _TYPES_OF_ROWS:
        raise ValueError(
            f"{name}.fixed is {fixed.dtype}{list(fixed.shape)}; expected int8, float16 or float32"
            f"{[n_fixed, tuned.shape[1]]}"
        )
    expected = (n_fixed, 1) if fixed.dtype == np.int8 else (0, 1)
    if scale.shape != expected or scale.dtype != np.float16:
        raise ValueError(f"{name}.scale is {scale.dtype}{list(scale.shape)}; expected float16{list(expected)}")
    for part, array in (("tuned", tuned), ("scale", scale)):
        if not np.isfinite(array).all():
            raise ValueError(f"{name}.{part} has numbers that are not finite")
    return int(tuned.shape[1])


def _components(config: RuntimeConfig, vocabulary: Vocabulary) -> dict[str, Shape]:
    """The arrays of `nn.components`; their table and the settings must both be there."""
    read, table = config.components, vocabulary.components
    if (read is None) != (table is None):
        raise ValueError(f"config.components is {read}, but the vocabulary has {'no' if table is None else 'a'} table")
    if read is None or table is None:
        return {}
    name, width = "encoder.components", read.embedding_width
    kernel = {f"{name}.convolution.weight": (width, width, 3), f"{name}.convolution.bias": (width,)}
    embedding = _linear(f"{name}.embedding", table.n_components, width, bias=False)
    return embedding | kernel | _linear(f"{name}.output", read.width, width)


def _char_width(config: RuntimeConfig, widths: Mapping[str, int]) -> int:
    """The width of a character's vector, with those of its bigram and of its components if the model reads these."""
    of_components = config.components.width if config.components is not None else 0
    return widths["char"] + widths.get("bigram", 0) + of_components


def _feature_width(config: RuntimeConfig) -> int:
    return config.width if isinstance(config, FlatConfig) else config.lstm_width


def _backoff(config: RuntimeConfig, widths: Mapping[str, int]) -> dict[str, Shape]:
    """The layer that computes vectors of bigrams without a row from those of their characters."""
    has_layer = config.bigram_backoff and "bigram" in widths
    return _linear(f"{_EMBEDDINGS}backoff", widths["bigram"], 2 * widths["char"]) if has_layer else {}


def _flat(config: FlatConfig, widths: Mapping[str, int], vocabulary: Vocabulary) -> dict[str, Shape]:
    d = config.width
    n_char = _char_width(config, widths) + widths.get("char_word", 0)
    shapes = _linear("encoder.char_projection", d, n_char) | _linear("encoder.word_projection", d, widths["word"])
    shapes |= _linear("encoder.fusion.weight", d, len(config.distances) * d, bias=config.fusion_bias)
    if config.reads_word_labels:
        shapes["encoder.word_labels.weight"] = (len(vocabulary.word_labels) + 2, d)
    if config.reads_gazetteers:
        shapes["encoder.gazetteers.weight"] = (d, vocabulary.n_groups - 1)
    for number in range(config.n_layers):
        shapes |= {f"encoder.layers.{number}.{name}": shape for name, shape in _flat_layer(config).items()}
    return shapes


def _flat_layer(config: FlatConfig) -> dict[str, Shape]:
    d, heads = config.width, (config.n_heads, config.head_width)
    shapes: dict[str, Shape] = {"attention.u": heads}
    for part in ("query", "value", *(("key",) if config.key_projection else ())):
        shapes |= _linear(f"attention.{part}", d, d, bias=config.attention_bias)
    if config.position_score == "exact":
        shapes |= {"attention.v": heads, "attention.relation_key.weight": (d, d)}
    else:
        shapes["attention.relation_bias.weight"] = (config.n_heads, d)
    for norm in ("attention_norm", *(() if config.shared_layer_norm else ("ff_norm",))):
        shapes |= {f"{norm}.weight": (d,), f"{norm}.bias": (d,)}
    return shapes | _linear("ff_in", config.ff_width, d) | _linear("ff_out", d, config.ff_width)


def _soft_lexicon(config: SoftLexiconConfig, widths: Mapping[str, int]) -> dict[str, Shape]:
    width = config.lstm_width // 2
    n_in = _char_width(config, widths) + 4 * widths.get("word", 0)
    shapes: dict[str, Shape] = {"encoder.soft_lexicon.none": (widths["word"],)} if "word" in widths else {}
    for number in range(config.n_layers):
        for side in ("forward", "backward"):
            name = f"encoder.lstm.{side}_layers.{number}"
            shapes[f"{name}.weight_ih_l0"] = (4 * width, n_in if number == 0 else 2 * width)
            shapes[f"{name}.weight_hh_l0"] = (4 * width, width)
            shapes |= {f"{name}.bias_ih_l0": (4 * width,), f"{name}.bias_hh_l0": (4 * width,)}
    return shapes
