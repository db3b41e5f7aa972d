"""What is asked of a server; whole data sets are fetched in test_registry.py."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from urllib.request import Request

import pytest

from cige.data.origins import download

URL = "https://example.org/made/train.txt"
CONTENT = b"0123456789"


class Server:
    """Answers for one file, from the byte that is asked for on."""

    def __init__(self) -> None:
        self.asked: list[str | None] = []  # the range of each request

    @contextmanager
    def open(self, request: Request, timeout: float) -> Iterator[SimpleNamespace]:
        wanted = request.get_header("Range")
        self.asked.append(wanted)
        begin = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted else 0
        headers = {"Content-Length": str(len(CONTENT) - begin)}
        if wanted:
            headers["Content-Range"] = f"bytes {begin}-{len(CONTENT) - 1}/{len(CONTENT)}"
        yield SimpleNamespace(status=206 if wanted else 200, headers=headers, read=io.BytesIO(CONTENT[begin:]).read)


@pytest.fixture
def server() -> Server:
    return Server()


def test_a_file_is_asked_for_whole_and_once(server, tmp_path):
    first = download([URL], tmp_path, opener=server.open)
    assert first.read_bytes() == CONTENT and server.asked == [None]
    assert download([URL], tmp_path, opener=server.open) == first and server.asked == [None]


@pytest.mark.parametrize(("n_held", "asked"), [(0, None), (4, "bytes=4-")])
def test_the_rest_of_a_file_is_asked_for_where_some_of_it_is_held(server, tmp_path, n_held, asked):
    whole = download([URL], tmp_path, opener=server.open)
    whole.rename(whole.with_name(f"{whole.name}.part")).write_bytes(CONTENT[:n_held])
    server.asked.clear()
    assert download([URL], tmp_path, opener=server.open).read_bytes() == CONTENT
    assert server.asked == [asked]
