"""Refusals: errors as clients receive them, with a code for programs, a message for people and its figures."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.exceptions import HTTPException
from starlette.responses import Response

from cige.json_text import json_bytes
from cige.lexicon import user_word, word_rules

Param = str | int | float
MOST_SHOWN = 1_000  # characters of a message
MOST_QUOTED = 64  # characters of something that was given, such as a word or the name of a field

_CODES_OF = {
    400: "not_http not_json damaged_gzip",
    401: "no_token",
    404: "not_found",
    405: "wrong_method",
    408: "too_slow",
    409: "version_conflict lexicon_full",
    413: "body_too_long too_many_values too_many_texts too_many_characters too_many_explained_characters "
    "too_many_words too_many_labels too_many_nodes drawing_too_large",
    414: "url_too_long",
    415: "wrong_encoding",
    421: "wrong_host",
    422: "invalid no_object text_or_texts not_finite unknown_model unknown_word word_empty word_single word_too_long "
    "word_control word_unencodable word_edge word_bad_label word_needs_label word_blocked_label word_refused "
    "not_possible",
    429: "busy",
    431: "headers_too_long",
    499: "client_left",
    500: "failed",
    503: "stopping not_ready stuck lexicon_file too_many_connections",
    504: "deadline",
}
CODES = {code: status for status, codes in _CODES_OF.items() for code in codes.split()}
"""Each code with its HTTP status. The page translates all of them (`MESSAGES_ZH` in page.html)."""
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
    """A request that gets an error response; an HTTPException, which FastAPI passes on from wherever it reads a body.

    Args:
        code: one of CODES, which has its status.
        message: what was given, what was expected and what to do; a longer one than MOST_SHOWN is cut.
        headers: further headers of the response, with their names in lower case.
        params: the figures and names in the message.
    """

    def __init__(self, code: str, message: str, *, headers: Mapping[str, str] | None = None, **params: Param):
        message = shown(message, MOST_SHOWN)
        super().__init__(CODES[code], message)
        self.headers: Mapping[str, str] = dict(headers or {})
        self.code, self.message, self.params = code, message, params

    @property
    def body(self) -> bytes:
        """The body of the response, as JSON."""
        return json_bytes({"error": {"code": self.code, "message": self.message, "params": self.params}})

    def response(self) -> Response:
        return Response(self.body, self.status_code, headers=self.headers, media_type="application/json")


def shown(given: str, most: int = MOST_QUOTED) -> str:
    """A text of a client as a message quotes it: its beginning, if it is longer than `most` characters."""
    return given if len(given) <= most else given[: most - 1] + "…"


def busy(seconds: int) -> Refused:
    """The refusal of a request that should be tried again in so many seconds."""
    message = f"too many requests wait; try again in {seconds} s"
    return Refused("busy", message, headers={"retry-after": str(seconds)}, seconds=seconds)


def too_many(code: str, what: str, given: int, most: int, todo: str) -> Refused:
    """The refusal of a request that has more of something than one request may have."""
    message = f"given {given:,} {what}; at most {most:,} may be in a request; {todo}"
    return Refused(code, message, given=given, most=most)


def refused_word(word: user_word.UserWord, reason: str) -> Refused:
    """The refusal of a word that cannot be used, for one of the reasons of `cige.lexicon`."""
    text = shown(word.text)
    return Refused(WORD_CODES.get(reason, "word_refused"), f"cannot add {text!r} ({reason})", word=text, reason=reason)
