"""What the labels of several corpora have in common."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from cige.data.sentence import Sentence, Span
from cige.data.source_types import SourceTypes, TypeTree, default_labels, read_types
from cige.data.tag_sets import TagSets
from cige.data.tags import tag_set
from cige.errors import DataError
from cige.recipes.shipped import FOLDER

TREE = TypeTree({"COMPANY": "ORG", "MOVIE": "VIDEO", "VIDEO": "WORK", "PER": "PER_ANY", "PER_NOM": "PER_ANY"})
LABELS = ["COMPANY", "MOVIE", "ORG", "PER", "PER_NOM", "VIDEO"]
NEWS = SourceTypes(map={"nt": ("ORG",), "nr": ("PER",), "x": ()}, annotated=("ORG", "PER"))
FINE = SourceTypes(map={"company": ("COMPANY",), "org": ("ORG",)}, annotated=("COMPANY", "ORG"))


def gold(types: SourceTypes, label: str, labels: list[str] = LABELS) -> set[str]:
    """The labels that a span of one character may have."""
    sets = TagSets(tag_set(labels))
    sentence = types.read(Sentence("京", (Span(0, 1, label),)))
    (number,) = types.gold(sets, "BMES", labels, TREE).ids(sentence)
    return {sets.tags[k].partition("-")[2] or "O" for k in (sets.log_weights[number] == 0).nonzero()[0]}


def hidden(types: SourceTypes) -> set[str]:
    sets = TagSets(tag_set(LABELS))
    (number,) = types.gold(sets, "BMES", LABELS, TREE).ids(Sentence("京"))
    return {sets.tags[k].partition("-")[2] for k in (sets.log_weights[number] == 0).nonzero()[0]} - {""}


def test_a_parent_may_be_any_kind_that_the_corpus_does_not_label() -> None:
    assert gold(NEWS, "nt") == {"ORG", "COMPANY"}
    assert gold(FINE, "org") == {"ORG"} and gold(FINE, "company") == {"COMPANY"}
    anyone = SourceTypes(map={"p": ("PER_ANY",)}, annotated=("PER_ANY",))
    assert gold(anyone, "p") == {"PER", "PER_NOM"}


def test_a_type_without_a_label_is_its_parents_or_nothing() -> None:
    assert gold(FINE, "company", ["ORG", "PER"]) == {"ORG"}
    money = SourceTypes(map={"m": ("MONEY",)}, annotated=("MONEY",))
    assert gold(money, "m", ["PER"]) == {"O", "PER"}, "as an O in that corpus, under which a person may hide"


def test_one_of_several_types() -> None:
    titles = SourceTypes(map={"v": ("VIDEO", "MOVIE")}, annotated=())
    assert gold(titles, "v") == {"VIDEO", "MOVIE"}
    assert gold(SourceTypes(map={"w": ("WORK",)}, annotated=()), "w") == {"VIDEO", "MOVIE"}


def test_what_may_hide_under_o() -> None:
    assert hidden(NEWS) == {"MOVIE", "VIDEO", "PER_NOM"}
    assert hidden(FINE) == {"MOVIE", "VIDEO", "PER", "PER_NOM"}
    assert hidden(SourceTypes(map={}, annotated=("PER_ANY",), absent=("WORK",))) == {"ORG", "COMPANY"}


def test_an_unlabelled_type_is_dropped_and_an_unknown_label_named() -> None:
    assert NEWS.read(Sentence("三元", (Span(0, 2, "x"),))).spans == ()
    with pytest.raises(DataError, match=r"'y' is not in its types: nt, nr, x"):
        NEWS.read(Sentence("三元", (Span(0, 2, "y"),)))


def test_touching_entities_are_joined_where_asked() -> None:
    time = SourceTypes(map={"t": ("TIME",), "p": ("PER",)}, annotated=("TIME",), join=("TIME",))
    spans = (Span(0, 2, "t"), Span(2, 4, "t"), Span(5, 6, "t"), Span(6, 7, "p"), Span(7, 8, "p"))
    assert time.read(Sentence("四月五日，晚李王", spans)).spans == (
        Span(0, 4, "TIME"), Span(5, 6, "TIME"), Span(6, 7, "PER"), Span(7, 8, "PER"),
    )  # fmt: skip


def test_brackets_are_taken_in_where_they_match() -> None:
    books = SourceTypes(map={"b": ("BOOK",)}, annotated=(), brackets=("BOOK",))
    assert books.read(Sentence("读《史记》", (Span(2, 4, "b"),))).spans == (Span(1, 5, "BOOK"),)
    assert books.read(Sentence("读《史记 》", (Span(2, 4, "b"),))).spans == (Span(2, 4, "BOOK"),)
    assert books.read(Sentence("史记", (Span(0, 2, "b"),))).spans == (Span(0, 2, "BOOK"),)
    at_edges = {"《史记": (1, 3), "史记》": (0, 2), "史记》《": (0, 2), "《史记”": (1, 3), "（史记）": (1, 3)}
    for text, (start, end) in at_edges.items():  # one mark alone, the last one of the text before it, another pair
        assert books.read(Sentence(text, (Span(start, end, "b"),))).spans == (Span(start, end, "BOOK"),)


def test_comparable_spans_climb_to_what_the_corpus_annotates() -> None:
    spans = [Span(0, 1, "COMPANY"), Span(1, 2, "MOVIE"), Span(2, 3, "PER"), Span(3, 4, "PER_NOM")]
    assert NEWS.comparable(spans, LABELS, TREE) == [Span(0, 1, "ORG"), Span(2, 3, "PER")]
    assert NEWS.comparable(spans, LABELS, TREE, but=["PER"]) == [Span(0, 1, "ORG")]
    assert NEWS.comparable([Span(0, 1, "ORG")], ["PER"], TREE) == [], "a model cannot be blamed for a type it lacks"


def test_default_labels_leave_out_parents_that_are_sums_of_their_kinds() -> None:
    anyone = SourceTypes(map={"p": ("PER_ANY",)}, annotated=("PER_ANY",))
    nominal = SourceTypes(map={"n": ("PER_NOM",)}, annotated=("PER_NOM",))
    assert default_labels([NEWS, FINE, anyone, nominal], TREE) == ["COMPANY", "ORG", "PER", "PER_NOM"]


def test_a_tree_has_no_circle() -> None:
    with pytest.raises(DataError, match="A is a kind of B is a kind of A"):
        TypeTree({"A": "B", "B": "A"})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- a\n", "expected a mapping"),
        ("sources: {a: {annotated: [X]}}\n", "a source has `map`"),
        ("sources: {a: {map: {NO: X}}}\n", "the label False in `map` is not a string"),
        ("sources: {a: {map: {x: 3}}}\n", "t.yaml: given 3; expected a type or a list of types"),
        (
            "sources: {a: 3}\n",
            "t.yaml: a source has `map`, `annotated`, `absent`, `join`, `brackets` and `doubtful`; given 3",
        ),
        ("sources: {a: {map: [x]}}\n", "t.yaml: `map` is ['x']; expected a mapping"),
        ("sources: {a: {map: {x: A}, doubtful: [x]}}\n", "t.yaml: `doubtful` is ['x']; expected a mapping"),
        ("parents: {A: [B]}\nsources: {}\n", "t.yaml: `parents` has 'A': ['B']; expected two types"),
        ("sources: {a: {map: {x: 'A|B'}}}\n", "without '|'"),
        ("parents: {A: A}\nsources: {}\n", "A is a kind of A"),
        ("sources: [\n", "t.yaml:2: not valid YAML: while parsing a flow node, expected"),
        ("sources:\n  a: {map: {x: 2020-13-45}}\n", "t.yaml:2: not valid YAML: month must be in 1..12"),
        ("sources:\n  a: {map: {x: !!bool x}}\n", "t.yaml:2: not valid YAML: 'x' is no value of !!bool"),
        ("sources:\n  a: {map: {x: !!timestamp x}}\n", "t.yaml:2: not valid YAML: 'x' is no value of !!timestamp"),
        ('sources:\n  a: {map: {x: !!int ""}}\n', "t.yaml:2: not valid YAML: '' is no value of !!int"),
        ('sources:\n  a: {map: {x: !!float ""}}\n', "t.yaml:2: not valid YAML: '' is no value of !!float"),
        ("sources:\n  a: &a {map: *a}\n", "t.yaml:2: not valid YAML: a value contains itself"),
        ("".join(f"{' ' * i}a:\n" for i in range(3000)), "t.yaml:101: not valid YAML: more than 100 levels"),
    ],
)
def test_mistakes_in_a_types_file_are_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "t.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=re.escape(message)):
        read_types(path)


def test_a_types_file_that_is_not_utf8_is_to_be_converted(tmp_path: Path) -> None:
    path = tmp_path / "t.yaml"
    path.write_bytes("sources: {}\n# 类型\n".encode("gb18030"))
    with pytest.raises(DataError, match=r"t.yaml, line 2: .* is not UTF-8; save the file as UTF-8"):
        read_types(path)
    with pytest.raises(DataError, match=r"none\.yaml"):
        read_types(tmp_path / "none.yaml")


def test_the_types_file_that_ships_and_a_bare_one(tmp_path: Path) -> None:
    types, tree = read_types(FOLDER / "types" / "names.yaml")
    assert tree.is_kind_of("MOVIE", "WORK") and types["msra"].map["NT"] == ("ORG",)
    assert types["cail"].map["NO"] == ("ORG",)
    path = tmp_path / "types.json"
    path.write_text('{"mine": {"annotated": ["PER"], "map": {"人": "PER", "x": null}}}', encoding="utf-8")
    types, _ = read_types(path)
    assert types["mine"] == SourceTypes(map={"人": ("PER",), "x": ()}, annotated=("PER",))


def test_labels_of_raw_text_may_be_open_or_any_of_several() -> None:
    sets, written = TagSets(tag_set(LABELS)), {"ORG", "ORG|PER", "?"}
    sentence = Sentence("京东说", (Span(0, 1, "nt|nr"), Span(1, 2, "?")))
    read = NEWS.read(sentence)
    assert [s.label for s in read.spans] == ["ORG|PER", "?"]
    gold = NEWS.gold(sets, "BMES", LABELS, TREE, hidden_odds=0.5, written=written)
    table = sets.log_weights
    either, anything, outside = gold.ids(read)
    tags = {sets.tags[k] for k in (table[either] == 0).nonzero()[0]}
    assert tags == {"S-ORG", "S-COMPANY", "S-PER"}
    assert (table[anything] == 0).all(), "open: any tag, without odds against it"
    assert sets.tags[int(table[outside].argmax())] == "O" or table[outside].max() == 0
    with pytest.raises(DataError, match=r"'nt\|zz' is not in its types"):
        NEWS.read(Sentence("京", (Span(0, 1, "nt|zz"),)))


def test_doubtful_labels_keep_their_odds_and_may_be_none(tmp_path: Path) -> None:
    path = tmp_path / "t.yaml"
    path.write_text(
        "sources: {m: {map: {word: ORG, seed: ORG, x: null}, annotated: [PER], doubtful: {word: 4, x: 2}}}", "utf-8"
    )
    types = read_types(path)[0]["m"]
    read = types.read(Sentence("京东和阿里", (Span(0, 2, "word"), Span(3, 5, "seed"))))
    assert [span.label for span in read.spans] == ["ORG?4", "ORG"]
    sets = TagSets(tag_set(LABELS))
    first, *_, last = types.gold(sets, "BMES", LABELS, TREE).ids(read)
    begins = np.exp(sets.log_weights[first])
    assert begins[sets.tags.index("B-ORG")] == begins[sets.tags.index("B-COMPANY")] == 2 and begins[0] == 1
    assert sets.log_weights[last, 0] == -np.inf, "a sure span is never none"
    everything = SourceTypes(map=types.map, annotated=("ORG",), doubtful=types.doubtful)
    assert everything.comparable(everything.read(Sentence("京东", (Span(0, 2, "word"),))).spans, LABELS, TREE) == [
        Span(0, 2, "ORG")
    ]


@pytest.mark.parametrize("odds", ["0", "-1", "true", "'2'", ".inf"])
def test_odds_are_above_zero(tmp_path: Path, odds: str) -> None:
    path = tmp_path / "t.yaml"
    path.write_text(f"sources: {{m: {{map: {{word: ORG}}, doubtful: {{word: {odds}}}}}}}", "utf-8")
    with pytest.raises(DataError, match="expected odds above 0"):
        read_types(path)
    path.write_text("sources: {m: {map: {word: ORG}, doubtful: {name: 2}}}", "utf-8")
    with pytest.raises(DataError, match="'name', which is not in `map`"):
        read_types(path)
