"""Files in the form that a reader expects whose values are hostile: what damage by chance hardly ever makes.

Offsets outside the text, ends before starts, overlapping and nested spans, labels that are no strings, lone surrogates,
numbers of hundreds of digits, columns of other types, dictionary-encoded and null values, more rows than bytes.
"""

import datetime
import decimal
import io
import json
import random
import zlib
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from typing import Any

TEXT = "昨天阿拉善贺兰草宣布，林晓岚抵达南京市😀。"
ODD_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2**31, -(2**63), 10**400, 0.5, 1e308, float("nan"), float("inf")),
    *("", "LOC", "\n", "\ud83d", "甲\u2028\x00", "9" * 5000, "1", "text", "\ude00\ud83d"),
    *([], {}, [[]], [None], [1, 2, 3], {"": 1}, {"start": 1}, {"labels": [1]}, {"text": {}}, [{"type": "labels"}]),
)
ODD_KEYS = ("text", "start", "label", "labels", "entities", "data", "value", "", "\ud83d")


def places_in(value: Any, without: Sequence[str] = (), depth: int = 1) -> Iterator[tuple[Any, Any, int]]:
    """(list or dict, key, depth) of all that is in a list or dict, apart from what stands under some keys."""
    for key in list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        if key not in without:
            yield value, key, depth
            yield from places_in(value[key], without, depth + 1)


def change_value(value: Any, rng: random.Random, *, without: Sequence[str] = (), odd: Sequence[Any] = ()) -> str:
    """Change something in a list or dict, half the time near its top; returns what was done.

    Args:
        without: keys below which nothing changes.
        odd: values besides ODD_VALUES.
    """
    places = list(places_in(value, without))
    if not places:
        return "nothing to change"
    shallow = [place for place in places if place[2] <= 2]
    (owner, key, _), (other, other_key, _) = rng.choice(rng.choice((shallow, places))), rng.choice(places)
    old, what = owner[key], rng.randrange(6)
    made = rng.choice((*ODD_VALUES, *odd)) if what else other[other_key]
    if what == 1 and isinstance(owner, dict):
        owner[rng.choice(ODD_KEYS)] = owner.pop(key)
        return f"{key} renamed"
    if what == 2:
        del owner[key]
        return f"{key} deleted"
    if type(old) is int and 0 < what < 5:
        made = rng.choice((old - 3, old - 1, old + 1, old + 2, old + 40, old + 2**40, -old, old * 2))
    elif isinstance(old, list) and 0 < what < 4:
        made = rng.choice((old[:-1], old * 2, old[::-1], [*old, made], old * 50))
    elif type(old) is bool and 0 < what < 5:
        made = not old
    owner[key] = deepcopy(made)
    return f"{key} = {repr(made)[:60]}"


def odd_json(seed: bytes, rng: random.Random) -> bytes:
    """JSON, or JSON lines, with one to three changes; other texts get a value at their end."""
    text = seed.decode("utf-8", "surrogateescape")
    try:
        lines, form = [json.loads(text)], "array"
    except ValueError:
        try:
            lines, form = [json.loads(line) for line in text.split("\n") if line.strip()], "lines"
        except ValueError:
            return seed + json.dumps(rng.choice(ODD_VALUES)).encode()
    for _ in range(rng.randint(1, 3)):
        change_value(lines, rng)
    shown = "\n".join(map(json.dumps, lines)) if form == "lines" else json.dumps(lines[0] if lines else None)
    return shown.encode()


def odd_brat(seed: bytes, rng: random.Random) -> bytes:
    """A text and annotations, between which a byte 1E stands."""
    text = rng.choice((TEXT, "", "\n", "南京\r\n市", "a" * 200))
    lines = []
    for k in range(rng.randint(0, 4)):
        places = [f"{rng.choice((0, 1, 2, 5, 40, 10**30))} {rng.choice((0, 1, 3, 6, 41, 10**30))}" for _ in range(2)]
        label = rng.choice(("LOC", "", " ", "L\u2028C", "\ufeff", "９", "LOC\tX"))
        lines.append(f"T{k}\t{label} {';'.join(places[: rng.randint(1, 2)])}\t{rng.choice((TEXT[:3], '', chr(9)))}")
    others = ("R1\tX Arg1:T1 Arg2:T9", "T", "T\t\t", "T1\tLOC ٣ ٤\t阿", "#1\tnote", "E1\tX:T1", "*\tEquiv T1 T2")
    return f"{text}\x1e{chr(10).join([*lines, *rng.choices(others, k=2)])}".encode()


