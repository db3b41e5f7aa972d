"""The texts that benchmarks read."""

from __future__ import annotations

from benchmarks.data import FULL_BATCHES, texts_by_length


def test_pieces_fill_two_batches_however_few_texts_are_asked_for(tmp_path):
    for name, split, n in (("weibo", "dev", 3), ("msra", "train", 400)):
        path = tmp_path / "ner" / name / f"{split}.bmes"
        path.parent.mkdir(parents=True)
        path.write_text("".join(f"{chr(0x4E00 + k)} O\n" * 20 + "\n" for k in range(n)), encoding="utf-8")
    texts = texts_by_length(tmp_path, 40, (10, 100))
    news = texts["MSRA"]
    assert len(texts["Weibo dev"]) == 3 and len(news) == 40
    assert "".join(texts["10 characters"]) == "".join(news)  # the same news, cut
    assert len(texts["100 characters"]) == FULL_BATCHES
    assert "".join(texts["100 characters"]).endswith("".join(news))
    assert {len(piece) for piece in texts["100 characters"]} == {100}
