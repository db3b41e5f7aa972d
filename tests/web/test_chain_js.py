"""web/chain.js: a trained CRF in the form that the compiled runtime reads."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from web_build import WEB

from cige.data.tags import allowed_transitions, tag_set
from cige.nn.crf_numpy import NumpyCRF

NODE = shutil.which("node") or shutil.which("nodejs")
pytestmark = pytest.mark.skipif(NODE is None, reason="no node (apt-get install nodejs)")


@pytest.mark.parametrize("n_labels", [1, 250], ids=["one label", "more pairs of tags than a call has arguments"])
def test_the_spread_of_scores_is_that_of_numpy(n_labels):
    tags = tag_set([f"L{k}" for k in range(n_labels)], "BIO")
    rng = np.random.default_rng(1)
    names, may_be = ("start", "transitions", "end"), allowed_transitions(tags)
    scores = {name: rng.normal(size=allowed.shape) for name, allowed in zip(names, may_be, strict=True)}
    crf = NumpyCRF(**{name: np.where(ok, scores[name], -np.inf) for name, ok in zip(names, may_be, strict=True)})
    masks = zip(("allowed_start", "allowed", "allowed_end"), may_be, strict=True)
    given = {
        "tags": tags,
        "scheme": "BIO",
        "scores": {name: x.ravel().tolist() for name, x in scores.items()},
        "allowed": {name: mask.ravel().tolist() for name, mask in masks},
    }
    command = [NODE, Path(__file__).with_name("chain.mjs"), WEB / "chain.js"]
    done = subprocess.run(command, input=json.dumps(given), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-500:]
    assert json.loads(done.stdout) == crf.spread
