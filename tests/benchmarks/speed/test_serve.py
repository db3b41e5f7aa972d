"""The client of the server's benchmark."""

import asyncio

import pytest

pytest.importorskip("uvloop")
pytest.importorskip("httpx2")

from benchmarks.parts.odd_texts import NEWS
from benchmarks.speed.serve import cut_texts, send


def test_texts_have_their_length_whatever_that_of_the_file_is():
    news = NEWS.read_text(encoding="utf-8").replace("\n", "")
    for length in (5, len(news), 3 * len(news) + 1):
        texts = cut_texts(NEWS, 60, length)
        assert [len(text) for text in texts] == [length] * 60
        assert all(text[: len(news)] in 2 * news for text in texts) and len({text[:5] for text in texts}) > 20


def test_connections_that_the_server_closed_are_not_used_again():
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(int(head.lower().partition(b"content-length:")[2].split()[0]))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        await writer.drain()
        writer.close()

    async def sent() -> list[int]:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        found = await asyncio.wait_for(send(f"http://127.0.0.1:{port}/v1/entities", ["甲"] * 4, 20), 30)
        server.close()
        return [answer.status for answer in found]

    assert asyncio.run(sent()) == [200] * 4
