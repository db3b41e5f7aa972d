"""Structs of the compiled runtime: filled by name as the library lays them out, and refused by C if they do not fit."""

from __future__ import annotations

import ctypes
import math
import re
from dataclasses import replace

import numpy as np
import pytest
import tiny
from runtime_forms import LEVELS

from cige.errors import ModelError
from cige.lattice.lattice import build_lattice
from cige.models.soft_lexicon_config import SoftLexiconConfig
from cige.runtime import native
from cige.runtime.native.structs import Field, read_layout
from cige.runtime.native_model import NativeModel

pytestmark = pytest.mark.skipif(not LEVELS, reason="nothing was compiled")
MISSING = math.nan  # given as a value: a pointer that is NULL


@pytest.fixture(scope="module")
def library() -> native.Library:
    return native.load(LEVELS[-1])


def rows(*given: tuple[str, str | None, str | None, int, int]):
    """The table of a library that has these fields."""
    encoded = [[x.encode() if isinstance(x, str) else x for x in row] for row in given]
    return (Field * (len(given) + 1))(*(Field(*row) for row in encoded))


@pytest.mark.parametrize("level", LEVELS)
def test_the_library_says_what_its_structs_are(level):
    """Every level has the same; numbers are where the others of C expect them."""
    found, first = native.load(level), native.load(LEVELS[0])
    assert found.structs.keys() == first.structs.keys() >= {"Flat", "Chain", "Vocabulary", "Model", "Problem"}
    assert found.structs["ScoredSpan"]._fields_ == [
        *((name, ctypes.c_int32) for name in ("start", "end", "label", "unused")),
        ("score", ctypes.c_double),
    ]
    assert ctypes.sizeof(found.structs["Linear"]) == 48 and found.structs["Linear"].bias.offset == 24
    assert found.constants["PANEL"] == found.panel_width() and found.constants["BLOCK"] == 8
    names = ("FLOAT32", "BFLOAT16", "INT8", "INT16", "DONE", "NO_MEMORY", "MISSING", "NO_ROOM")
    assert [found.constants[name] for name in names] == [*range(4)] * 2


def test_a_struct_is_filled_by_name(library):
    scores = np.arange(4.0)
    made = library.struct("Families", n_families=2, family=np.array([0, 1], np.int32), threshold=scores)
    assert made.n_families == 2 and made.threshold == native.address(scores)
    assert library.struct("Families", n_families=0, family=None, threshold=None).family is None
    inner = library.struct("Norm", weight=np.ones(3, np.float32), bias=None)
    given = dict.fromkeys(library.structs["Layer"].fields) | {"ff_norm": inner}
    assert library.struct("Layer", **given).ff_norm.weight == inner.weight


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"n_families": 1, "family": None}, r"not filled: \['threshold'\], not there: \[\]"),
        (
            {"n_families": 1, "family": None, "thresholds": None},
            r"not filled: \['threshold'\], not there: \['thresholds'\]",
        ),
    ],
)
def test_fields_that_the_library_does_not_have_are_refused(library, fields, told):
    with pytest.raises(ModelError, match=rf"struct Families: {told}; .*build it again: .*pip install"):
        library.struct("Families", **fields)


@pytest.mark.parametrize(
    ("family", "told"),
    [
        (np.zeros(3), r"Families\.family: given float64\[3\]; expected int32"),
        (np.zeros(6, np.int32)[::2], r"Families\.family: given int32\[3\], not contiguous; expected int32"),
    ],
)
def test_arrays_of_another_kind_are_refused(library, family, told):
    with pytest.raises(TypeError, match=told):
        library.struct("Families", n_families=1, family=family, threshold=None)


def test_structs_of_another_kind_are_refused(library):
    norm = library.struct("Norm", weight=None, bias=None)
    with pytest.raises(TypeError, match=r"Model\.chain: given Norm; expected Chain"):
        library.model(chain=norm)
    with pytest.raises(ctypes.ArgumentError):
        library.one_product(norm, None, 0, None, 0)


