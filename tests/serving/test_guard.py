"""Guard: bodies that are held together, and when a request counts as accepted."""

import asyncio
from types import SimpleNamespace

import pytest

from cige.serving.guard import HELD_BODIES, Guard

MOST = 100


class Requests:
    """Requests to an app that reads their bodies and then waits for `done`."""

    def __init__(self):
        self.done, self.n_taken, self.statuses = asyncio.Event(), 0, []
        pace = SimpleNamespace(refuse_for=lambda arrived: 0, begin=lambda: self._take(1), end=lambda: self._take(-1))
        metrics = SimpleNamespace(request=lambda path, status, seconds: self.statuses.append(status))
        self.guard = Guard(self._app, token=None, body_bytes=MOST, metrics=metrics, pace=pace)

    def _take(self, n):
        self.n_taken += n

    async def _app(self, scope, receive, send):
        while (await receive()).get("more_body"):
            pass
        await self.done.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def start(self, *pieces, is_whole=True):
        """A request whose body has these pieces; one that is not whole is never finished."""
        messages = [{"type": "http.request", "body": piece, "more_body": True} for piece in pieces]
        if is_whole:
            messages.append({"type": "http.request", "body": b"", "more_body": False})

        async def receive():
            if not messages:
                await self.done.wait()
                return {"type": "http.disconnect"}
            return messages.pop(0)

        async def send(message):
            pass

        scope = {"type": "http", "method": "POST", "path": "/v1/entities", "headers": [], "state": {}}
        task = asyncio.ensure_future(self.guard(scope, receive, send))
        for _ in range(20):
            await asyncio.sleep(0)
        return task


def test_bodies_that_are_held_together_are_limited():
    async def main():
        requests = Requests()
        held = [await requests.start(b"x" * MOST, is_whole=k % 2 == 0) for k in range(HELD_BODIES)]
        assert requests.statuses == []
        await requests.start(b"x" * MOST)
        assert requests.statuses == [429]
        requests.done.set()
        await asyncio.gather(*held)
        last = await requests.start(b"x" * MOST)
        await last
        assert requests.statuses[-1] == 200 and requests.guard._n_held == 0

    asyncio.run(main())


@pytest.mark.parametrize("is_whole", [True, False])
def test_a_request_counts_as_accepted_once_it_has_arrived(is_whole):
    async def main():
        requests = Requests()
        task = await requests.start(b"x", is_whole=is_whole)
        assert requests.n_taken == (1 if is_whole else 0)
        requests.done.set()
        await task
        assert requests.n_taken == 0

    asyncio.run(main())
