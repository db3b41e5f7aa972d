"""What several verbs share: the model that --model names."""

from __future__ import annotations

import pytest

from cige.cli import main
from cige.folders.manifest import MANIFEST


@pytest.mark.parametrize("manifest", ['{"kind": ["a", "list"]}', "[" * 100_000, '{"kind": null}'])
def test_a_manifest_that_makes_no_sense_is_told(manifest, tmp_path, capsys):
    (tmp_path / MANIFEST).write_text(manifest, encoding="utf-8")
    assert main(["explain", "重庆", "--model", str(tmp_path)]) == 2
    assert str(tmp_path) in capsys.readouterr().err
