"""The GitHub of the demonstration: one labelled pull request on loopback, and what the steps ask about it."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import re
import tarfile
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any
from urllib.parse import unquote, urlsplit

_ME = {"login": "github-actions[bot]", "id": 41_898_282}
_ROLE = {"permission": "write", "role_name": "write"}
_DATE = "2024-01-01T00:00:00Z"


class DemoGitHub:
    """A repository with one open pull request; it asks for no token, has one page of everything and never fails."""

    def __init__(
        self, repo: str, base: Mapping[str, bytes], head: Mapping[str, bytes], *, title: str, label: str
    ) -> None:
        self.repo, self.number, self.title = repo, 1, title
        self.tip, self.head_sha = (_sha(tree) for tree in (base, head))
        self._trees = {self.tip: base, self.head_sha: head}
        self._changed = sorted(path for path in base.keys() | head.keys() if base.get(path) != head.get(path))
        self._labels = [label]
        self.comments: list[dict[str, Any]] = []
        self.checks: list[dict[str, Any]] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))

    @property
    def url(self) -> str:
        """The address to use as GITHUB_API_URL."""
        return f"http://localhost:{self._server.server_port}"

    def job_token(self, permissions: Mapping[str, str]) -> str:
        """Return what stands for a job's token."""
        return "demo"

    def __enter__(self) -> DemoGitHub:
        threading.Thread(target=self._server.serve_forever, name="demo-github", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, verb: str, path: str, body: dict[str, Any]) -> Any:
        """Return the answer to a request, as JSON or as an archive; None where there is nothing."""
        inside = path.removeprefix(f"/repos/{self.repo}")
        for method, pattern, reply in _ROUTES:
            if method == verb and (match := re.fullmatch(pattern, inside)):
                return reply(self, *match.groups(), *([body] if body else []))
        return None

    def pull(self, number: str) -> dict[str, Any]:
        """Show the pull request."""
        fork = f"contributor/{self.repo.split('/')[1]}"
        return {
            "number": int(number),
            "state": "open",
            "title": self.title,
            "user": {"login": "contributor"},
            **dict.fromkeys(("draft", "merged", "locked"), False),
            "head": {"sha": self.head_sha, "ref": "change", "repo": {"full_name": fork}},
            "base": {"sha": self.tip, "ref": "main"},
            "labels": [{"name": name} for name in self._labels],
            "changed_files": len(self._changed),
            "html_url": f"{self.url}/{self.repo}/pull/{number}",
            "updated_at": _DATE,
        }

    def files(self) -> list[dict[str, str]]:
        """List what the pull request changes."""
        return [{"filename": path, "status": "modified"} for path in self._changed]

    def unlabel(self, _number: str, name: str) -> list[str]:
        """Take a label off."""
        self._labels.remove(name)
        return self._labels

    def commit(self, ref: str) -> dict[str, Any]:
        sha = self.tip if ref == "main" else ref
        return {"sha": sha, "commit": {"tree": {"sha": sha}, "committer": {"date": _DATE}}, "parents": []}

    def compare(self, base: str, head: str) -> dict[str, Any] | None:
        """Compare the pull request with its base; no other commit is known."""
        if {base, head} != {self.tip, self.head_sha}:
            return None
        ahead = int(base == self.tip)
        files = self.files() if ahead else []
        return {"ahead_by": ahead, "behind_by": 1 - ahead, "merge_base_commit": {"sha": self.tip}, "files": files}

    def content(self, path: str) -> dict[str, str] | None:
        """Show a file of the base branch."""
        content = self._trees[self.tip].get(path)
        if content is None:
            return None
        packed = base64.b64encode(content).decode()
        return {"type": "file", "encoding": "base64", "sha": hashlib.sha256(content).hexdigest(), "content": packed}

    def archive(self, sha: str) -> bytes:
        """Return the files of a commit below one folder, as git packs them."""
        packed = io.BytesIO()
        with (
            gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as stream,
            tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as tar,
        ):
            for path, content in sorted(self._trees[sha].items()):
                info = tarfile.TarInfo(f"{self.repo.replace('/', '-')}-{sha[:7]}/{path}")
                info.size, info.mode = len(content), 0o664
                tar.addfile(info, io.BytesIO(content))
        return packed.getvalue()

    def say(self, number: str, body: dict[str, Any]) -> dict[str, Any]:
        """Add a comment."""
        comment = len(self.comments) + 1
        page = f"{self.url}/{self.repo}/pull/{number}#issuecomment-{comment}"
        self.comments.append({"id": comment, "node_id": f"IC_{comment}", "user": _ME, "html_url": page, **body})
        return self.comments[-1]

    def check(self, body: dict[str, Any]) -> dict[str, Any]:
        """Start a check run."""
        self.checks.append({"id": len(self.checks) + 1, "app": {"slug": "github-actions"}, **body})
        return self.checks[-1]


def _sha(tree: Mapping[str, bytes]) -> str:
    named = sorted((path, hashlib.sha256(content).hexdigest()) for path, content in tree.items())
    return hashlib.sha256(json.dumps(named).encode()).hexdigest()[:40]


def _edited(kept: list[dict[str, Any]], number: str, body: dict[str, Any]) -> dict[str, Any]:
    kept[int(number) - 1] |= body
    return kept[int(number) - 1]


_SHA = "[0-9a-f]{40}"
_ROUTES: tuple[tuple[str, str, Callable[..., Any]], ...] = (
    ("GET", "", lambda gh: {"id": 1, "default_branch": "main"}),
    ("GET", "/user", lambda gh: _ME),
    ("GET", "/collaborators/.+/permission", lambda gh: _ROLE),
    ("GET", r"/pulls/(\d+)", DemoGitHub.pull),
    ("GET", r"/pulls/\d+/files", DemoGitHub.files),
    ("DELETE", r"/issues/(\d+)/labels/(.+)", DemoGitHub.unlabel),
    ("POST", r"/issues/\d+/reactions", lambda gh, body: body),
    ("GET", r"/issues/\d+/comments", lambda gh: gh.comments),
    ("POST", r"/issues/(\d+)/comments", DemoGitHub.say),
    ("PATCH", r"/issues/comments/(\d+)", lambda gh, number, body: _edited(gh.comments, number, body)),
    ("GET", "/commits/.+/check-runs", lambda gh: {"check_runs": gh.checks}),
    ("POST", "/check-runs", DemoGitHub.check),
    ("PATCH", r"/check-runs/(\d+)", lambda gh, number, body: _edited(gh.checks, number, body)),
    ("GET", f"/commits/(main|{_SHA})", DemoGitHub.commit),
    ("GET", rf"/compare/({_SHA})\.\.\.({_SHA})", DemoGitHub.compare),
    ("GET", "/contents/(.+)", DemoGitHub.content),
    ("GET", f"/tarball/({_SHA})", DemoGitHub.archive),
    ("GET", "/actions/workflows/.+/runs", lambda gh: {"workflow_runs": []}),
    ("GET", "/actions/artifacts", lambda gh: {"artifacts": []}),
)


def _handler(github: DemoGitHub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            sent = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            found = github.answer(self.command, unquote(urlsplit(self.path).path), json.loads(sent) if sent else {})
            packed = isinstance(found, bytes)
            content = found if packed else json.dumps({"message": "Not Found"} if found is None else found).encode()
            self.send_response(404 if found is None else 200)
            self.send_header("Content-Type", "application/gzip" if packed else "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_POST = do_PATCH = do_DELETE = do_GET

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing: the steps say what happens."""

    return Handler
