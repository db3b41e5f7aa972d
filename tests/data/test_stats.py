"""The figures of Table 1."""

import io
import json

import numpy as np
from rich.console import Console

from cige.data import Sentence, Span
from cige.data.registry import load_split
from cige.data.stats import dataset_stats

SENTENCES = [
    Sentence("南京市长江大桥", (Span(0, 3, "GPE"), Span(3, 7, "LOC"))),
    Sentence("ＡＢ好", (Span(0, 2, "GPE"),)),
    Sentence("南京市长江大桥"),
]


class Matcher:
    """A lexicon of a few words, and the texts it was asked for."""

    n_base = 3

    def __init__(self, *words):
        self.words = words
        self.asked = []

    def match(self, text):
        self.asked.append(text)
        rows = [(i, i + len(w), k) for k, w in enumerate(self.words) for i in range(len(text)) if text.startswith(w, i)]
        return np.array(sorted(rows), dtype=np.int32).reshape(-1, 3)


def test_counts_and_averages():
    lexicon = Matcher("南京", "南京市", "AB")
    stats = dataset_stats(SENTENCES, lexicon)
    assert (stats.n_sentences, stats.n_chars, stats.n_words, stats.n_entities) == (3, 17, 5, 3)
    assert stats.labels == {"GPE": 2, "LOC": 1}
    assert (stats.max_chars, stats.n_empty, stats.n_duplicates) == (7, 1, 1)
    assert (stats.chars_per_sentence, stats.words_per_sentence, stats.entities_per_sentence) == (17 / 3, 5 / 3, 1.0)
    assert "AB好" in lexicon.asked  # words are matched in the normalised text, as a model does


def test_without_a_lexicon_there_are_no_word_counts():
    stats = dataset_stats(SENTENCES)
    assert stats.n_words is None
    assert stats.words_per_sentence is None
    assert "matched words" not in render(stats)


def test_entities_that_overlap_or_have_gaps_are_counted():
    nested = Sentence("复旦大学附属中山医院", (Span(0, 4, "ORG"), Span(0, 10, "ORG"), Span(6, 8, "PER")))
    gaps = Sentence("头和背部疼痛", (Span(0, 6, "SYM", parts=((0, 1), (4, 6))), Span(1, 2, "O"), Span(2, 6, "SYM")))
    stats = dataset_stats([nested, gaps, *SENTENCES])
    assert (stats.n_overlapping, stats.n_discontinuous) == (5, 1)  # what is in a gap overlaps nothing
    assert "overlapping entities" in render(stats) and "entities with gaps" in render(stats)
    assert "overlapping" not in render(dataset_stats(SENTENCES))


def test_no_sentences_give_zeros():
    stats = dataset_stats([], Matcher())
    assert (stats.chars_per_sentence, stats.words_per_sentence, stats.entities_per_sentence) == (0.0, 0.0, 0.0)
    assert (stats.max_chars, stats.n_duplicates, stats.labels) == (0, 0, {})
    assert "sentences" in render(stats)


def test_the_dict_is_ready_for_json():
    found = json.loads(json.dumps(dataset_stats(SENTENCES, Matcher("南京")).to_dict()))
    assert found["words_per_sentence"] == 2 / 3
    assert found["labels"] == {"GPE": 2, "LOC": 1}


def test_the_table_shows_totals_and_averages():
    text = render(dataset_stats(SENTENCES, Matcher("南京")))
    assert "matched words" in text
    assert "5.67" in text
    assert "GPE" in text


def test_weibo_has_its_published_figures(shared_data):
    stats = dataset_stats(load_split("weibo", "train", data_dir=shared_data))
    assert (stats.n_sentences, stats.n_chars, stats.n_entities) == (1350, 73778, 1895)
    assert (stats.max_chars, stats.n_empty, stats.n_duplicates) == (175, 612, 101)
    assert list(stats.labels.items())[:2] == [("PER.NOM", 772), ("PER.NAM", 578)]


def render(stats):
    console = Console(file=io.StringIO(), width=100)
    console.print(stats.table())
    return console.file.getvalue()
