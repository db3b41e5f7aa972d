"""Files of arrays that are mapped into memory."""

from __future__ import annotations

import pytest

from cige.folders.mapped_arrays import arrays_in, map_file


def test_a_file_that_holds_no_arrays_is_refused(tmp_path):
    for content in (b"x", b"\xff" * 40, (2).to_bytes(8, "little") + b"{}"):
        (tmp_path / "file").write_bytes(content)
        if content.endswith(b"{}"):
            assert arrays_in(map_file(tmp_path / "file")) == {}
        else:
            with pytest.raises(ValueError, match=r"no \.safetensors file"):
                arrays_in(map_file(tmp_path / "file"))
    header = b'{"x":{"dtype":"BF16","shape":[1],"data_offsets":[0,2]}}'
    (tmp_path / "file").write_bytes(len(header).to_bytes(8, "little") + header + b"ab")
    with pytest.raises(ValueError, match="BF16"):
        arrays_in(map_file(tmp_path / "file"))
