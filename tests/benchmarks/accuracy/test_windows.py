"""Lines of joined sentences, what is left out of them, and how windows are changed for a while."""

import tiny

from benchmarks.accuracy import windows as bench
from benchmarks.data import Judge
from cige.api import NER
from cige.data.sentence import Sentence, Span
from cige.data.source_types import SourceTypes, TypeTree
from cige.tagging import windows as tagging_windows
from cige.text import windows
from cige.training.sources import Source


def source():
    types = SourceTypes(map={x: (x,) for x in tiny.LABELS}, annotated=tuple(tiny.LABELS))
    return Source("people", [], [types.read(s) for s in tiny.sentences(9, seed=3)], types=types, tree=TypeTree({}))


def test_names_stay_over_their_text():
    ner = NER(tiny.trained_model())
    judge, people = Judge(source(), ner.labels), source()
    expected = [s.text[x.start : x.end] for s in people.dev for x in judge.names(judge.gold([s])[0])]
    for length, only in ((1, None), (40, None), (40, bench.READABLE)):
        texts, names = bench.lines_of(people, judge, length, only)
        assert [text[x.start : x.end] for text, own in zip(texts, names, strict=True) for x in own] == expected
        assert all(len(text) >= length for text in texts[:-1])
        assert bench.f1(ner, judge, texts, names) > 50
    assert all(map(bench.READABLE.match, "".join(texts)))


def test_a_name_of_marks_alone_is_no_name_without_them():
    sentence = Sentence("他，在“北·京”。", (Span(1, 2, "LOC"), Span(4, 7, "LOC")))
    assert bench.shortened(sentence, sentence.spans, bench.READABLE) == ("他在北京", [Span(2, 4, "LOC")])


def test_a_setting_holds_for_a_while():
    text = "天" * 300
    before = tagging_windows.windows_of(text)
    with bench.read_with(**bench.setting(300, 10, 4)):
        assert len(tagging_windows.windows_of(text)) == 1 and windows.CUTS == ()
    assert tagging_windows.windows_of(text) == before and len(windows.CUTS) == 2