def odd_parquet(seed: bytes, rng: random.Random) -> bytes:
    """A Parquet file whose columns have types and values by chance."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    n_rows = rng.choice((0, 1, 3, 3, 3, 3, 50))
    names = ("text", "entities", "tokens", "ner_tags", "meta", "a\nb", "")
    columns = [rng.choice(names) for _ in range(rng.randint(0, 3))]
    if rng.random() < 0.8:
        columns = list(dict.fromkeys([*rng.choice((("text", "entities"), ("tokens", "ner_tags"))), *columns]))
    arrays = [_odd_column(name, n_rows, rng) for name in columns]
    tags = rng.choice(({"feature": {"names": ["O", "B-X", "I-X"]}}, *ODD_VALUES))
    features = json.dumps({"info": {"features": {"ner_tags": tags}}})
    facts = rng.choice((None, None, {"huggingface": features}, {b"huggingface": b"\xff["}))
    schema = pa.schema([pa.field(name, x.type) for name, x in zip(columns, arrays, strict=True)], metadata=facts)
    form: dict[str, Any] = {"compression": rng.choice(("none", "zstd", "snappy", "gzip"))}
    form |= {"use_dictionary": rng.random() < 0.5, "data_page_version": rng.choice(("1.0", "2.0"))}
    out = io.BytesIO()
    try:
        table = pa.Table.from_arrays(arrays, schema=schema)
        pq.write_table(table, out, row_group_size=rng.choice((1, 2, 100)), **form)
    except (pa.ArrowException, ValueError, OSError):  # a column that Parquet cannot hold
        return seed
    return out.getvalue()


def _odd_column(name: str, n_rows: int, rng: random.Random) -> Any:
    import pyarrow as pa

    string, int64, binary = pa.string(), pa.int64(), pa.binary()
    entity = pa.struct([("start", pa.int32()), ("end", pa.int32()), ("label", string), ("text", string)])
    spans = [[{"start": 2, "end": 7, "label": "ORG"}], [], None, [{"start": 9, "end": 2, "label": None}], [None]]
    spans.append([{"start": 0, "end": 7, "label": "ORG"}, {"start": 2, "end": 9, "label": "\n"}])
    spans.append([{"start": -1, "end": 99}])
    day, when = datetime.date(2024, 1, 1), datetime.datetime(2024, 1, 1)
    mixed = pa.struct([("start", pa.float64()), ("end", pa.date32()), ("label", binary)])
    zone = rng.choice(("UTC", "Mars/Phobos", "+99:99"))
    typed: list[tuple[Any, list[Any]]] = [
        (string, [TEXT, None, "", "甲\n乙", '[{"start": 0, "end": 1, "label": "X"}]', "[[0, 1, 7]]", "{", "null"]),
        (pa.large_string(), [TEXT]),
        (pa.string_view(), [TEXT, None]),
        (pa.dictionary(pa.int8(), string), [TEXT, None]),
        (binary, [TEXT.encode(), b"\xff\x00", None]),
        (pa.list_(entity), spans),
        (pa.large_list(entity), spans),
        (pa.map_(string, int64), [[("start", 1)], [], None]),
        (pa.list_(pa.map_(string, int64)), [[[("start", 1), ("end", 3)]]]),
        (pa.list_(pa.list_(int64)), [[[0, 1, 2]], [[]], None]),
        (pa.list_(pa.timestamp("s")), [[when], None]),
        (pa.list_(binary), [[b"\xff"], [b""]]),
        (pa.struct([("start", pa.decimal128(9, 2))]), [{"start": decimal.Decimal("1.5")}, None]),
        (pa.list_(mixed), [[{"start": 1.0, "end": day, "label": b"\xff"}]]),
        (pa.timestamp("ns"), [2**62, -(2**62), 0, None]),
        (pa.timestamp("s", tz=zone), [2**50, 0]),
        (pa.date32(), [2**31 - 1, 0]),
        (pa.duration("ns"), [2**62]),
        (pa.float64(), [float("nan"), 1e308, None]),
        (pa.bool_(), [True, None]),
        (pa.null(), [None]),
        (pa.list_(string), [["南", "京"], [None, ""], [], None, ["O", "B-X"], ["B-X", "I-X"]]),
        (pa.list_(int64), [[1, 2], [0, 0], [-1, 9], None, [0, None]]),
        (pa.list_(pa.uint8()), [[1, 2], [0, 0]]),
    ]
    usual = {"text": (0, 0, 0, 0, 1, 3), "entities": (5, 5, 5, 6), "tokens": (21,), "ner_tags": (21, 22, 22)}
    places = usual.get(name, ())
    number = rng.choice(places) if places and rng.random() < 0.85 else rng.randrange(len(typed))
    kind, values = typed[number]
    usually = values[0] if rng.random() < 0.9 else rng.choice(values)
    found = pa.array([usually if rng.random() < 0.9 else rng.choice(values) for _ in range(n_rows)], kind)
    if kind == string and rng.random() < 0.2:  # bytes that are not UTF-8, which Arrow does not check
        found = pa.array([b"\xff\xfe"] * n_rows, binary).view(string)
    return found


def many_rows(n_rows: int) -> bytes:
    """A small Parquet file of so many rows without a text."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    out = io.BytesIO()
    group = pa.table({"text": pa.array([None] * 1_000_000, pa.string())})
    with pq.ParquetWriter(out, group.schema, compression="zstd") as writer:
        for _ in range(n_rows // len(group)):
            writer.write_table(group)
    return out.getvalue()


def docbin() -> bytes:
    """A sound DocBin of two documents."""
    import spacy
    from spacy.tokens import Doc, DocBin, Span

    vocab = spacy.blank("xx").vocab
    one = Doc(vocab, words=list(TEXT), spaces=[False] * len(TEXT))
    one.ents = [Span(one, 2, 7, "ORG"), Span(one, 11, 14, "PER")]
    return DocBin(docs=[one, Doc(vocab, words=["ABC", "公司"], spaces=[True, False])]).to_bytes()


def odd_docbin(seed: bytes, rng: random.Random) -> bytes:
    """A DocBin whose arrays and lists are changed before they are packed."""
    import numpy as np
    import srsly

    try:
        found = srsly.msgpack_loads(zlib.decompress(seed))
    except Exception:
        return seed
    for _ in range(min(len(found), rng.choice((1, 1, 1, 2, 3)))):
        key, change = rng.choice(list(found)), rng.randrange(5)
        if isinstance(found[key], bytes) and change < 4:
            kind = {"lengths": np.int32, "tokens": np.uint64}.get(key, np.uint8)
            numbers = np.frombuffer(found[key][: len(found[key]) // 8 * 8], kind).copy()
            if len(numbers) and change < 3:
                numbers[rng.randrange(len(numbers))] = rng.choice((0, 1, 2, 3, 4, 7, 100, np.iinfo(kind).max))
            found[key] = (numbers if rng.random() < 0.8 else numbers[:-1]).tobytes()
        elif isinstance(found[key], list) and found[key] and change < 3:
            found[key] = rng.choice((found[key][:-1], found[key] * 2, [], [rng.choice(ODD_VALUES[:10])]))
        elif change == 3:
            del found[key]
        else:
            found[key] = rng.choice((None, 1, b"\x00" * 64, "x", [], {}))
    try:
        return zlib.compress(srsly.msgpack_dumps(found))
    except (OverflowError, TypeError, ValueError):
        return seed


def bomb(n_bytes: int) -> bytes:
    """A DocBin-like file that is small and unpacks to so many zeros."""
    packer = zlib.compressobj(9)
    made = [packer.compress(bytes(1 << 20)) for _ in range(n_bytes >> 20)]
    return b"".join([*made, packer.flush()])


_JSON = ("jsonl", "cluener", "doccano", "label-studio", "displacy", "spacy-json", "hugging-face", "auto")
MADE: dict[str, Callable[[bytes, random.Random], bytes]] = dict.fromkeys(_JSON, odd_json)
MADE |= {"brat": odd_brat, "parquet": odd_parquet, "docbin": odd_docbin}
"""Format of documents -> how odd files of it are made from a sound one."""
