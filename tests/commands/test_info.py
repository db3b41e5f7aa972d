"""`cige info`: as a table and as JSON."""

import json

import tiny


def test_info(run, model):
    out = run("info", "--model", model)[1]
    rows = [line.split() for line in out.splitlines()]
    assert ["lexicon", "words", str(len(tiny.WORDS))] in rows and "LOC, ORG, PER" in out and "torch" in out
    assert "{" not in out
    assert json.loads(run("info", "--model", model, "--json")[1])["model"]["scheme"] == "BMES"
