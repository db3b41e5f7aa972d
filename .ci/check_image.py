"""Builds the image of examples/deploy/Dockerfile and checks a server that runs from it as compose.yaml says.

    python .ci/check_image.py [docker | podman] [--port 8000]

The file system is read-only, no capability is left, and words that clients add are on a volume. Checked: the server
gets ready and healthy, asks for its token, finds entities, keeps words over a restart, cannot write elsewhere, is not
root, and ends by itself when it is stopped. Not part of .ci/run, since it needs Docker or Podman and a registry.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
IMAGE = "cige-check"
TOKEN = "checked"
TEXT, WORD = "昨天阿拉善贺兰草宣布了新的计划。", "阿拉善贺兰草"
READY_S, STOP_S = 60, 40
CONFINED = ("--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL", "--security-opt", "no-new-privileges")


def check(holds: bool, problem: str) -> None:
    if not holds:
        sys.exit(f"WRONG: {problem}")


class Engine:
    """Docker or Podman, and one server in it."""

    def __init__(self, name: str, port: int):
        self.name, self.port = name, port

    def __call__(self, *arguments: str, may_fail: bool = False) -> subprocess.CompletedProcess[str]:
        done = subprocess.run([self.name, *arguments], cwd=ROOT, capture_output=True, text=True)
        if done.returncode and not may_fail:
            sys.exit(
                f"WRONG: {self.name} {' '.join(arguments)} ended with {done.returncode}\n{done.stdout}{done.stderr}"
            )
        return done

    def inspect(self, kind: str, name: str) -> dict:
        return json.loads(self(kind, "inspect", name).stdout)[0]

    @contextmanager
    def server(self) -> Iterator[None]:
        """Run the image until the end of the block; what it has written stays on the volume."""
        options = ("--volume", f"{IMAGE}:/var/lib/cige", "--publish", f"127.0.0.1:{self.port}:8000")
        self("run", "--detach", "--name", IMAGE, *CONFINED, *options, "--env", f"CIGE_SERVE_TOKEN={TOKEN}", IMAGE)
        try:
            self.wait_until_ready()
            yield
            started = time.monotonic()
            self("stop", "--time", str(STOP_S), IMAGE)
            code = self.inspect("container", IMAGE)["State"]["ExitCode"]
            check(code == 0, f"the server ended with {code}, {time.monotonic() - started:.1f} s after it was stopped")
        finally:
            self("rm", "--force", IMAGE)

    def wait_until_ready(self) -> None:
        started = time.monotonic()
        while (status := self.ask("/readyz", token=None)[0]) != 200:
            if time.monotonic() - started > READY_S:
                logs = self("logs", IMAGE, may_fail=True)
                sys.exit(f"WRONG: /readyz answers {status} after {READY_S} s\n{logs.stdout}{logs.stderr}")
            time.sleep(0.1)
        print(f"ready after {time.monotonic() - started:.1f} s")

    def ask(self, path: str, body: dict | None = None, *, token: str | None = TOKEN) -> tuple[int, dict]:
        """Status and answer; status 0 if there is no connection."""
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data, headers)
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, {}
        except OSError:
            return 0, {}

    def entities(self) -> list[tuple[str, str]]:
        status, answer = self.ask("/v1/entities", {"text": TEXT})
        check(status == 200, f"/v1/entities answers {status}")
        return [(entity["text"], entity["label"]) for entity in answer["results"][0]["entities"]]


def check_confinement(engine: Engine) -> None:
    user = engine("exec", IMAGE, "id", "-u").stdout.strip()
    check(user.isdigit() and user != "0", f"the server runs as user {user}")
    for place in ("/", "/opt/cige", "/etc"):
        done = engine("exec", IMAGE, "touch", f"{place}/written", may_fail=True)
        check(done.returncode != 0, f"the server can write to {place}")


def check_health(engine: Engine) -> None:
    facts = engine.inspect("image", IMAGE)
    health = facts["Config"].get("Healthcheck") or facts.get("Healthcheck")  # Docker, Podman
    check(bool(health), "the image has no health check; podman keeps it with BUILDAH_FORMAT=docker")
    assert health is not None
    done = engine("exec", IMAGE, *health["Test"][1:], may_fail=True)
    check(done.returncode == 0, f"the health check ends with {done.returncode}: {done.stderr}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engine", nargs="?", choices=["docker", "podman"], default="docker")
    parser.add_argument("--port", type=int, default=8000, help="port of this machine to use (default: 8000)")
    args = parser.parse_args()
    os.environ.setdefault("BUILDAH_FORMAT", "docker")  # of Podman; its own format has no health checks
    engine = Engine(args.engine, args.port)
    engine("build", "--file", "examples/deploy/Dockerfile", "--tag", IMAGE, ".")
    print(f"{engine.inspect('image', IMAGE)['Size'] / 1e6:.0f} MB")
    try:
        with engine.server():
            check_health(engine)
            check_confinement(engine)
            status, _ = engine.ask("/v1/entities", {"text": TEXT}, token=None)
            check(status == 401, f"without the token, /v1/entities answers {status}")
            check(("昨天", "TIME") in (found := engine.entities()), f"found {found}")
            check((WORD, "PRODUCT") not in found, f"{WORD} is a PRODUCT before it is added")
            word = {"text": WORD, "label": "PRODUCT", "mode": "force"}
            status, _ = engine.ask("/v1/lexicon", {"words": [word]})
            check(status == 200, f"/v1/lexicon answers {status}")
        with engine.server():
            check((WORD, "PRODUCT") in (found := engine.entities()), f"after a restart, found {found}")
    finally:
        engine("volume", "rm", "--force", IMAGE, may_fail=True)
    print("all well")


if __name__ == "__main__":
    main()
