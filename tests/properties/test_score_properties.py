"""Scores on generated taggings, with seqeval as the judge."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqeval.metrics import classification_report, f1_score, precision_score, recall_score
from seqeval.scheme import IOB2, IOBES

from cige.data.tags import tag_set, tags_to_spans
from cige.entities import score

SEQEVAL = {"BMES": IOBES, "BIOES": IOBES, "BIO": IOB2}


@st.composite
def taggings(draw):
    """(scheme, gold, predicted): two taggings of some sentences, alike in part and mostly ill-formed."""
    scheme = draw(st.sampled_from(sorted(SEQEVAL)))
    tag = st.sampled_from(tag_set(["PER", "LOC"], scheme))
    gold = draw(st.lists(st.lists(tag, min_size=1, max_size=10), min_size=1, max_size=4))
    predicted = [[draw(tag) if draw(st.integers(0, 3)) == 0 else t for t in sentence] for sentence in gold]
    return scheme, gold, predicted


def iobes(sentences):
    return [["I" + tag[1:] if tag[0] == "M" else tag for tag in tags] for tags in sentences]


@settings(max_examples=300)
@given(taggings())
def test_strict_scores_equal_seqeval(case):
    scheme, gold, predicted = case
    report = score(*([tags_to_spans(tags, scheme) for tags in side] for side in (gold, predicted)))
    how = {"mode": "strict", "scheme": SEQEVAL[scheme], "zero_division": 0}
    sides = iobes(gold), iobes(predicted)
    assert report.precision == pytest.approx(precision_score(*sides, **how))
    assert report.recall == pytest.approx(recall_score(*sides, **how))
    assert report.f1 == pytest.approx(f1_score(*sides, **how))

    if not report.per_type:  # seqeval fails where there is no entity on either side
        return
    theirs = classification_report(*sides, output_dict=True, **how)
    for label, counts in report.per_type.items():
        assert counts.precision == pytest.approx(theirs[label]["precision"])
        assert counts.recall == pytest.approx(theirs[label]["recall"])
        assert counts.f1 == pytest.approx(theirs[label]["f1-score"])
        assert counts.n_gold == theirs[label]["support"]


@given(taggings())
def test_every_grouping_accounts_for_every_entity(case):
    scheme, gold, predicted = case
    texts = ["".join(chr(0x4E00 + i) for i in range(len(tags))) for tags in gold]
    report = score(
        *([tags_to_spans(tags, scheme) for tags in side] for side in (gold, predicted)),
        texts=texts,
        lexicon_words=lambda word: len(word) > 1,
        train_surfaces={"一", "一丁"},
    )
    for group in (report.per_type, report.by_length, report.by_lexicon, report.by_seen):
        for name in ("n_gold", "n_predicted", "n_correct"):
            assert sum(getattr(counts, name) for counts in group.values()) == getattr(report.overall, name)
    assert 0.0 <= report.f1 <= report.span_f1 <= 1.0
