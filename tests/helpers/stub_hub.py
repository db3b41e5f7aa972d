"""A hub on this machine: what huggingface_hub asks of one to make a repository, upload a folder and fetch it again.

    python tests/helpers/stub_hub.py      prints its address and serves until it is stopped

Small files come in the commit, others by LFS, as on the real one.
"""

from __future__ import annotations

import base64
import hashlib
import json
import sys
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

TOKEN = "Bearer secret"


class StubHub(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    repos: dict[str, dict[str, bytes]] = {}  # noqa: RUF012, one hub to a process
    objects: dict[str, bytes] = {}  # noqa: RUF012
    lfs: set[str] = set()  # noqa: RUF012

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = unquote(urlsplit(self.path).path)
        if self.headers.get("Authorization") != TOKEN:
            return self._json(401, {"error": "Invalid username or password."})
        if path == "/api/repos/create":
            asked = json.loads(body)
            name = f"{asked.get('organization') or 'me'}/{asked['name']}"
            self.repos.setdefault(name, {})
            return self._json(200, {"url": f"{self._base}/{name}", "id": name})
        if path == "/api/validate-yaml":
            return self._json(200, {"errors": [], "warnings": []})
        if "/preupload/" in path:
            files = [
                {
                    "path": file["path"],
                    "uploadMode": "lfs" if file["size"] > 100_000 else "regular",
                    "shouldIgnore": False,
                }
                for file in json.loads(body)["files"]
            ]
            return self._json(200, {"files": files})
        if path.endswith("/info/lfs/objects/batch"):
            objects = [
                {
                    "oid": x["oid"],
                    "size": x["size"],
                    "actions": {"upload": {"href": f"{self._base}/objects/{x['oid']}"}},
                }
                for x in json.loads(body)["objects"]
            ]
            return self._json(200, {"transfer": "basic", "objects": objects})
        if "/commit/" in path:
            name = path.removeprefix("/api/models/").partition("/commit/")[0]
            repo = self.repos[name]
            for line in map(json.loads, body.decode().splitlines()):
                value = line["value"]
                if line["key"] == "file":
                    repo[value["path"]] = base64.b64decode(value["content"])
                elif line["key"] == "lfsFile":
                    repo[value["path"]] = self.objects[value["oid"]]
                    self.lfs.add(value["path"])
            sha = _sha(repo)
            return self._json(
                200, {"success": True, "commitOid": sha, "commitUrl": f"{self._base}/{name}/commit/{sha}"}
            )
        return self._json(404, {"error": f"POST {path}"})

    def do_PUT(self) -> None:
        content = self.rfile.read(int(self.headers["Content-Length"]))
        oid = self.path.rpartition("/")[2]
        self.objects[oid] = content
        self._json(200 if _digest(content) == oid else 400, {})

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path = unquote(urlsplit(self.path).path)
        if path.startswith("/api/models/"):
            name, _, rest = path.removeprefix("/api/models/").partition("/revision/")
            if not rest:
                name, _, rest = name.partition("/tree/")
            if name not in self.repos:
                return self._json(404, {"error": "Repository not found"}, {"X-Error-Code": "RepoNotFound"})
            repo = self.repos[name]
            if "/tree/" in path:
                return self._json(200, [_entry(path, content) for path, content in repo.items()])
            siblings = [{"rfilename": path} for path in repo]
            return self._json(200, {"id": name, "modelId": name, "sha": _sha(repo), "siblings": siblings})
        name, _, rest = path.strip("/").partition("/resolve/")
        file = rest.partition("/")[2]
        content = self.repos.get(name, {}).get(file)
        if content is None:
            return self._json(404, {"error": "Entry not found"}, {"X-Error-Code": "EntryNotFound"})
        head = {
            "ETag": f'"{_digest(content)}"',
            "X-Repo-Commit": _sha(self.repos[name]),
            "Content-Type": "application/octet-stream",
        }
        return self._send(200, content, head)

    @property
    def _base(self) -> str:
        return f"http://{self.headers['Host']}"

    def _json(self, code: int, value: object, head: dict[str, str] | None = None) -> None:
        self._send(code, json.dumps(value).encode(), {"Content-Type": "application/json"} | (head or {}))

    def _send(self, code: int, content: bytes, head: dict[str, str]) -> None:
        self.send_response(code)
        for name, value in head.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, form: str, *values: object) -> None:
        print(form % values, file=sys.stderr)


@cache
def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _sha(repo: dict[str, bytes]) -> str:
    """The commit; every answer names it, so it is made of the digests, not of the contents."""
    contents = sorted((path, _digest(content)) for path, content in repo.items())
    return hashlib.sha1(repr(contents).encode()).hexdigest()


def _entry(path: str, content: bytes) -> dict[str, object]:
    return {"type": "file", "path": path, "size": len(content), "oid": hashlib.sha1(content).hexdigest()}


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), StubHub)
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()
