"""Every public function that takes text, given any text: right offsets or a CigeError, and nothing else.

The bundled model reads here, in cige's own runtime; `test_pipeline_properties` does the same with PyTorch.
"""

import contextlib
import json
import tempfile
from functools import cache
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import cige
from cige import CigeError, Lexicon, Sentence, Span
from cige.data.documents.formats import FORMATS as DOCUMENT_FORMATS
from cige.data.documents.formats import read_documents
from cige.data.reading import FORMATS
from cige.drawing.lattice import Mark
from cige.integrations import hf, label_studio
from cige.lexicon.user_word import UserWord

PIECES = st.sampled_from(
    [
        *(
            "林晓岚",
            "在南京市",
            "長江大橋",
            "臺灣積體電路",
            "鄧小平",
            "罗氏公司",
            "ＡＢＣ公司",
            "2024年",
            "，",
            "。",
            "《",
            "》",
            "“",
        ),
        *(
            "😀",
            "👨\u200d👩\u200d👧",
            "𠮷",
            "\U0010ffff",
            "e\u0301",
            "ﾊﾟ",
            "ﬁ",
            "İ",
            "ß",
            "\u0e33",
            "\ud83d",
            "\ude00",
            "\udfff\ud800",
        ),
        *("\x00", "\x07", "\x7f", "\x85", "\u2028", "\u200b", "\u202e", "\ufeff", "\ufffd", "\uffff", "\u3000"),
        *("\r", "\r\n", "\n", "\t", " ", "<b>&", '"\\', "a" * 70, "Ａ" * 130, "1" * 300, "http://例子.cn/?a=1"),
    ]
)
TEXTS = st.lists(PIECES | st.text(st.characters(exclude_categories=()), max_size=8), max_size=8).map("".join)
SHORT = st.lists(PIECES | st.text(st.characters(exclude_categories=()), max_size=3), max_size=3).map("".join)


@cache
def ner():
    return cige.load()


def check(text, entities):
    """(start, end, label) of entities, whose offsets are right."""
    last = 0
    for entity in entities:
        assert last <= entity.start < entity.end <= len(text) and text[entity.start : entity.end] == entity.text
        assert entity.label in ner().labels and 0 <= entity.score <= 1
        last = entity.end
    return [(entity.start, entity.end, entity.label) for entity in entities]


@settings(max_examples=50)
@given(TEXTS)
@example("林晓岚" * 3000)
@example("a" * 20_000)
@example("\x00" * 5000)
@example("\ud83d" * 1000 + "\ude00")
@example("南\u0301" * 2000)
@example("\r\n" * 3000)
def test_reading(text):
    found = check(text, ner()(text))
    (piped,) = ner().pipe([text])
    assert check(text, piped) == found
    for options in ({"types": "coarse"}, {"labels": ["PER"]}, {"min_score": 0.9}):
        for entity in ner()(text, **options):
            assert text[entity.start : entity.end] == entity.text


@settings(max_examples=40)
@given(TEXTS)
def test_analyses(text):
    analysis = ner().analyze(text)
    assert analysis.text == text
    check(text, analysis.entities)
    for word in analysis.words:
        assert 0 <= word.start < word.end <= len(text)
    assert "<" in analysis._repr_html_()
    analysis._repr_html_().encode("utf-8")


@settings(max_examples=12)
@given(TEXTS.filter(lambda text: len(text) < 60))
def test_explanations(text):
    explanation = ner().explain(text, maps=True)
    check(text, [found.entity for found in explanation.entities])
    assert explanation.to_dict()["text"] == text
    for made in (explanation.to_html(), explanation.to_svg()):
        made.encode("utf-8")
    explanation.to_terminal()


@settings(max_examples=60)
@given(SHORT, st.none() | SHORT, st.sampled_from(["evidence", "force", "block", "other"]), TEXTS)
def test_words_of_the_user(word, label, mode, text):
    """A word is taken and then found wherever it stands, or refused; the model's own lexicon stays as it was."""
    text += word + text
    before = ner().lexicon.user_words
    try:
        mine = ner().with_words([UserWord(word, label, mode)])
        check(text, [entity for entity in mine(text) if entity.label in ner().labels])
        for entity in mine(text, words=[word]):
            assert text[entity.start : entity.end] == entity.text
    except CigeError as told:
        assert str(told)
    assert ner().lexicon.user_words == before


