"""A Hugging Face Hub of one's own, for tests: repositories of small files in memory."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Repos = dict[str, dict[str, bytes]]


@contextmanager
def hub() -> Iterator[tuple[str, Repos]]:
    """The endpoint, and what its repositories hold: what is pushed there, and what a test puts there."""
    repos: Repos = {}

    class Handler(_Handler):
        held = repos

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}", repos
        server.shutdown()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    held: Repos

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (the base class's name)
        pass

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        if self.path == "/api/repos/create":
            asked = json.loads(body)
            name = f"{asked['organization']}/{asked['name']}" if asked.get("organization") else asked["name"]
            self.held.setdefault(name, {})
            return self._json({"url": self._home(name)})
        if self.path == "/api/validate-yaml":
            return self._json({"errors": [], "warnings": []})
        repo, action = re.fullmatch(
            r"/api/models/(\w+/[\w-]+)/(preupload|commit)/main", self.path.partition("?")[0]
        ).groups()  # pyright: ignore[reportOptionalMemberAccess]
        if action == "preupload":
            paths = [file["path"] for file in json.loads(body)["files"]]
            return self._json({"files": [{"path": p, "uploadMode": "regular", "shouldIgnore": False} for p in paths]})
        for line in map(json.loads, body.splitlines()):
            if line["key"] == "file":
                self.held[repo][line["value"]["path"]] = base64.b64decode(line["value"]["content"])
        return self._json({"commitUrl": f"{self._home(repo)}/commit/{self._sha(repo)}", "commitOid": self._sha(repo)})

    def do_GET(self) -> None:
        if match := re.fullmatch(r"/api/models/(\w+/[\w-]+)(?:/revision/main)?", self.path.partition("?")[0]):
            files = [{"rfilename": name} for name in self.held[match[1]]]
            return self._json({"id": match[1], "sha": self._sha(match[1]), "siblings": files})
        if match := re.fullmatch(r"/api/models/(\w+/[\w-]+)/tree/\w+", self.path.partition("?")[0]):
            files = self.held[match[1]].items()
            listed = [{"type": "file", "path": name, "size": len(data), "oid": _oid(data)} for name, data in files]
            return self._json(listed)
        repo, name = re.fullmatch(r"/(\w+/[\w-]+)/resolve/\w+/(.+)", self.path).groups()  # pyright: ignore[reportOptionalMemberAccess]
        data = self.held[repo].get(name)
        if data is None:
            return self._send(404, b"", {"X-Error-Code": "EntryNotFound"})
        return self._send(200, data, {"ETag": f'"{_oid(data)}"', "X-Repo-Commit": self._sha(repo)})

    do_HEAD = do_GET  # noqa: N815 (the base class's name)

    def _json(self, answer: Any) -> None:
        self._send(200, json.dumps(answer).encode(), {"Content-Type": "application/json"})

    def _send(self, status: int, data: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(data))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _home(self, repo: str) -> str:
        return f"http://{self.headers['host']}/{repo}"

    def _sha(self, repo: str) -> str:
        return _oid(b"".join(self.held[repo].values()))


def _oid(data: bytes) -> str:
    return hashlib.sha1(data).hexdigest()
