"""Parsing of bodies: what JSON has too much of is refused before Python objects are made of it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute

from cige.serving.refusals import Refused, shown, too_many
from cige.serving.settings import Limits

NOT_JSON = "the body is not JSON in UTF-8"
LABELS = 256  # in the list of a request; models have fewer
SPARE = 1_000  # JSON values of a request besides those of its lists
_STRUCTURE = (b",", b":", b"[", b"{")  # one of these precedes every value but the outermost
_STRING = re.compile(rb'"[^"]*"?')
_BOM = b"\xef\xbb\xbf"


def parse(content: bytes, *, most_values: int) -> Any:
    """The value of a JSON text.

    Each value takes up to a hundred times as much memory as its text, and a mistake in it ten times that. So they are
    counted in the text, which takes a few milliseconds for the longest body.

    Args:
        most_values: maximum number of numbers, strings, keys, lists and objects.

    Raises:
        Refused: it is no JSON, has too many values, or a number that is not finite, which no field may be.
    """
    n_values = _n_values(content, most_values)
    if n_values > most_values:
        raise too_many("too_many_values", "JSON values", n_values, most_values, "send fewer texts or words in each")
    odd: list[str] = []

    def number(literal: str) -> float:
        value = float(literal)
        if not math.isfinite(value):
            odd.append(literal)
        return value

    try:
        text = content.removeprefix(_BOM).decode("utf-8", "surrogatepass")
        value = json.loads(text, parse_float=number, parse_constant=number)
    except RecursionError:
        raise Refused("not_json", f"{NOT_JSON}, or lists are nested too deeply; expected an object") from None
    except json.JSONDecodeError as reason:
        raise Refused("not_json", f"{NOT_JSON} (character {reason.pos:,})") from None
    except UnicodeDecodeError as reason:
        raise Refused("not_json", f"{NOT_JSON} (byte {reason.start:,})") from None
    except ValueError:  # a number of more digits than Python reads
        long = "a number of thousands of digits"
        raise Refused(
            "not_finite", f"the body: given {long}; expected a shorter one", field="the body", given=long
        ) from None
    if odd:
        field, given = _odd_place(value), shown(odd[0])
        raise Refused("not_finite", f"{field}: given {given}; expected a finite number", field=field, given=given)
    return value


def _n_values(content: bytes, most: int) -> int:
    """How many values a JSON text has; where it has more than `most`, a number above that."""
    n_values = sum(map(content.count, _STRUCTURE))
    if n_values <= most:  # nearly every body; the others have commas within strings
        return n_values
    bare = content.replace(b"\\\\", b"").replace(b'\\"', b"")
    n_strings = bare.count(b'"') // 2
    return n_strings if n_strings > most else sum(map(_STRING.sub(b"", bare).count, _STRUCTURE))


def _odd_place(value: Any) -> str:
    """The field with the first number that is not finite, such as `words.3.label`."""
    waiting: list[tuple[Any, tuple[str, ...]]] = [(value, ())]
    while waiting:
        here, path = waiting.pop()
        if isinstance(here, float) and not math.isfinite(here):
            return ".".join(path) or "the body"
        if isinstance(here, dict | list):
            items = list(here.items() if isinstance(here, dict) else enumerate(here))
            waiting += [(item, (*path, shown(str(name)))) for name, item in reversed(items)]
    return "the body"  # the number was in a value that a later one of the same key replaced


def check_lists(body: Any, limits: Limits) -> None:
    """Check the lengths of lists before their items are; raises Refused if one is too long."""
    if not isinstance(body, dict):
        return
    for name, most in (("texts", limits.texts), ("words", limits.words), ("labels", LABELS)):
        listed = body.get(name)
        if isinstance(listed, list) and len(listed) > most:
            raise too_many(f"too_many_{name}", name, len(listed), most, "send the others in further requests")


def bounded_route(limits: Limits) -> type[APIRoute]:
    """The class of routes whose bodies are read by `parse` and `check_lists`."""
    most_values = 2 * (limits.texts + 8 * limits.words + LABELS + SPARE)

    class BoundedRequest(Request):
        async def json(self) -> Any:
            value = parse(await self.body(), most_values=most_values)
            check_lists(value, limits)
            return value

    class BoundedRoute(APIRoute):
        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            usual = super().get_route_handler()

            async def handler(request: Request) -> Response:
                return await usual(BoundedRequest(request.scope, request.receive))

            return handler

    return BoundedRoute