@settings(max_examples=60)
@given(st.lists(SHORT, max_size=6), SHORT, TEXTS)
def test_lexicons_lattices_and_drawings(words, word, text):
    lexicon = Lexicon.from_words(words)
    with contextlib.suppress(CigeError):
        lexicon.add(word, label="X", mode="force")
    with contextlib.suppress(CigeError):
        lexicon.remove(*words[:1])
    assert isinstance(word in lexicon, bool) and lexicon.id(word) in (None, *range(len(words)))
    for start, end, _ in lexicon.match(text + word):
        assert 0 <= start < end <= len(text + word)
    lattice = cige.build_lattice(text + word, lexicon.snapshot())
    assert len(lattice.text) == len(text + word)
    marks = [Mark(0, len(lattice.text), word)] if lattice.text else []
    cige.draw_lattice(lattice, marks=marks).encode("utf-8")


@settings(max_examples=60)
@given(st.text(st.characters(exclude_categories=()), max_size=300) | TEXTS)
def test_a_word_file_of_any_text(text):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "words.txt"
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        for spaces in (Lexicon.from_words([]).add_file, Lexicon.from_file):
            with contextlib.suppress(CigeError):
                spaces(path)


@st.composite
def sentences(draw):
    text = draw(TEXTS)
    cuts = sorted(draw(st.sets(st.integers(0, len(text)), max_size=6)))
    spans = [
        Span(a, b, draw(st.sampled_from(["PER", "ORG", "人名", "a b", ""])))
        for a, b in zip(cuts[::2], cuts[1::2], strict=False)
    ]
    return Sentence(text, tuple(spans))


@pytest.mark.parametrize("format", FORMATS)
@settings(max_examples=25)
@given(st.lists(sentences(), min_size=1, max_size=3))
def test_what_is_written_is_read_again_or_refused(format, given_sentences):
    """Formats of documents are in `data/documents/test_round_trips`; they are cut into sentences when they are read."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        try:
            cige.write_sentences(path, given_sentences, format=format)
        except CigeError as told:
            assert str(told) and not path.exists()
            return
        expected = [(s.text, s.spans) for s in given_sentences if s.text]
        try:
            found = cige.read_sentences(path, format=format)
        except CigeError as told:
            assert "no sentence" in str(told) and not expected, told
            return
        assert [(s.text, s.spans) for s in found if s.text] == expected


@pytest.mark.parametrize("format", ["auto", *sorted(set(DOCUMENT_FORMATS) - {"parquet", "docbin", "brat"})])
@settings(max_examples=20)
@given(TEXTS)
def test_a_file_of_any_text_is_read_or_refused(format, text):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        with contextlib.suppress(CigeError):
            for document in read_documents(path, format=format):
                for span in document.spans:
                    assert 0 <= span.start < span.end <= len(document.text)


@settings(max_examples=30)
@given(st.lists(TEXTS, max_size=3))
def test_label_studio_and_the_pipeline_of_transformers(texts):
    labels = '<Labels name="l" toName="t"><Label value="PER"/><Label value="LOC"/></Labels>'
    config = f'<View>{labels}<Text name="t" value="$text"/></View>'
    tasks = [{"data": {"text": text}} for text in texts]
    for text, made in zip(texts, label_studio.predictions(ner(), tasks, config), strict=True):
        for region in made["result"]:
            value = region["value"]
            assert text[value["start"] : value["end"]] == value["text"]
    simple = hf.pipeline(model=ner(), aggregation_strategy="simple")
    for text in texts:
        for found in simple(text):
            assert text[found["start"] : found["end"]] == found["word"]


@cache
def nlp():
    spacy = pytest.importorskip("spacy")
    made = spacy.blank("zh")
    made.add_pipe("cige")
    return made


@settings(max_examples=40)
@given(TEXTS.filter(lambda text: not any("\ud800" <= char <= "\udfff" for char in text)))
def test_the_spacy_component(text):
    doc = nlp()(text)
    assert doc.text == text
    assert [(e.start_char, e.end_char, e.label_) for e in doc.ents] == check(text, ner()(text))
    assert json.dumps(doc._.cige_entities)
