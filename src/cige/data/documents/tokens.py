"""Tokens with tags: the data sets of Hugging Face (`tokens`, `ner_tags`), spaCy's training JSON and its DocBin."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

from cige.data.columns import detect_scheme
from cige.data.documents.document import (
    Document,
    ReadingOptions,
    an_object,
    read_spans,
    text_of,
    without,
)
from cige.data.documents.tables import parquet_rows
from cige.data.jsonl import is_pair, json_values, make_span, parsed_or_none
from cige.data.sentence import Span
from cige.data.tags import illegal_transitions, repair, tags_to_spans
from cige.data.text_files import error_context, read_bytes, read_text
from cige.errors import DataError
from cige.json_text import JsonObject
from cige.text.visible import one_line

_BILUO = {"L": "E", "U": "S"}
_INFO = "dataset_info.json"
MOST_PACKED = 200  # times the size of a DocBin that it may unpack to; tokens are packed to about a tenth
LEAST_UNPACKED = 64 << 20  # bytes that any DocBin may unpack to


def read_hugging_face(path: Path, options: ReadingOptions) -> list[Document]:
    """Read rows with `tokens` and `ner_tags`, in Parquet, a JSON array or JSON lines; the text is the joined tokens.

    Tags may be names or numbers. The names of numeric tags are in the file (as `datasets` writes them in Parquet), in
    dataset_info.json in its folder, or in `options.tag_names`.
    """
    if path.suffix == ".parquet":
        rows, facts = parquet_rows(path)
        info = _json(facts.get(b"huggingface", b"{}")).get("info")
        values: Iterable[tuple[int, Any]] = enumerate(rows, 1)
    else:
        values = ((number, value) for _, number, value in json_values(read_text(path), str(path)))
        beside = path.with_name(_INFO)
        info = _json(beside.read_bytes()) if beside.is_file() else None
    names = list(options.tag_names) or _tag_names(info)
    listed = []
    for number, value in values:
        with error_context(f"{path}, row {number}"):
            row = an_object(value)
            tokens, tags = row.get("tokens"), row.get("ner_tags")
            if not isinstance(tokens, list) or not isinstance(tags, list) or len(tokens) != len(tags):
                raise DataError("expected lists of one length under 'tokens' and 'ner_tags'")
            if odd := [token for token in tokens if not isinstance(token, str)]:
                raise DataError(f"expected strings under 'tokens', found {odd[0]!r}")
            of_tokens = [_name(tag, names) for tag in tags]
            listed.append((number, tokens, of_tokens, without(row, "tokens", "ner_tags")))
    scheme = detect_scheme({tag: number for number, _, tags, _ in reversed(listed) for tag in tags}, str(path))
    documents = []
    for number, tokens, tags, meta in listed:
        with error_context(f"{path}, row {number}"):
            starts = [0, *accumulate(map(len, tokens))]
            places = list(pairwise(starts))
            documents.append(Document("".join(tokens), _spans(tags, scheme, places, options), meta, line=number))
    return documents


def read_spacy_json(path: Path, options: ReadingOptions) -> list[Document]:
    """spaCy's JSON: [text, {"entities": ...}] pairs, training documents with paragraphs (v2), or Doc.to_json."""
    documents = []
    for _, number, value in json_values(read_text(path), str(path)):
        with error_context(f"{path}, document {number}"):
            if is_pair(value):
                documents.append(
                    Document(value[0], read_spans(an_object(value[1]).get("entities"), value[0]), line=number)
                )
                continue
            record = an_object(value)
            if "paragraphs" not in record:
                text = text_of(record)
                documents.append(Document(text, read_spans(record.get("ents", []), text), {}, "ents" in record, number))
                continue
            documents += [_paragraph(an_object(one), number, options) for one in _listed(record, "paragraphs")]
    return documents


def read_docbin(path: Path, options: ReadingOptions) -> list[Document]:
    """A .spacy file, read by spaCy itself (`pip install "cige[spacy]"`)."""
    try:
        from spacy.tokens import DocBin
        from spacy.vocab import Vocab
    except ModuleNotFoundError:
        raise DataError(f'{path}: reading a DocBin needs spaCy; pip install "cige[spacy]"') from None
    raw = read_bytes(path)
    try:
        docs = DocBin().from_bytes(_within_reason(raw))
        _keep_entities(docs)
        return [_of_spacy(doc, number) for number, doc in enumerate(docs.get_docs(Vocab()), 1)]
    except Exception as reason:  # zlib, msgpack and spaCy raise different errors
        message = one_line(str(reason)) or type(reason).__name__
        raise DataError(f"{path}: not a DocBin that spaCy can read ({message})") from None


