"""100,000 requests: the memory of a server; 100,000 odd texts: offsets over HTTP, in spaCy and in files.

`memory`: requests of odd texts, one after another on several connections, some with words of their own; the memory of
the server's process is noted as it goes. A server that keeps something of each request grows.

`offsets`: odd texts (emoji, characters beyond the first plane, combining marks, control characters, line ends,
traditional characters) through HTTP in code points and in UTF-16, through the spaCy component, and through
`cige annotate` on a file. Each entity's offsets must give its text, and all ways must find the same entities.
"""

import asyncio
import json
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import httpx2
import psutil
import uvloop

from benchmarks.measure import line, megabytes
from benchmarks.parts.odd_texts import NEWS, odd_texts
from benchmarks.speed.serve import Connection, requests_of, server

Found = list[tuple[int, int, str]]
N_SAMPLES = 20


def bench(
    what: Annotated[Sequence[str], ("memory", "offsets"), "what is looked at"] = ("memory", "offsets"),
    *,
    requests: Annotated[int, "whose memory is measured"] = 100_000,
    texts: Annotated[int, "whose offsets are checked"] = 100_000,
    connections: Annotated[int, "to the server"] = 6,
    seed: int = 0,
) -> dict[str, Any]:
    """Memory, then offsets; wrong offsets end it."""
    results: dict[str, Any] = {"seed": seed}
    with server(1) as (address, _):
        if "memory" in what:
            pid = server_process(urlsplit(address).port or 0)
            results["memory"] = found = uvloop.run(soak(address, requests, seed, connections, pid))
            print(line({name: value for name, value in found.items() if name != "megabytes"}), flush=True)
        if "offsets" in what:
            results["offsets"] = compare(address, list(odd_texts(NEWS, texts, seed=seed)))
    return results


def memory_of(pid: int) -> float:
    """Megabytes that a process alone holds, without files that it maps and shares."""
    sizes = megabytes(pid, "smaps_rollup")
    return sizes["Private_Dirty"] + sizes["Swap"]


def server_process(port: int) -> int:
    """The process that listens on a port of this machine."""
    for process in psutil.Process().children(recursive=True):
        listening = (c.laddr.port for c in process.net_connections("tcp") if c.status == psutil.CONN_LISTEN)
        if port in listening:
            return process.pid
    raise SystemExit(f"no process listens on port {port}")


def bodies(n: int, seed: int) -> Iterator[bytes]:
    """Bodies of requests: most ask for entities alone, some bring words, options, explanations or mistakes."""
    rng = random.Random(seed)
    for number, text in enumerate(odd_texts(NEWS, n, seed=seed)):
        body: dict[str, Any] = {"text": text}
        if number % 5 == 0:
            start = rng.randrange(len(text))
            own = {"text": text[start : start + 4], "mode": "evidence"}
            body["words"] = [{"text": f"词{number}号", "label": "X"}, own]
        if number % 7 == 0:
            body |= {"offsets": "utf16", "min_score": 0.3}
        if number % 50 == 0:
            body["explain"] = True
        if number % 100 == 0:
            body["text"] = 3
        yield json.dumps(body).encode()


async def soak(address: str, n: int, seed: int, connections: int, pid: int) -> dict[str, Any]:
    url, loop, started = urlsplit(address), asyncio.get_running_loop(), time.monotonic()
    waiting = enumerate(requests_of(address, bodies(n, seed)))
    statuses: Counter[int] = Counter()
    samples: list[tuple[int, float]] = []

    async def client() -> None:
        _, connection = await loop.create_connection(Connection, url.hostname, url.port)
        for number, request in waiting:
            statuses[await connection.post(request)] += 1
            if number % max(1, n // N_SAMPLES) == 0:
                samples.append((number, memory_of(pid)))
                print(f"{number:,} requests, {samples[-1][1]:.1f} MB", flush=True)

    await asyncio.gather(*(client() for _ in range(connections)))
    samples.append((n, memory_of(pid)))
    settled = [size for number, size in samples if number >= n // 10]
    found: dict[str, Any] = {"n_requests": n, "statuses": {str(k): count for k, count in sorted(statuses.items())}}
    found |= {"requests_per_second": n / (time.monotonic() - started), "megabytes": samples}
    return found | {"growth_megabytes": settled[-1] - settled[0], "most_megabytes": max(settled)}


def check(text: str, entities: Sequence[dict[str, Any]], *, utf16: bool = False) -> Found:
    """The entities in code points, after their offsets gave their texts."""
    units = text.encode("utf-16-le") if utf16 else b""
    found = []
    for entity in entities:
        start, end = entity["start"], entity["end"]
        try:
            if utf16:
                start, end = (len(units[: 2 * place].decode("utf-16-le")) for place in (start, end))
            is_right = 0 <= start < end <= len(text) and text[start:end] == entity["text"]
        except UnicodeDecodeError:  # between the two halves of a character
            is_right = False
        if not is_right:
            raise SystemExit(f"wrong offsets: {entity} in {text!r}")
        found.append((start, end, entity["label"]))
    return found


def over_http(address: str, texts: Sequence[str], *, offsets: str, at_once: int = 256) -> Iterator[Found]:
    with httpx2.Client(timeout=300, trust_env=False) as client:
        for k in range(0, len(texts), at_once):
            part = texts[k : k + at_once]
            answer = client.post(address, json={"texts": part, "offsets": offsets}).raise_for_status().json()
            for text, result in zip(part, answer["results"], strict=True):
                yield check(text, result["entities"], utf16=offsets == "utf16")


def through_spacy(texts: Sequence[str]) -> Iterator[Found]:
    import spacy

    nlp = spacy.blank("zh")
    nlp.add_pipe("cige")
    for text, doc in zip(texts, nlp.pipe(texts, batch_size=256), strict=True):
        entities = [{"start": e.start_char, "end": e.end_char, "label": e.label_, "text": e.text} for e in doc.ents]
        if doc.text != text:
            raise SystemExit(f"spaCy changed {text!r}")
        yield check(text, entities)


def through_files(texts: Sequence[str]) -> Iterator[Found]:
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "texts.jsonl", Path(folder) / "annotated"
        source.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts), encoding="utf-8")
        command = [sys.executable, "-m", "cige", "annotate", str(source), str(target), "--processes", "1"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        lines = (x for path in sorted((target / "data").iterdir()) for x in path.read_bytes().split(b"\n") if x)
        for text, row in zip(texts, map(json.loads, lines), strict=True):
            if row["text"] != text:
                raise SystemExit(f"the file changed {text!r}")
            yield check(text, row["entities"])


def compare(address: str, texts: Sequence[str]) -> dict[str, Any]:
    """Entities of each way against those over HTTP; one that is nearly a tie may tip with the shape of a batch."""
    ways: dict[str, Callable[[], Iterator[Found]]] = {
        "http": lambda: over_http(address, texts, offsets="code_points"),
        "http_utf16": lambda: over_http(address, texts, offsets="utf16"),
        "spacy": lambda: through_spacy(texts),
        "files": lambda: through_files(texts),
    }
    first: list[Found] = []
    results: dict[str, Any] = {"n_texts": len(texts), "n_chars": sum(map(len, texts))}
    for name, way in ways.items():
        found = list(way())
        first = first or found
        differ = sum(a != b for a, b in zip(first, found, strict=True))
        results[name] = {"n_entities": sum(map(len, found)), "n_wrong_offsets": 0, "n_texts_that_differ": differ}
        print(f"{name}: {line(results[name])}", flush=True)
    return results
