"""What several verbs share: the model that --model names."""

from __future__ import annotations

import pytest
import tiny_lattice_bert

from cige.cli import main
from cige.commands.options import PRETRAINED, TUNED
from cige.models import pretrained
from cige.tasks import tuned


def test_the_kinds_named_here_are_those_that_are_written():
    assert pretrained.KIND == PRETRAINED and tuned.KIND == TUNED


@pytest.mark.parametrize("verb", ["predict", "explain"])
def test_a_pretrained_model_is_no_tagger_and_it_is_said_what_to_do_with_it(verb, tmp_path, capsys):
    tiny_lattice_bert.pretrained().save(tmp_path / "model")
    assert main([verb, "重庆", "--model", str(tmp_path / "model")]) == 2
    assert "expected a tagger; tune it (`cige finetune TASK --model`)" in capsys.readouterr().err
