"""ComponentTable: look-ups, components that training never sees, and tables of damaged folders."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cige.data.components import NO_SEQUENCE, PAD, UNKNOWN, ComponentTable
from cige.data.vocabulary import char_codes

GIVEN = {"河": ("氵", "可"), "湖": ("氵", "胡"), "明": ("日", "月"), "何": ("亻", "可")}
GIVEN |= {"盟": ("日", "月"), "众": ("人",)}


def made(seen: str = "河湖明") -> ComponentTable:
    return ComponentTable.of(GIVEN, char_codes(seen))


def of(table: ComponentTable, char: str) -> list[int]:
    (sequence,) = table.padded(table.look_up(char_codes(char))).tolist()
    return sequence


def test_characters_share_the_components_that_they_share():
    table = made()
    river, lake, bright = of(table, "河"), of(table, "湖"), of(table, "明")
    assert river[0] == lake[0] and river[1] != lake[1] and not set(bright) & {*river, *lake}
    assert of(table, "盟") == bright and len(table) == 5  # 盟 is in no training text, and has the sequence of 明
    assert table.n_components == 2 + len({"氵", "可", "胡", "日", "月"})


def test_components_that_training_does_not_see_are_unknown():
    table = made()
    assert of(table, "何") == [UNKNOWN, of(table, "河")[1]]
    for char in "众A。":  # one whose only component is unknown, and two that are not in the table
        assert table.look_up(char_codes(char)).tolist() == [NO_SEQUENCE] and of(table, char) == [UNKNOWN]


def test_nothing_seen():
    table = made("A")
    assert len(table) == 1 and not len(table.codes)
    assert table.look_up(char_codes("河A")).tolist() == [NO_SEQUENCE] * 2
    table.check()


def test_padding():
    table = ComponentTable.of({"河": ("氵", "可"), "人": ("人",)}, char_codes("河人"))
    padded = table.padded(table.look_up(char_codes("人河A")))
    assert padded.shape == (3, 2) and padded[:, 1].tolist()[::2] == [PAD, PAD] and padded[1, 1] != PAD
    assert table.padded(np.zeros(0, np.int64)).shape == (0, 1)


CHARS = st.sampled_from("河湖明何盟众的A")


@given(
    st.dictionaries(CHARS, st.lists(st.sampled_from("氵可日月人"), min_size=1, max_size=5).map(tuple), min_size=1),
    st.text(CHARS, max_size=9),
    st.text(CHARS, min_size=1, max_size=9),
)
def test_any_table_gives_each_character_its_components(components, seen, text):
    table = ComponentTable.of(components, char_codes(seen))
    table.check()
    trained = {part for char in seen for part in components.get(char, ())}
    number = dict(zip(sorted(trained), range(2, 2 + len(trained)), strict=True))
    padded = table.padded(table.look_up(char_codes(text)))
    for char, row in zip(text, padded.tolist(), strict=True):
        parts = [number.get(part, UNKNOWN) for part in components.get(char, ())]
        expected = parts if set(parts) - {UNKNOWN} else [UNKNOWN]
        assert row == expected + [PAD] * (len(row) - len(expected))


def test_equal_tables():
    assert made().same_as(made()) and made().same_as(made("明湖河"))
    assert not made().same_as(made("河湖"))
    assert not made().same_as(replace(made(), n_components=9))


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("codes", np.array([3, 2, 1, 0, 9]), "not ascending"),
        ("codes", np.array([1], np.int64), "not as many numbers"),
        ("codes", np.array([1.5]), "expected a list of integers"),
        ("sequences", np.full(5, 7, np.int32), "none of 5 sequences"),
        ("sequences", np.full(5, -1, np.int32), "none of 5 sequences"),
        ("sequences", np.zeros(5, np.int64), "expected a list of integers"),
        ("ends", np.array([1, 1, 3, 5, 9], np.int32), "does not divide"),
        ("ends", np.array([1, 3, 5, 7, 200], np.int32), "does not divide"),
        ("ends", np.zeros(0, np.int32), "does not divide"),
        ("ends", np.array([2, 3, 5, 7, 9], np.int32), "does not begin with the unknown component"),
        ("parts", np.full(9, 900, np.int32), "none of 7 components"),
        ("parts", np.full(9, PAD, np.int32), "none of 7 components"),
        ("n_components", 1, "expected a whole number of at least 2"),
        ("n_components", "7", "expected a whole number"),
    ],
)
def test_numbers_that_refer_to_nothing_are_refused(field, value, message):
    table = made()
    assert len(table.codes) == 5 and table.ends.tolist() == [1, 3, 5, 7, 9]
    table.check()
    with pytest.raises(ValueError, match=message):
        replace(table, **{field: value}).check()
