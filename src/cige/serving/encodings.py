"""Encodings of request bodies: gzip is decompressed piece by piece, up to the maximum size of a body and no further."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping

from cige.serving.refusals import Refused

_PIECE = 1 << 14  # bytes that are decompressed at once; where a member ends, zlib copies the rest of them
_GZIP = 16 + zlib.MAX_WBITS  # with the header and the checksum of gzip
_IS_GZIP = {b"": False, b"identity": False, b"gzip": True, b"x-gzip": True}
_CLOSE = {"connection": "close"}  # the rest of the body is not read


class Body:
    """The body of a request, which arrives in pieces; raises Refused if the announced length is too large.

    Args:
        headers: the headers of the request, with their names in lower case.
        most: maximum size in bytes, both of the body as it is sent and of its decompressed content.
    """

    def __init__(self, headers: Mapping[bytes, bytes], most: int):
        self._most, self._n_sent, self._n_content = most, 0, 0
        self._encoding = headers.get(b"content-encoding", b"").strip().lower()
        self._gzip = zlib.decompressobj(_GZIP) if _IS_GZIP.get(self._encoding) else None
        length = headers.get(b"content-length", b"")
        if length.isdigit() and int(length) > most:
            raise self._too_long()

    def count(self, sent: bytes) -> None:
        """Count a piece that is not needed.

        Raises:
            Refused: the body is too long.
        """
        self._n_sent += len(sent)
        if self._n_sent > self._most:
            raise self._too_long()

    def read(self, sent: bytes, *, is_last: bool) -> bytes:
        """Count a piece, and return its content.

        Raises:
            Refused: the body is too long, its encoding is not supported, or it is not what its encoding says.
        """
        if self._encoding not in _IS_GZIP:
            given = self._encoding[:64].decode("ascii", "backslashreplace")
            error = f"given Content-Encoding: {given}; expected gzip, or a body that is not compressed"
            raise Refused("wrong_encoding", error, headers={"accept-encoding": "gzip"} | _CLOSE, given=given)
        self.count(sent)
        if self._gzip is None:
            return sent
        pieces = (sent[start : start + _PIECE] for start in range(0, len(sent), _PIECE))
        try:
            content = b"".join(content for piece in pieces for content in self._decompressed(piece))
        except zlib.error as reason:
            raise _damaged(str(reason)) from None
        if is_last and not self._gzip.eof:
            raise _damaged("it ends too early")
        return content

    def _decompressed(self, sent: bytes) -> Iterator[bytes]:
        """The content of a piece, in which one compressed member may follow another (RFC 1952, section 2.2)."""
        while sent:
            assert self._gzip is not None
            if self._gzip.eof:
                self._gzip = zlib.decompressobj(_GZIP)
            # One byte more than is allowed shows that there is more; a small body can hold a thousand times its size.
            content = self._gzip.decompress(sent, self._most - self._n_content + 1)
            self._n_content += len(content)
            if self._n_content > self._most:
                raise self._too_long()
            yield content
            sent = self._gzip.unused_data

    def _too_long(self) -> Refused:
        size = f"{self._most:,} bytes" + ("" if self._gzip is None else ", decompressed or not")
        message = f"the body is longer than {size}; send fewer texts in a request"
        return Refused("body_too_long", message, headers=_CLOSE, most=self._most)


def _damaged(reason: str) -> Refused:
    message = f"the body is not gzip, as Content-Encoding says, or is damaged ({reason})"
    return Refused("damaged_gzip", message, headers=_CLOSE, reason=reason)
