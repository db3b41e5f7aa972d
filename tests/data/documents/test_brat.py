"""Folders of brat: fragments, and the parts of entities with gaps."""

from __future__ import annotations

import pytest

from cige.data.documents import Document, read_documents, write_documents
from cige.data.sentence import Span
from cige.errors import DataError


def test_brat_joins_fragments_at_line_breaks_alone(tmp_path):
    write_documents(tmp_path / "b", [Document("北京\n大学在", (Span(0, 5, "ORG"),))], format="brat")
    assert (tmp_path / "b" / "000001.ann").read_text(encoding="utf-8") == "T1\tORG 0 2;3 5\t北京 大学\n"
    (tmp_path / "b" / "000001.ann").write_text("T1\tORG 0 1;3 5\t北 大学\n#1\tnote\nR1\tr A:T1\n", encoding="utf-8")
    assert read_documents(tmp_path / "b")[0].spans == (Span(0, 5, "ORG", ((0, 1), (3, 5))),)
    with pytest.raises(DataError, match="there already"):
        write_documents(tmp_path / "b", [], format="brat")


def test_brat_holds_the_parts_of_an_entity_as_fragments(tmp_path):
    text, span = "肝\n癌和 肺癌切除", Span(0, 9, "OPERATION", ((0, 3), (5, 6), (7, 9)))
    write_documents(tmp_path / "b", [Document(text, (span,))], format="brat")
    ann = tmp_path / "b" / "000001.ann"
    assert ann.read_text(encoding="utf-8") == "T1\tOPERATION 0 1;2 3;5 6;7 9\t肝 癌 肺 切除\n"
    assert read_documents(tmp_path / "b")[0].spans == (span,)
    for places in ("5 6;0 1", "0 3;2 6", "0 3;3 1", "0 1;5 50"):
        ann.write_text(f"T1\tOPERATION {places}\tx\n", encoding="utf-8")
        with pytest.raises(DataError, match="ann, line 1: "):
            read_documents(tmp_path / "b")
    ann.write_text("T1\tOPERATION 5 6;0 1\tx\n", encoding="utf-8")
    with pytest.raises(DataError, match="'5 6;0 1' overlap or are out of order"):
        read_documents(tmp_path / "b")
    for parts in (((0, 1), (2, 3)), ((3, 4), (5, 6))):  # a line break, and a space
        gapped = Span(parts[0][0], parts[1][1], "OPERATION", parts)
        with pytest.raises(DataError, match="a gap of nothing but whitespace, which is no gap in brat"):
            write_documents(tmp_path / "c", [Document(text, (gapped,))], format="brat")


def test_the_text_of_an_entity_is_checked(tmp_path):
    (tmp_path / "a.txt").write_text("张桂梅在\n华坪县。", encoding="utf-8")
    ann = tmp_path / "a.ann"
    for line in (
        "PER 0 3\t张桂梅",
        "PER 0 3",
        "PER 0 3\t",
        "X 2 8\t梅在 华坪县",
        "X 2 8\t梅在",
    ):  # the last one: to the break
        ann.write_text(f"T1\t{line}\n", encoding="utf-8")
        assert len(read_documents(tmp_path)[0].spans) == 1
    for line in ("LOC 4 7\t华坪县", "X 2 8\t在"):  # as if the line break were no character
        ann.write_text(f"T1\t{line}\n", encoding="utf-8")
        with pytest.raises(DataError, match=r"a\.ann, line 1: the text of (LOC|X) is '(华坪县|在)', but \["):
            read_documents(tmp_path)


def test_brat_refuses_a_text_that_would_be_read_without_its_first_character(tmp_path):
    with pytest.raises(DataError, match=r"document 1: begins with U\+FEFF"):
        write_documents(tmp_path / "b", [Document("\ufeff北京", (Span(1, 3, "LOC"),))], format="brat")
    assert not (tmp_path / "b").exists()
