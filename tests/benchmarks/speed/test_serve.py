"""The client of the server's benchmark."""

import asyncio

import pytest

pytest.importorskip("uvloop")
pytest.importorskip("httpx2")

from benchmarks.speed.serve import send


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
