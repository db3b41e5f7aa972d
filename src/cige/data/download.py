"""Downloads that can be resumed."""

from __future__ import annotations

import hashlib
import http.client
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request

from cige.errors import DataError

_TIMEOUT = 60  # seconds without receiving a byte
_NOT_FOUND = 404
_CANNOT_RESUME = 416  # the requested range does not exist


def download(urls: Sequence[str], folder: Path, *, opener: Callable[..., Any]) -> Path:
    """Download a file into `folder` from the first of its addresses that has it; returns its path.

    An interrupted download is kept as .part and continued by the next call.

    Args:
        opener: called like `urllib.request.urlopen`, with a Request and `timeout`.

    Raises:
        DataError: the network or the server failed; the message contains the address.
    """
    for url in urls:
        try:
            return _download_one(url, folder, opener)
        except (OSError, http.client.HTTPException) as error:  # URLError and HTTPError are OSErrors
            if url == urls[-1] or not (isinstance(error, HTTPError) and error.code == _NOT_FOUND):
                raise _failure(url, error) from error
    raise AssertionError("a file has at least one address")


def _download_one(url: str, folder: Path, opener: Callable[..., Any]) -> Path:
    name = f"{hashlib.sha256(url.encode()).hexdigest()[:12]}-{url.rpartition('/')[2]}"
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