def test_a_table_whose_fields_are_elsewhere_is_refused():
    sound = [("Norm", None, "struct", 0, 16), ("Norm", "weight", "float32*", 0, 8), ("Norm", "bias", "float32*", 8, 8)]
    assert [*read_layout(rows(*sound))[0]] == ["Norm"]
    for k, changed in ((0, ("Norm", None, "struct", 0, 24)), (2, ("Norm", "bias", "float32*", 12, 8))):
        with pytest.raises(ModelError, match=r"struct Norm: its fields are not where .*build it again"):
            read_layout(rows(*sound[:k], changed, *sound[k + 1 :]))


@pytest.fixture(scope="module")
def parts(tmp_path_factory, library) -> dict:
    """The structs of a FLAT of two layers, and of a layer of an LSTM."""
    folder = tmp_path_factory.mktemp("structs")
    config = replace(tiny.CONFIG, n_layers=2, bigram_backoff=True, char_words=True)
    tiny.model(config=config).save(folder / "flat")
    tiny.model(architecture="soft_lexicon", config=SoftLexiconConfig(lstm_width=32)).save(folder / "soft")
    model = NativeModel.load(folder / "flat", kernels=LEVELS[-1])
    lattices = [build_lattice("北京的罗氏公司", model.lexicon.snapshot())]
    model.find_spans(lattices)
    soft = NativeModel.load(folder / "soft", kernels=LEVELS[-1])
    described = model.network._described
    copies = model.chain.chain(n_slots=1)
    return {
        **described.model(model.rows, model.chain).values,
        "lstm": soft.network._lstm._layers[0]._struct,
        "copies": copies.struct,
        "kept": (model, soft, copies),
    }


def changed(struct, path: str, change):
    """A copy of a struct with another value of a field, such as layers[1].ff_in.bias, and what must be kept alive.

    `change` is the value, or what makes it of the old one.
    """
    copy = type(struct).from_buffer_copy(struct)
    name, _, rest = path.partition(".")
    array = re.fullmatch(r"(\w+)\[(\d+)\]", name)
    if array is None and rest:
        inner, kept = changed(getattr(struct, name), rest, change)
        setattr(copy, name, inner)
        return copy, kept
    if array is None:
        old = getattr(struct, name)
        setattr(copy, name, None if change is MISSING else change(old) if callable(change) else change)
        return copy, None
    name, number = array[1], int(array[2])
    old = struct.values[name]
    if rest:
        layers = (type(old[0]) * len(old))(*old)
        layers[number], kept = changed(old[number], rest, change)
    else:
        layers, kept = old.reshape(-1).copy(), None
        layers[number] = change
    setattr(copy, name, native.address(layers) if isinstance(layers, np.ndarray) else ctypes.addressof(layers))
    return copy, (layers, kept)


def more(n: int):
    return lambda value: value + n


