"""Entity, the value that prediction hands out."""

import dataclasses
import json

import pytest

from cige.entities import Entity


def test_the_dict_has_the_five_fields_in_order():
    entity = Entity(start=2, end=4, label="LOC", text="北京", score=0.5)
    assert json.dumps(entity.to_dict(), ensure_ascii=False) == (
        '{"start": 2, "end": 4, "label": "LOC", "text": "北京", "score": 0.5}'
    )


def test_an_entity_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Entity(0, 1, "LOC", "京", 1.0).start = 1
