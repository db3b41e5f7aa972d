"""Units: the text of a corpus once, cut where documents end, in the same places however the files are stored."""

from __future__ import annotations

import gzip
import io
import lzma
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cige.errors import CigeError, DataError
from cige.lattice_bert.pretraining import units as module
from cige.lattice_bert.pretraining.units import Unit, cut_units

_lines = st.sampled_from(["甲。", "乙丙丁。", "", " ", "\r", "戊己庚辛壬癸。" * 3])


def cut(paths: list[Path], size: int, *, a_line: bool = False) -> list[Unit]:
    return list(cut_units(paths, size, is_document_a_line=a_line))


def texts(units: list[Unit]) -> list[bytes]:
    return [b"".join(stretch.read() for stretch in unit.stretches) for unit in units]


@pytest.fixture(autouse=True)
def _small_probes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PROBE", 7)


@settings(max_examples=60)
@given(st.lists(st.lists(_lines, max_size=25), min_size=1, max_size=3), st.integers(1, 90), st.booleans())
def test_every_byte_once_whether_packed_or_not(tmp_path_factory, files, size: int, a_line: bool) -> None:
    folder = tmp_path_factory.mktemp("files")
    found = []
    for pack in (bytes, gzip.compress, lzma.compress):
        paths = [folder / str(number) for number in range(len(files))]
        for path, lines in zip(paths, files, strict=True):
            path.write_bytes(pack("\n".join(lines).encode()))
        units = cut(paths, size, a_line=a_line)
        found.append([(unit.number, [(s.path, s.start, s.stop) for s in unit.stretches]) for unit in units])
        assert b"".join(texts(units)) == "".join("\n".join(lines) for lines in files).encode()
        assert all(len(text) >= size for text in texts(units)[:-1])
        assert [unit.number for unit in units] == list(range(len(units)))
    assert found[0] == found[1] == found[2]


def test_units_end_with_documents(tmp_path: Path) -> None:
    path = tmp_path / "corpus"
    path.write_bytes(b"aaa\nbbb\n\nccc\n \r\nddd\n\neee")
    # A blank line that begins before a unit is full is not its end.
    assert texts(cut([path], 9)) == [b"aaa\nbbb\n\nccc\n \r\n", b"ddd\n\neee"]
    assert texts(cut([path], 5, a_line=True)) == [b"aaa\nbbb\n", b"\nccc\n \r\n", b"ddd\n\neee"]


def test_a_document_of_more_than_twice_the_size_is_cut_at_a_line(tmp_path: Path) -> None:
    path = tmp_path / "corpus"
    path.write_bytes(b"aaaa\n" * 20 + b"b")
    units = cut([path], 10)
    assert all(text.endswith(b"aaaa\n") for text in texts(units)[:-1]) and len(units) > 3
    assert max(map(len, texts(units))) <= 35
    inside = [(stretch.begins_inside, stretch.ends_inside) for unit in units for stretch in unit.stretches]
    assert inside[0] == (False, True) and inside[1] == (True, True) and inside[-1] == (True, False)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(CigeError, match="cannot be read"):
        cut([tmp_path / "none"], 10)
    (tmp_path / "packed").write_bytes(gzip.compress(b"abc\n" * 1000)[:-9])
    with pytest.raises(CigeError, match="damaged or truncated"):
        cut([tmp_path / "packed"], 10)
    (tmp_path / "utf16").write_bytes("甲乙".encode("utf-16"))
    with pytest.raises(CigeError, match="UTF-16"):
        texts(cut([tmp_path / "utf16"], 10))
    (tmp_path / "shrinks").write_bytes(b"abc\n" * 10)
    units = cut([tmp_path / "shrinks"], 100)
    (tmp_path / "shrinks").write_bytes(b"abc\n")
    with pytest.raises(DataError, match="became shorter"):
        texts(units)


def test_a_line_without_end_is_read_in_few_parts() -> None:
    """Each part is searched again with all before it, so that parts of one size would take quadratic time."""

    class Counted(io.BytesIO):
        n_reads = 0

        def read(self, size: int | None = -1) -> bytes:
            self.n_reads += 1
            return super().read(size)

    content = Counted(b"a" * 100_000 + b"\nb")
    n, _, _ = module._end_in(content, b"", 10, module._LINE)
    assert n == 100_001 and content.n_reads < 20
