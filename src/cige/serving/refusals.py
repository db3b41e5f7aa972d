"""Refusals: errors as clients receive them, with a code for programs, a message for people and its figures."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.exceptions import HTTPException

from cige.lexicon import user_word, word_rules
from cige.serving.answers import json_bytes

Param = str | int | float
MOST_SHOWN = 1_000  # characters of a message
MOST_QUOTED = 64  # characters of something that was given, such as a word or the name of a field

# Each code with its HTTP status. The page translates all of them (`MESSAGES_ZH` in page.html).
CODES = {
    "not_http": 400,
    "not_json": 400,
    "damaged_gzip": 400,
    "no_token": 401,
    "not_found": 404,
    "wrong_method": 405,
    "too_slow": 408,
    "version_conflict": 409,
    "lexicon_full": 409,
    "body_too_long": 413,
    "too_many_values": 413,
    "too_many_texts": 413,
    "too_many_characters": 413,
    "too_many_explained_characters": 413,
    "too_many_words": 413,
    "too_many_labels": 413,
    "too_many_nodes": 413,
    "drawing_too_large": 413,
    "url_too_long": 414,
    "wrong_encoding": 415,
    "wrong_host": 421,
    "invalid": 422,
    "no_object": 422,
    "text_or_texts": 422,
    "not_finite": 422,
    "unknown_model": 422,
    "unknown_word": 422,
    "word_empty": 422,
    "word_single": 422,
    "word_too_long": 422,
    "word_control": 422,
    "word_unencodable": 422,
    "word_edge": 422,
    "word_bad_label": 422,
    "word_needs_label": 422,
    "word_blocked_label": 422,
    "word_refused": 422,
    "not_possible": 422,
    "busy": 429,
    "headers_too_long": 431,
    "client_left": 499,
    "failed": 500,
    "stopping": 503,
    "not_ready": 503,
    "stuck": 503,
    "lexicon_file": 503,
    "too_many_connections": 503,
    "deadline": 504,
}
WORD_CODES = {  # why a word cannot be used -> the code of that
    word_rules.EMPTY: "word_empty",
    word_rules.SINGLE: "word_single",
    word_rules.TOO_LONG: "word_too_long",
    word_rules.CONTROL: "word_control",
    word_rules.UNENCODABLE: "word_unencodable",
    word_rules.EDGE: "word_edge",
    user_word.BAD_LABEL: "word_bad_label",
    user_word.NO_LABEL: "word_needs_label",
    user_word.BLOCKED_LABEL: "word_blocked_label",
}


class Refused(HTTPException):
    """A request that gets an error response.

    It is an HTTPException, so that FastAPI passes it on from wherever the body of a request is read.

    Args:
        code: one of CODES, which has its status.
        message: what was given, what was expected and what to do; a longer one than MOST_SHOWN is cut.
        headers: further headers of the response.
        params: the figures and names in the message.
    """

    def __init__(self, code: str, message: str, *, headers: Mapping[str, str] | None = None, **params: Param):
        message = shown(message, MOST_SHOWN)
        super().__init__(CODES[code], message, dict(headers or {}))
        self.code, self.message, self.params = code, message, params

    @property
    def content(self) -> Mapping[str, object]:
        """The body of the response."""
        return {"error": {"code": self.code, "message": self.message, "params": self.params}}

    @property
    def body(self) -> bytes:
        """The same as JSON."""
        return json_bytes(self.content)


def shown(given: str, most: int = MOST_QUOTED) -> str:
    """A text of a client as a message quotes it: its beginning, if it is longer than `most` characters."""
    return given if len(given) <= most else given[: most - 1] + "…"


def busy(seconds: int) -> Refused:
    """The refusal of a request that should be tried again in so many seconds."""
    message = f"too many requests wait; try again in {seconds} s"
    return Refused("busy", message, headers={"Retry-After": str(seconds)}, seconds=seconds)


def too_many(code: str, what: str, given: int, most: int, todo: str) -> Refused:
    """The refusal of a request that has more of something than one request may have."""
    message = f"given {given:,} {what}; at most {most:,} may be in a request; {todo}"
    return Refused(code, message, given=given, most=most)


def refused_word(word: user_word.UserWord, reason: str) -> Refused:
    """The refusal of a word that cannot be used, for one of the reasons of `cige.lexicon`."""
    text = shown(word.text)
    return Refused(WORD_CODES.get(reason, "word_refused"), f"cannot add {text!r} ({reason})", word=text, reason=reason)
