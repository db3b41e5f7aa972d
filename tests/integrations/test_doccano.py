"""The template for doccano's automatic labelling, rendered as doccano renders it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jinja2 import Template

from cige import load
from cige.integrations.label_studio import Interface

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def rendered(response: dict) -> list[dict]:
    """doccano names the server's answer `input`, reads JSON, and wants these three fields for each label."""
    template = Template((EXAMPLES / "doccano" / "mapping.jinja2").read_text(encoding="utf-8"))
    return json.loads(template.render(input=response))


@pytest.mark.parametrize("text", ["😀李明在北京的罗氏公司。", "", "李明"])
def test_labels_are_the_entities(text):
    entities = load()(text)
    answer = {"results": [{"entities": [e.to_dict() for e in entities]}], "offsets": "code_points"}
    expected = [{"start_offset": e.start, "end_offset": e.end, "label": e.label} for e in entities]
    assert rendered(json.loads(json.dumps(answer))) == expected


def test_a_label_may_hold_quotes():
    (found,) = rendered({"results": [{"entities": [{"start": 0, "end": 1, "label": 'a"b'}]}]})
    assert found["label"] == 'a"b'


def test_the_body_is_what_doccano_can_fill_in():
    """It replaces a value that is exactly this, and looks into objects but not into lists."""
    body = json.loads((EXAMPLES / "doccano" / "body.json").read_text(encoding="utf-8"))
    assert body == {"text": "{{ text }}"}


def test_the_interface_for_label_studio_is_read():
    interface = Interface.parse((EXAMPLES / "label_studio" / "interface.xml").read_text(encoding="utf-8"))
    assert interface.field == "text" and interface.labels["company"] == "ORG"
