"""Label maps between data and model."""

import pytest

from cige.data import Span
from cige.entities import map_labels, parse_label_map
from cige.entities.labels import not_in_data
from cige.errors import DataError

GOLD = [[Span(0, 2, "NR")], [], [Span(0, 1, "NS"), Span(1, 3, "NR")]]
MODEL = ["LOC", "ORG", "PER"]


def test_a_map_is_read_from_text():
    assert parse_label_map(" NR=PER, NS = LOC,NT=ORG,NR=PER,") == {"NR": "PER", "NS": "LOC", "NT": "ORG"}
    assert parse_label_map("") == {}


@pytest.mark.parametrize("text", ["NR", "NR=", "=PER", "NR=PER,NS"])
def test_half_an_item_is_refused(text):
    with pytest.raises(DataError, match="expected DATA=MODEL"):
        parse_label_map(text)


def test_a_label_cannot_have_two_names():
    with pytest.raises(DataError, match="NR is mapped to both PER and LOC"):
        parse_label_map("NR=PER,NR=LOC")


def test_labels_are_told_in_the_models_names():
    mapped = map_labels(GOLD, {"NR": "PER", "NS": "LOC", "NT": "ORG"}, model_labels=MODEL)
    assert mapped == [[Span(0, 2, "PER")], [], [Span(0, 1, "LOC"), Span(1, 3, "PER")]]


def test_a_label_that_both_sides_have_needs_no_mapping():
    assert map_labels(GOLD, {"NS": "LOC"}, model_labels=["NR", "LOC"])[2] == [Span(0, 1, "LOC"), Span(1, 3, "NR")]


def test_an_unmapped_label_is_an_error_that_lists_both_sides():
    with pytest.raises(DataError) as caught:
        map_labels(GOLD, {"NR": "PER"}, model_labels=MODEL)
    assert str(caught.value) == (
        "no label of the model for NS; the data has NR, NS, the model LOC, ORG, PER; "
        "map them with --labels DATA=MODEL, or leave them out with DATA="
    )


def test_a_target_that_the_model_lacks_is_an_error():
    with pytest.raises(DataError, match="the model has no label PERSON, to which NR=PERSON maps; it has LOC, ORG, PER"):
        map_labels(GOLD, {"NR": "PERSON", "NS": "LOC"}, model_labels=MODEL)
    with pytest.raises(DataError, match="the model has no label ORGANISATION, to which NT=ORGANISATION"):
        map_labels(GOLD, {"NR": "PER", "NS": "LOC", "NT": "ORGANISATION"}, model_labels=MODEL)


def test_labels_are_dropped_and_merged():
    mapping = parse_label_map(["NR=PER", "NS=,NT=PER"], may_drop=True)
    assert mapping == {"NR": "PER", "NS": "", "NT": "PER"}
    assert map_labels(GOLD, mapping, model_labels=MODEL) == [[Span(0, 2, "PER")], [], [Span(1, 3, "PER")]]
    assert not_in_data(mapping, GOLD) == ["NT"]
    with pytest.raises(DataError, match=r"'=X': expected DATA=MODEL, .* or PER.NOM= to leave a label out"):
        parse_label_map("=X", may_drop=True)
