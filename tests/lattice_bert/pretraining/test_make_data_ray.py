"""Pre-training data on Ray: a real cluster, small; the same bytes as local processes write."""

from __future__ import annotations

import pytest
import tiny_corpus

from cige.errors import CigeError
from cige.lattice_bert.pretraining.corpus import CorpusRules
from cige.lattice_bert.pretraining.make_data import make_data
from cige.lattice_bert.pretraining.make_shard import DataSettings


def test_shards_of_pretraining_data_are_the_same_on_ray(ray_cluster, tmp_path):
    tiny_corpus.data_folder(tmp_path)
    settings = DataSettings(rules=CorpusRules(max_line=40), held_out=5, shard_size=1500, segment_words=False)
    options = {"settings": settings, "show_progress": False, "engine": "ray", "n_workers": 2}
    make_data([tmp_path / "corpus.txt"], tmp_path / "vocabulary", tmp_path / "on_ray", **options)
    local, on_ray = (
        {file.relative_to(tmp_path / name): file.read_bytes() for file in (tmp_path / name).rglob("*.*")}
        for name in ("data", "on_ray")
    )
    assert len(local) > 20 and on_ray == local
    (tmp_path / "corpus.txt").write_bytes(b"\xff bad\n" * 900)
    with pytest.raises(CigeError, match="not UTF-8 text"):
        make_data([tmp_path / "corpus.txt"], tmp_path / "vocabulary", tmp_path / "bad", **options)