def _within_reason(raw: bytes) -> bytes:
    """The bytes of a DocBin; raises a ValueError if they unpack to far more than documents do."""
    most = max(LEAST_UNPACKED, MOST_PACKED * len(raw))
    unpacker = zlib.decompressobj()
    n_bytes, block = 0, unpacker.decompress(raw, 1 << 20)
    while block:
        n_bytes += len(block)
        if n_bytes > most:
            raise ValueError(f"it unpacks to more than {most >> 20:,} MB")
        block = unpacker.decompress(unpacker.unconsumed_tail, 1 << 20)
    return raw


def _keep_entities(docs: Any) -> None:
    """Keep only the attributes that are read here: spaCy does not check others, such as heads, before it uses them."""
    from spacy.attrs import ENT_IOB, ENT_TYPE, ORTH

    columns = [place for place, name in enumerate(docs.attrs) if name in (ORTH, ENT_IOB, ENT_TYPE)]
    n_docs = len(docs.tokens)
    if len(docs.spaces) != n_docs or len(docs.flags) != n_docs:
        raise ValueError(f"{n_docs} documents, and flags or spaces of another number")
    docs.attrs = [docs.attrs[place] for place in columns]
    docs.tokens = [tokens[:, columns] for tokens in docs.tokens]
    docs.cats, docs.span_groups, docs.user_data = [{}] * n_docs, [b""] * n_docs, [None] * n_docs


def _of_spacy(doc: Any, number: int) -> Document:
    text = doc.text
    spans = (make_span(e.start_char, e.end_char, e.label_, text) for e in doc.ents)
    return Document(text, tuple(sorted(spans)), is_labelled=doc.has_annotation("ENT_IOB"), line=number)


def _paragraph(paragraph: JsonObject, number: int, options: ReadingOptions) -> Document:
    sentences = map(an_object, _listed(paragraph, "sentences"))
    tokens = [an_object(token) for sentence in sentences for token in _listed(sentence, "tokens")]
    words = [text_of(token, "orth") for token in tokens]
    text = paragraph.get("raw")
    if not isinstance(text, str):
        text = "".join(words)
    if "entities" in paragraph:
        return Document(text, read_spans(paragraph["entities"], text), line=number)
    places, place = [], 0
    for word in words:
        start = text.find(word, place)
        if start < 0:
            raise DataError(f"token {word!r} is not in the rest of 'raw' ({text[place : place + 20]!r})")
        place = start + len(word)
        places.append((start, place))
    tags = [_BILUO.get(tag[:1], tag[:1]) + tag[1:] for tag in (str(token.get("ner", "-")) for token in tokens)]
    is_labelled = any(tag != "-" for tag in tags)
    spans = _spans(["O" if tag == "-" else tag for tag in tags], "BIOES", places, options)
    return Document(text, spans, {}, is_labelled, number)


def _listed(record: Mapping[str, Any], key: str) -> list[Any]:
    """The list with this key, empty if it is missing; raises a DataError if it is something else."""
    items = record.get(key, [])
    if not isinstance(items, list):
        raise DataError(f"expected a list under {key!r}, found {type(items).__name__}")
    return items


def _spans(
    tags: Sequence[str], scheme: str, places: Sequence[tuple[int, int]], options: ReadingOptions
) -> tuple[Span, ...]:
    """The spans of tagged tokens, from token to character offsets."""
    if faults := illegal_transitions(tags, scheme):
        if not options.repair:
            raise DataError(f"{faults[0].why} at token {faults[0].position + 1}; mend the file, or give --repair")
        tags = repair(tags, scheme)
    spans = tags_to_spans(tags, scheme)
    in_text = tuple(Span(places[span.start][0], places[span.end - 1][1], span.label) for span in spans)
    if empty := [span for span in in_text if span.start == span.end]:
        raise DataError(f"an entity {empty[0].label} of empty tokens only")
    return in_text


def _name(tag: Any, names: Sequence[str]) -> str:
    if isinstance(tag, str):
        return tag
    if not names:
        raise DataError("tags are numbers, and nothing says their names; give them by --tag-names O,B-PER,I-PER,...")
    if type(tag) is not int or not 0 <= tag < len(names):
        raise DataError(f"tag {tag!r}, expected 0 to {len(names) - 1}")
    return names[tag]


def _tag_names(info: Any) -> list[str]:
    """The names of the ClassLabel of ner_tags in the information that `datasets` writes."""
    features = info.get("features") if isinstance(info, dict) else None
    tags = features.get("ner_tags") if isinstance(features, dict) else None
    if isinstance(tags, list):
        feature = tags[0] if tags else None
    else:
        feature = tags.get("feature", tags) if isinstance(tags, dict) else None
    names = feature.get("names") if isinstance(feature, dict) else None
    return list(map(str, names)) if isinstance(names, list) else []


def _json(raw: bytes) -> JsonObject:
    value = parsed_or_none(raw)
    return value if isinstance(value, dict) else {}
