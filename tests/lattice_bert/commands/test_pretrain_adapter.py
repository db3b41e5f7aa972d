"""`cige lattice-bert pretrain adapter`: what it refuses; the adapter itself is tested in the tests of the encoder."""

from __future__ import annotations

from cige.cli import main
from cige.lattice_bert.kinds import PRETRAINED


def test_a_model_is_not_replaced_by_its_copy_with_an_adapter(tmp_path, capsys):
    (tmp_path / "manifest.json").write_text(f'{{"kind": "{PRETRAINED}"}}', encoding="utf-8")
    argv = ["lattice-bert", "pretrain", "adapter", str(tmp_path), "--vectors", "v.npz", "--output", f"{tmp_path}/"]
    assert main(argv) == 2
    assert "the folder of the model itself, which its copy would replace" in capsys.readouterr().err
