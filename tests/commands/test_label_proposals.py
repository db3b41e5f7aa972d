"""Labels of data that a model does not know: what is proposed, and what is said."""

from __future__ import annotations

import shlex

import pytest

from cige import load
from cige.cli import main
from cige.commands.label_proposals import check_labels, labels_option, propose
from cige.data import Sentence, Span, write_sentences
from cige.errors import DataError

BUNDLED = [
    "BOOK",
    "COMPANY",
    "GAME",
    "GOVERNMENT",
    "LOC",
    "ORG",
    "PER",
    "POSITION",
    "PRODUCT",
    "SCENE",
    "TIME",
    "VIDEO",
]


@pytest.mark.parametrize(
    ("data", "model", "expected"),
    [
        (  # CLUENER
            ["name", "company", "address", "movie", "organization", "government", "scene", "book", "game", "position"],
            BUNDLED,
            {"name": "PER", "company": "COMPANY", "address": "LOC", "movie": "VIDEO", "organization": "ORG"}
            | {"government": "GOVERNMENT", "scene": "SCENE", "book": "BOOK", "game": "GAME", "position": "POSITION"},
        ),
        (
            ["name", "company", "scene", "movie"],
            ["PER", "LOC", "ORG"],
            {"name": "PER", "company": "ORG", "scene": "LOC"},
        ),
        (["movie"], ["MOVIE", "VIDEO"], {"movie": "MOVIE"}),
        (["NR", "NS", "NT"], BUNDLED, {"NR": "PER", "NS": "LOC", "NT": "ORG"}),  # MSRA
        (["PER.NAM", "GPE.NAM", "PER.NOM"], ["PER", "LOC"], {"PER.NAM": "PER", "GPE.NAM": "LOC", "PER.NOM": "PER"}),
        (["PER.NOM"], ["PER", "PER_NOM"], {"PER.NOM": "PER_NOM"}),
        (["人物", "地点", "公司"], BUNDLED, {"人物": "PER", "地点": "LOC", "公司": "COMPANY"}),
        (["per", "Loc", "Per-Nom"], ["PER", "LOC", "PER_NOM"], {"per": "PER", "Loc": "LOC", "Per-Nom": "PER_NOM"}),
        (["PER", "DISEASE", "name"], ["PER"], {"name": "PER"}),  # known labels need none, and some have none
        (["HPPX", "HCCX", "XH"], ["PRODUCT", "BRAND"], {"HPPX": "BRAND", "HCCX": "PRODUCT"}),
        ([], BUNDLED, {}),
    ],
)
def test_labels_are_proposed_by_name(data, model, expected):
    assert propose(data, model) == expected


def test_the_option_can_be_pasted():
    option = labels_option({"name": "PER", "a b": "LOC", "$x": ""})
    assert shlex.split(option) == ["--labels", "name=PER", "a b=LOC", "$x="]


def test_every_unknown_label_is_in_the_proposal():
    finder = load()
    sentences = [Sentence("李明在北京。", (Span(0, 2, "name"), Span(3, 5, "LOC"), Span(5, 6, "else")))]
    with pytest.raises(DataError, match=r"no label of the model for else, name of a\.bmes; .*--labels else= name=PER "):
        check_labels(finder, sentences, {}, "a.bmes")
    with pytest.raises(DataError, match=r"for name of a\.bmes.*--labels else= name=PER "):
        check_labels(finder, sentences, {"else": ""}, "a.bmes")
    check_labels(finder, sentences, {"else": "", "name": "PER"}, "a.bmes")
    check_labels(finder, [], {}, "a.bmes")


def test_coarse_labels_are_those_that_the_model_reports_then():
    finder = load()
    sentences = [Sentence("财政部", (Span(0, 3, "GOVERNMENT"),))]
    check_labels(finder, sentences, {}, "a.bmes")
    with pytest.raises(DataError, match=r"--labels GOVERNMENT=ORG"):
        check_labels(finder, sentences, {}, "a.bmes", types="coarse")


@pytest.mark.parametrize("verb", [["evaluate"], ["user-words"]])
def test_commands_print_the_option_and_take_it(tmp_path, capsys, verb):
    path = str(tmp_path / "dev.bmes")
    write_sentences(path, [Sentence("李明在北京。", (Span(0, 2, "name"), Span(3, 5, "address")))])
    assert main([*verb, "--data", path, "--json"]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and "Proposal: --labels address=LOC name=PER " in err
    assert main([*verb, "--data", path, "--json", "--labels", "address=LOC", "name=PER"]) == 0