REFUSED = {
    "flat": [
        *(("n_layers", n, "1 to 64") for n in (0, 65)),
        *((name, 0, "1 to 65536") for name in ("n_heads", "head_width", "ff_width")),
        ("width", more(1), None),
        ("step", more(1), None),
        *((name, 0, "1 to ") for name in ("relation_chars", "n_reaches")),
        ("relation_step", 100, "191 to "),
        *((f"{name}", 2, "0 to 1") for name in ("residual", "is_bias", "uses_words", "mask_self_matched")),
        *((f"{name}", -1, "0 to 1") for name in ("is_masked_by_distance", "has_bigrams", "has_backoff")),
        ("max_distance", 1 << 40, "-1073741824 to "),
        ("attention", 4, "0 to 3"),
        ("attention", 2, "3"),  # products in 8 bits are not a form of attention
        ("n_char_numbers", more(-1), None),
        ("scale", 2.0, "0 to 1"),
        *((name, MISSING, None) for name in ("char_rows", "layers")),
        *((f"bigram.{name}", MISSING, None) for name in ("tuned", "fixed")),
        ("bigram.n_tuned", -1, "0 to "),
        ("word.width", 0, "1 to 65536"),
        ("word.n_bytes", 0, "1 to 4"),
        ("word.n_bytes", 3, "4"),
        ("from_bigram.n_in", more(1), None),
        ("from_word.n_panels", more(-1), None),
        ("output.n_in", more(1), None),
        ("output.n_panels", 0, "1 to "),
        *((f"output.{name}", MISSING, None) for name in ("panels", "bias")),
        *(("output.precision", n, "0 to 3") for n in (-1, 4)),
        *((f"layers[0].{name}", MISSING, None) for name in ("u", "v", "relation", "word_relation")),
        *(
            (f"layers[1].{norm}.{name}", MISSING, None)
            for norm in ("attention_norm", "ff_norm")
            for name in ("weight", "bias")
        ),
        ("layers[1].query_key_value.n_panels", more(1), None),
        ("layers[0].ff_in.n_panels", more(-1), None),
        ("layers[1].ff_out.n_in", more(1), None),
    ],
    "chain": [
        ("n_tags", 0, "1 to "),
        ("n_lanes", more(8), None),
        *(
            (name, MISSING, None)
            for name in ("start", "end", "scores", "into", "order", "prefix", "label", "places", "longest")
        ),
        ("is_open", 2, "0 to 1"),
        ("n_labels", -1, "0 to "),
        ("n_slots", 1, "0"),
        ("n_plain", more(-8), None),
        *(
            (f"{side}.{name}", MISSING, None)
            for side in ("best", "forward", "backward")
            for name in ("first", "place", "numbers")
        ),
        ("order[1]", -1, "0 to "),
        ("prefix[2]", 5, "0 to 4"),
        ("label[0]", 99, "-1 to "),
        ("places[1]", 99, "-1 to "),
        ("longest[0]", -1, "0 to "),
    ],
    "copies": [
        *((name, MISSING, None) for name in ("slot", "part")),
        ("order[0]", 1000, "0 to "),
        ("slot[3]", 1, "-1 to 0"),
        ("n_plain", 0, "8 to "),
        ("n_slots", 201, "0 to 200"),
    ],
    "vocabulary": [
        *((f"chars.{name}", MISSING, None) for name in ("keys", "rows")),
        ("chars.bits", 0, "1 to 40"),
        *((f"bigrams.{name}", MISSING, None) for name in ("begin", "codes", "rows")),
        ("bigrams.n_firsts", -1, "0 to "),
        ("bigrams.n_codes", -1, "0 to "),
        ("word_rows", MISSING, None),
        ("n_base", -1, "0 to "),
    ],
    "lstm": [
        ("width", 0, None),
        ("width", more(1), None),
        ("forward.n_in", more(1), None),
        ("backward.n_panels", more(1), None),
        ("backward.panels", MISSING, None),
    ],
}


def test_the_structs_themselves_are_accepted(library, parts):
    for name, fields in REFUSED.items():
        assert library.model(**{"chain" if name == "copies" else name: parts[name]})
        assert fields
    assert library.model(**{name: parts[name] for name in ("vocabulary", "flat", "chain", "is_known")})


