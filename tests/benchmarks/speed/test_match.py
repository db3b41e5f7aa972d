"""The matching benchmark runs and reports speeds."""

import lzma

from benchmarks.speed.match import bench


def test_the_ways_are_measured_on_the_same_sentences(tmp_path):
    (tmp_path / "lexicon").mkdir()
    (tmp_path / "lexicon" / "jieba.txt.xz").write_bytes(lzma.compress("南京\t3\n长江\t2\n".encode()))
    (tmp_path / "ner" / "msra").mkdir(parents=True)
    (tmp_path / "ner" / "msra" / "train.bmes").write_text("南 O\n京 O\n长 O\n江 O\n\n长 O\n江 O\n\n")
    result = bench(data_dir=tmp_path, rounds=1)
    assert (result["n_words"], result["n_sentences"], result["n_matches"]) == (2, 2, 3)
    for way in ("lexicon", "daachorse"):
        assert result[f"{way}_us_per_sentence"] > 0 and result[f"{way}_mb_per_s"] >= 0  # 0.0 on a busy machine
