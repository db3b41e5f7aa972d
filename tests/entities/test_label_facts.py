"""What a manifest says about labels: kinds, silence and lengths."""

import json
from dataclasses import replace

import pytest

from cige.data.sentence import Sentence, Span
from cige.entities.label_facts import LabelFacts, learn_max_lengths

FACTS = LabelFacts(
    parents={"COMPANY": "ORG", "BANK": "COMPANY", "ORG": "ORG_ANY", "BOOK": "WORK", "PER": "PER_ANY"},
    silent=frozenset({"PER_ANY"}),
    max_lengths={"ORG": 30},
)
LABELS = ["BANK", "BOOK", "COMPANY", "ORG", "PER", "PER_ANY"]


@pytest.mark.parametrize(
    ("label", "coarse"),
    [("BANK", "ORG"), ("COMPANY", "ORG"), ("ORG", "ORG"), ("BOOK", "BOOK"), ("PER", "PER"), ("OTHER", None)],
)
def test_the_topmost_kind_is_a_label_that_is_not_silent(label, coarse):
    assert FACTS.coarse(label, LABELS) == coarse


def test_coarse_labels_may_be_listed():
    facts = replace(FACTS, coarse_labels=frozenset({"ORG", "PER"}))
    assert [facts.coarse(label, LABELS) for label in LABELS] == ["ORG", None, "ORG", "ORG", "PER", None]
    assert facts.coarse("BOOK", LABELS, named=["BOOK"]) == "BOOK", "named by the user"


def test_a_silent_kind_is_reported_as_what_it_is_a_kind_of():
    facts = replace(FACTS, silent=frozenset({"COMPANY", "BOOK", "PER_ANY"}))
    assert [facts.fine(label, LABELS) for label in LABELS] == ["BANK", None, "ORG", "ORG", "PER", None]
    assert facts.fine("COMPANY", LABELS, named=["COMPANY"]) == "COMPANY"
    assert facts.fine("BOOK", LABELS, named=["BOOK", "ORG"]) == "BOOK"


def test_a_kind_in_between_need_not_be_a_label():
    assert FACTS.coarse("BANK", ["BANK", "ORG"]) == "ORG"


def test_a_circle_of_kinds_ends():
    assert LabelFacts(parents={"A": "B", "B": "A"}).coarse("A", ["A", "B"]) == "B"


def test_facts_outlast_a_manifest():
    facts = replace(FACTS, coarse_labels=frozenset({"ORG"}), set_apart=12, wide_commas=True)
    assert LabelFacts.from_manifest(json.loads(json.dumps(facts.to_manifest()))) == facts
    assert LabelFacts().to_manifest() == {} and LabelFacts.from_manifest({"labels": []}) == LabelFacts()


@pytest.mark.parametrize(
    "facts",
    [
        {"max_lengths": {"A": 0}},
        {"max_lengths": {"A": "3"}},
        {"parents": {"A": 1}},
        {"set_apart": -1},
        {"wide_commas": 1},
    ],
)
def test_a_manifest_with_other_things_is_refused(facts):
    with pytest.raises(ValueError, match=r"must (hold|be)"):
        LabelFacts.from_manifest(facts)


def test_names_change_everywhere():
    renamed = FACTS.renamed({"ORG": "机构", "COMPANY": "公司"})
    assert (
        renamed.parents["公司"] == "机构" and renamed.parents["BANK"] == "公司" and renamed.parents["机构"] == "ORG_ANY"
    )
    assert renamed.max_lengths == {"机构": 30}


def test_lengths_are_those_seen_and_some_room():
    sentences = [Sentence("字" * 50, (Span(0, 2, "A"), Span(3, 43, "B"))), Sentence("字" * 9, (Span(0, 3, "A"),))]
    assert learn_max_lengths(sentences) == {"A": 7, "B": 50}
    assert learn_max_lengths([]) == {}
