"""`cige info`: as a table and as JSON."""

import json

import tiny
import tiny_grid


def test_info(run, model):
    out = run("info", "--model", model)[1]
    rows = [line.split() for line in out.splitlines()]
    assert ["lexicon", "words", str(len(tiny.WORDS))] in rows and "LOC, ORG, PER" in out and "torch" in out
    assert "{" not in out
    assert json.loads(run("info", "--model", model, "--json")[1])["model"]["scheme"] == "BMES"


def test_a_model_of_nested_entities_has_a_head_and_no_scheme(run, tmp_path):
    tiny_grid.model().save(tmp_path / "nested")
    facts = json.loads(run("info", "--model", tmp_path / "nested", "--json")[1])["model"]
    assert facts["head"] == "pair_grid, which scores spans" and "scheme" not in facts
