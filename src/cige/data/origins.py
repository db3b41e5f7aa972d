"""Origins: the sources of the public data sets, how they are downloaded, and how each is converted to a .bmes file."""

from __future__ import annotations

import hashlib
import http.client
import io
import re
import shutil
import tarfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request

from cige.data.columns import format_columns, parse_columns
from cige.data.jsonl import parse_json_lines
from cige.data.sentence import Sentence, Span
from cige.data.text_files import decode
from cige.errors import DataError

_WEIBO_POSITION = re.compile(r"^(.)\d+(?=\t)", re.MULTILINE)  # "科0": a character and its position in the word
_TIMEOUT = 60  # seconds without receiving a byte
_NOT_FOUND = 404
_CANNOT_RESUME = 416  # the requested range does not exist


@dataclass(frozen=True)
class Origin:
    """The source of one split of a public data set.

    Attributes:
        repository, commit, path: a file on GitHub.
        form: its format, a key of CONVERTERS.
        sha256: the checksum of the converted .bmes file.
        member: the name of the file within it if it is a .tgz archive.
    """

    repository: str
    commit: str
    path: str
    form: str
    sha256: str
    member: str | None = None

    @property
    def url(self) -> str:
        """The address of the file at its commit."""
        return self.urls[0]

    @property
    def urls(self) -> tuple[str, ...]:
        """The URLs to try: the commit, then the default branch if the host does not accept abbreviated commits.

        The sha256 is checked in either case.
        """
        repository = f"https://raw.githubusercontent.com/{self.repository}"
        return tuple(f"{repository}/{ref}/{self.path}" for ref in (self.commit, "master"))

    def convert(self, raw: bytes) -> bytes:
        """Convert the downloaded bytes to a .bmes file. Raises a DataError if they cannot be read, or the result does
        not have the expected checksum."""
        if self.member is not None:
            raw = _member_of(raw, self.member, name=self.url)
        sentences = CONVERTERS[self.form](decode(raw, name=self.url), self.url)
        converted = format_columns(sentences, "BMES").encode("utf-8")
        digest = sha256_of(converted)
        if digest != self.sha256:
            raise DataError(
                f"{self.url} converts to a file with sha256 {digest}, expected {self.sha256}: the source has changed "
                "or the download is damaged; nothing was kept, fetch it again"
            )
        return converted


def sha256_of(raw: bytes) -> str:
    """The sha256 of some bytes, in hex."""
    return hashlib.sha256(raw).hexdigest()


def _from_columns(text: str, name: str) -> tuple[Sentence, ...]:
    # The sources have a few illegal tags (Weibo 14, Resume 4, E-commerce 1), which are repaired by `tags.repair`.
    return parse_columns(text, name=name, repair_tags=True).sentences


def _from_weibo(text: str, name: str) -> tuple[Sentence, ...]:
    return _from_columns(_WEIBO_POSITION.sub(r"\1", text), name)


def _from_cluener(text: str, name: str) -> tuple[Sentence, ...]:
    return parse_json_lines(text, name=name, form="cluener", keep_outermost=True).sentences


def _from_words(text: str, name: str) -> tuple[Sentence, ...]:
    """Read one sentence per line, `word/tag word/tag ...`; every word whose tag is not o is an entity."""
    sentences = []
    for number, line in enumerate(text.split("\n"), 1):
        words: list[str] = []
        spans: list[Span] = []
        position = 0
        for item in line.strip(" \r").split(" "):
            if not item:
                continue
            word, slash, tag = item.rpartition("/")
            if not slash:
                raise DataError(f"{name}, line {number}: expected word/tag, found {item!r}")
            if tag != "o":
                spans.append(Span(position, position + len(word), tag.upper()))
            words.append(word)
            position += len(word)
        if words:
            sentences.append(Sentence("".join(words), tuple(spans), number))
    return tuple(sentences)


CONVERTERS: dict[str, Callable[[str, str], tuple[Sentence, ...]]] = {
    "columns": _from_columns,
    "weibo": _from_weibo,
    "words": _from_words,
    "cluener": _from_cluener,
}


def _member_of(raw: bytes, member: str, *, name: str) -> bytes:
    """The bytes of the file named `member` in any folder of a .tgz archive."""
    try:
        with tarfile.open(fileobj=io.BytesIO(raw)) as archive:
            for entry in archive:
                if entry.isfile() and entry.name.rpartition("/")[2] == member:
                    file = archive.extractfile(entry)
                    assert file is not None  # it is a regular file
                    return file.read()
    except (tarfile.TarError, EOFError, OSError) as error:
        raise DataError(f"{name} is not the expected archive ({error}); fetch it again") from error
    raise DataError(f"{name} contains no file {member}; the source has changed")


def download(urls: Sequence[str], folder: Path, *, opener: Callable[..., Any]) -> Path:
    """Download a file into `folder` from the first of its addresses that has it; returns its path.

    An interrupted download is kept as .part and continued by the next call. Raises a DataError if the network or the
    server failed; the message contains the address.

    Args:
        opener: called like `urllib.request.urlopen`, with a Request and `timeout`.
    """
    for url in urls:
        try:
            return _download_one(url, folder, opener)
        except (OSError, http.client.HTTPException) as error:  # URLError and HTTPError are OSErrors
            if url == urls[-1] or not (isinstance(error, HTTPError) and error.code == _NOT_FOUND):
                raise _failure(url, error) from error
    raise AssertionError("a file has at least one address")


def _download_one(url: str, folder: Path, opener: Callable[..., Any]) -> Path:
    name = f"{sha256_of(url.encode())[:12]}-{url.rpartition('/')[2]}"
    target, part = folder / name, folder / f"{name}.part"
    if not target.exists():
        folder.mkdir(parents=True, exist_ok=True)
        try:
            _fetch(url, part, opener)
        except HTTPError as error:
            if error.code != _CANNOT_RESUME or not part.exists():
                raise
            part.unlink()  # the partial file is not the beginning of that file
            _fetch(url, part, opener)
        part.replace(target)
    return target


def _fetch(url: str, part: Path, opener: Callable[..., Any]) -> None:
    n_held = part.stat().st_size if part.exists() else 0
    headers = {"User-Agent": "cige", "Accept-Encoding": "identity"}
    if n_held:
        headers["Range"] = f"bytes={n_held}-"
    with opener(Request(url, headers=headers), timeout=_TIMEOUT) as response:
        continues = response.status == 206 and str(response.headers.get("Content-Range", "")).startswith(
            f"bytes {n_held}-"
        )
        if response.status == 206 and not continues:
            raise OSError("the server sent another part than the requested one")
        with open(part, "ab" if continues else "wb") as file:
            before = file.tell()
            shutil.copyfileobj(response, file)
            n_received = file.tell() - before
    n_expected = response.headers.get("Content-Length")
    if n_expected is not None and n_received != int(n_expected):
        raise OSError(f"the connection closed after {n_received} of {n_expected} bytes")


def _failure(url: str, error: Exception) -> DataError:
    reason = f"the server answers {error.code}" if isinstance(error, HTTPError) else str(error)
    hint = "run the command again to resume, or use local copies with --data-dir or CIGE_DATA"
    return DataError(f"cannot fetch {url}: {reason}; {hint}")
