"""Origins: the sources of the public data sets, and how each is converted to a .bmes file."""

from __future__ import annotations

import hashlib
import io
import re
import tarfile
from collections.abc import Callable
from dataclasses import dataclass

from cige.data.columns import format_columns, parse_columns
from cige.data.jsonl import parse_json_lines
from cige.data.sentence import Sentence, Span
from cige.data.text_files import decode
from cige.errors import DataError

_WEIBO_POSITION = re.compile(r"^(.)\d+(?=\t)", re.MULTILINE)  # "科0": a character and its position in the word


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
        return self._at(self.commit)

    @property
    def urls(self) -> tuple[str, str]:
        """The URLs to try: the commit, then the default branch if the host does not accept abbreviated commits.

        The sha256 is checked in either case.
        """
        return self._at(self.commit), self._at("master")

    def _at(self, ref: str) -> str:
        return f"https://raw.githubusercontent.com/{self.repository}/{ref}/{self.path}"

    def convert(self, raw: bytes) -> bytes:
        """Convert the downloaded bytes to a .bmes file.

        Raises:
            DataError: they cannot be read, or the result does not have the expected checksum.
        """
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
