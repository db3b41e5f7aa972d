import pytest

from cige.data.sentence import Span
from cige.data.tags import spans_to_tags
from cige.errors import DataError
from cige.lattice_bert.tasks.readers import WORD, read_entities, read_segmented


def test_segmented_lines(tmp_path):
    (tmp_path / "train.txt").write_text("他  在 北京\n\n３月５日 好\n", encoding="utf-8")
    first, second = read_segmented(tmp_path, "train")
    assert first.text == "他在北京" and first.spans == (Span(0, 1, WORD), Span(1, 2, WORD), Span(2, 4, WORD))
    assert second.text == "３月５日好" and second.line == 3
    assert spans_to_tags(5, second.spans) == ["B-WORD", "M-WORD", "M-WORD", "E-WORD", "S-WORD"]
    assert read_segmented(tmp_path, "dev") == [] == read_segmented(tmp_path, "test")
    (tmp_path / "dev.txt").write_text("\n \n")
    with pytest.raises(DataError, match=r"dev.txt contains no sentence"):
        read_segmented(tmp_path, "dev")


def columns(n):
    return "".join(f"{'甲乙丙丁'[k % 4]} O\n京 S-LOC\n\n" for k in range(n))


def test_dev_is_cut_off_train_where_it_has_no_file(tmp_path):
    (tmp_path / "train.bmes").write_text(columns(20), encoding="utf-8")
    train, dev = read_entities(tmp_path, "train"), read_entities(tmp_path, "dev")
    assert len(train) == 18 and len(dev) == 2 and read_entities(tmp_path, "test") == []
    assert [s.text for s in train + dev] == ["甲乙丙丁"[k % 4] + "京" for k in range(20)]
    (tmp_path / "dev.bmes").write_text(columns(3), encoding="utf-8")
    assert len(read_entities(tmp_path, "train")) == 20 and len(read_entities(tmp_path, "dev")) == 3


def test_segmentation_has_a_dev_set_without_its_file_too(tmp_path):
    lines = [f"第 {k} 句" for k in range(30)]
    (tmp_path / "train.txt").write_text("\n".join(lines), encoding="utf-8")
    train, dev = read_segmented(tmp_path, "train"), read_segmented(tmp_path, "dev")
    assert [s.text for s in train + dev] == [line.replace(" ", "") for line in lines] and len(dev) == 3


def test_entities_of_clues_format(tmp_path):
    (tmp_path / "test.json").write_text(
        '{"text": "小明在北京", "label": {"address": {"北京": [[3, 4]]}}}\n', encoding="utf-8"
    )
    assert read_entities(tmp_path, "test")[0].spans == (Span(3, 5, "address"),)
