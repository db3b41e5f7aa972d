"""web/selection.js allows entities the lengths that Python allows them, of fine and of coarse types."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from web_build import WEB, build

from cige.entities.label_facts import LabelFacts
from cige.tagging.edges import with_whole_edges
from cige.tagging.prediction_model import ScoredSpan
from cige.tagging.selection import Request, select

NODE = shutil.which("node") or shutil.which("nodejs")
pytestmark = pytest.mark.skipif(NODE is None, reason="no node (apt-get install nodejs)")

LABELS = ["COMPANY", "LOC", "ORG", "PER", "SCENE"]
FACTS = LabelFacts(
    parents={"COMPANY": "ORG", "SCENE": "LOC"},
    max_lengths={"COMPANY": 8, "LOC": 30, "ORG": 40, "SCENE": 12},  # PER has no limit
)
REQUESTS = [{}, {"types": "coarse"}, {"types": "coarse", "labels": ["LOC"]}, {"labels": ["SCENE", "PER"]}]
TEXT = "去Yellowstone National Park玩"  # of which a model found the first word's beginning


@pytest.mark.parametrize("label", ["SCENE", "LOC", "PER"])
def test_latin_words_are_completed_by_the_lengths_of_the_types_that_are_asked_for(label):
    facts = {**FACTS.to_manifest(), "labels": LABELS}
    spans = [{"start": 1, "end": 23, "label": label, "score": 0.5}]
    given = json.dumps({"rules": build.rules(), "facts": facts, "requests": REQUESTS, "text": TEXT, "spans": spans})
    command = [NODE, Path(__file__).with_name("selection.mjs"), WEB / "selection.js", WEB / "text.js"]
    done = subprocess.run(command, input=given, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for request, answer in zip(REQUESTS, json.loads(done.stdout), strict=True):
        limits = select(Request.of(**request), LABELS, FACTS).max_lengths(FACTS.max_lengths)
        assert answer["lengths"] == limits, request
        whole = with_whole_edges(TEXT, [ScoredSpan(1, 23, label, 0.5)], max_lengths=limits)
        assert answer["whole"] == [[span.start, span.end] for span in whole], request
    lengths = [answer["lengths"].get("SCENE") for answer in json.loads(done.stdout)]
    assert lengths[0] == 12 and lengths[1] == 30  # a scene that is reported as a location may be as long as one