@pytest.mark.parametrize(
    ("part", "path", "value", "expected"),
    [(part, *case) for part, cases in REFUSED.items() for case in cases],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_a_field_that_does_not_fit_is_named(library, parts, part, path, value, expected):
    given, _kept = changed(parts[part], path, value)
    name = "chain" if part == "copies" else part
    with pytest.raises(ModelError) as caught:
        library.model(**{name: given})
    told = str(caught.value).removeprefix("the compiled runtime cannot read this model: ")
    if value is MISSING:
        assert told == f"{name}.{path} is missing"
    elif expected is None:
        assert re.fullmatch(rf"{re.escape(f'{name}.{path}')} is -?\d+; expected \d+( to \d+)?", told), told
    else:
        number = value if isinstance(value, int) else int(value)
        assert told.startswith(f"{name}.{path} is {number}; expected {expected}"), told


def test_entries_of_arrays_are_named_by_their_number(library, parts):
    sound = parts["chain"]
    for side in ("best", "forward", "backward"):
        own = getattr(sound, side)
        for name, number, value, n in (("first", 0, 1, 1), ("first", 1, 99, 2), ("place", 3, 50, 4)):
            old = sound.values[side].values[name]
            entries = old.copy()
            entries[number] = value
            copy, _ = changed(sound, f"{side}.{name}", native.address(entries))
            with pytest.raises(ModelError, match=re.escape(f"chain.{side}.{name}[{number}] is {value};")):
                library.model(chain=copy)
            assert getattr(own, name) == native.address(old) and len(old) >= n


def test_a_hash_table_that_is_full_is_refused(library, parts):
    """A search for a code that it lacks would not end."""
    keys = np.full(2, 5, np.uint64), np.zeros(2, np.int32)
    codes = library.struct("Codes", keys=keys[0], rows=keys[1], bits=1)
    copy, _ = changed(parts["vocabulary"], "chars", codes)
    with pytest.raises(ModelError, match=r"vocabulary\.chars\.keys is 2; expected 0 to 1"):
        library.model(vocabulary=copy)


def test_places_of_first_characters_are_within_their_codes(library, parts):
    pairs = parts["vocabulary"].values["bigrams"]
    begin = pairs.values["begin"].copy()
    begin[-1] += 1
    copy, _ = changed(parts["vocabulary"], "bigrams.begin", native.address(begin))
    told = f"vocabulary.bigrams.begin[{len(begin) - 1}] is {begin[-1]}; expected {begin[-2]} to {begin[-1] - 1}"
    with pytest.raises(ModelError, match=re.escape(told)):
        library.model(vocabulary=copy)
    begin[0] = begin[1] + 1
    with pytest.raises(ModelError, match=r"vocabulary\.bigrams\.begin\[0\] is"):
        library.model(vocabulary=copy)


def test_a_model_of_flat_and_chain_has_all_that_they_read(library, parts):
    both = {"flat": parts["flat"], "chain": parts["chain"]}
    with pytest.raises(ModelError, match=r"model\.is_known is missing"):
        library.model(**both, vocabulary=parts["vocabulary"])
    with pytest.raises(ModelError, match=r"model\.vocabulary is missing"):
        library.model(**both, is_known=parts["is_known"])


def test_the_chain_reads_no_more_columns_than_the_output_has(library, parts):
    order = parts["chain"].values["order"].copy()
    order[0] = 1000
    chain, _ = changed(parts["chain"], "order", native.address(order))
    with pytest.raises(ModelError, match=r"flat\.output\.n_panels is \d+; expected \d+ to"):
        library.model(flat=parts["flat"], chain=chain)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("precision", ["BFLOAT16", "INT8", "INT16"])
def test_a_precision_without_a_kernel_is_refused(level, precision, parts, tmp_path):
    library = native.load(level)
    number = library.constants[precision]
    if library.has_precision(number):
        pytest.skip(f"{level} has {precision}")
    tiny.model().save(tmp_path / "model")
    sound = NativeModel.load(tmp_path / "model", kernels=level)
    described = sound.network._prepare(sound.rows([build_lattice("北京", sound.lexicon.snapshot())]))
    for path in ("output.precision", "layers[0].ff_in.precision"):
        given, _kept = changed(described.flat, path, number)
        with pytest.raises(ModelError, match=re.escape(f"flat.{path} is {number}; expected 0")):
            library.model(flat=given)


def test_a_model_that_is_refused_is_not_opened(monkeypatch, tmp_path):
    tiny.model().save(tmp_path / "model")

    def refuse(self, **parts):
        raise ModelError(f"refused: {', '.join(parts)}")

    monkeypatch.setattr(native.Library, "model", refuse)
    with pytest.raises(ModelError, match="refused: chain"):
        NativeModel.load(tmp_path / "model", kernels=LEVELS[-1])
