"""Entity, the value that prediction hands out."""

import dataclasses
import json

import pytest

from cige.entities import Entity
from cige.serving.answers import entity_dicts
from cige.text.utf16 import utf16_offsets


def test_the_dict_has_the_five_fields_in_order():
    entity = Entity(start=2, end=4, label="LOC", text="北京", score=0.5)
    assert json.dumps(entity.to_dict(), ensure_ascii=False) == (
        '{"start": 2, "end": 4, "label": "LOC", "text": "北京", "score": 0.5}'
    )


def test_the_parts_of_a_moved_entity_are_moved_too():
    text = "😀第一和口腔医院"
    entity = Entity(1, 8, "ORG", "第一医院", 0.5, parts=((1, 3), (6, 8)))
    moved = entity.moved(utf16_offsets(text))
    units = text.encode("utf-16-le")
    assert (moved.start, moved.end) == (2, 9)
    assert "".join(units[2 * a : 2 * b].decode("utf-16-le") for a, b in moved.parts) == entity.text
    assert entity_dicts([entity], utf16_offsets(text)) == [moved.to_dict()]
    assert entity_dicts([entity], int) == [entity.to_dict()]


def test_tables_show_the_offsets_of_all_parts():
    entity = Entity(1, 8, "ORG", "第一医院", 0.5, parts=((1, 3), (6, 8)))
    assert entity.shown_offsets() == "1-3, 6-8"
    assert dataclasses.replace(entity, parts=()).shown_offsets() == "1-8"


def test_an_entity_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Entity(0, 1, "LOC", "京", 1.0).start = 1
