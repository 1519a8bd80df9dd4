"""Look-alikes that must stay: hashes, ids, versions, code, and data that hides nothing."""

from __future__ import annotations

import base64
import random
import uuid
from collections.abc import Callable

from tests.suite.corpus import ALNUM, B64, DIGITS, HEX, Kind, Planted, draw

__all__ = ["NEGATIVES"]


def _stays(name: str, value: Callable[[random.Random], str], *frames: str) -> Kind:
    def make(rng: random.Random) -> Planted:
        text = value(rng)
        return Planted(rng.choice(frames).replace("%s", text), (text,))

    return Kind(name, "negative", make)


def _uuid(rng: random.Random) -> str:
    return str(uuid.UUID(int=rng.getrandbits(128), version=4))


def _words(rng: random.Random, count: int, joiner: str) -> str:
    stock = ("lease", "retry", "worker", "ledger", "queue", "drain", "pool", "replay", "batch", "cursor", "shard")
    return joiner.join(rng.choice(stock) for _ in range(count))


NEGATIVES: tuple[Kind, ...] = (
    _stays("commit hash", lambda r: draw(r, HEX, 40), "commit %s", "HEAD is now at %s", '{"sha": "%s"}'),
    _stays("short hash", lambda r: draw(r, HEX, 9), "merged as %s", "index %s..0000000 100644"),
    _stays("sha256", lambda r: draw(r, HEX, 64), "sha256:%s", "%s  dist.tar.gz", '{"digest": "%s"}'),
    _stays("md5", lambda r: draw(r, HEX, 32), "md5 = %s", 'ETag: "%s"'),
    _stays("integrity", lambda r: draw(r, B64, 86) + "==", "sha512-%s", '"integrity": "sha512-%s"'),
    _stays("uuid", _uuid, "request %s took 3 s", '{"id": "%s"}', "session_id=%s"),
    _stays(
        "version",
        lambda r: f"{r.randint(0, 9)}.{r.randint(0, 40)}.{r.randint(0, 20)}",
        "v%s",
        "litellm==%s",
        "python %s",
    ),
    _stays(
        "four-part version",
        lambda r: f"{r.randint(90, 130)}.0.{r.randint(1000, 6999)}.{r.randint(10, 200)}",
        "Chrome/%s Safari",
        "version %s",
        "driver==%s",
    ),
    _stays(
        "private ip",
        lambda r: f"10.{r.randint(0, 9)}.{r.randint(0, 99)}.{r.randint(1, 99)}",
        "ssh root@%s",
        "http://%s:8080",
    ),
    _stays("localhost", lambda r: f"127.0.0.1:{r.randint(1025, 65000)}", "listening on %s"),
    _stays("documentation ip", lambda r: f"192.0.2.{r.randint(1, 250)}", "host %s"),
    _stays(
        "repository path", lambda r: f"src/{_words(r, 2, '/')}_{r.randint(1, 9)}.py", "edit %s", 'File "%s", line 12'
    ),
    _stays("long path", lambda r: f"/opt/relay/{_words(r, 5, '/')}/v2/index.json", "cat %s"),
    _stays("container path", lambda r: f"/home/node/app/{_words(r, 2, '-')}.js", "at run (%s:10:3)"),
    _stays("identifier", lambda r: f"{_words(r, 4, '_')}_{r.randint(1, 9)}", "call %s()", "def %s(self):"),
    _stays(
        "camel identifier",
        lambda r: "".join(w.title() for w in _words(r, 5, " ").split()) + "V2",
        "class %s:",
        "new %s()",
    ),
    _stays("test id", lambda r: f"tests/test_{_words(r, 2, '_')}.py::test_{_words(r, 4, '_')}", "FAILED %s"),
    _stays("pr number", lambda r: f"#{r.randint(100, 9999)}", "PR %s", "fixes %s"),
    _stays(
        "timestamp",
        lambda r: f"2026-0{r.randint(1, 9)}-1{r.randint(0, 9)}T1{r.randint(0, 9)}:22:33.{draw(r, DIGITS, 6)}Z",
        "at %s",
    ),
    _stays("epoch millis", lambda r: f"17{draw(r, DIGITS, 11)}", "ts=%s", '{"created": %s}'),
    _stays("epoch nanos", lambda r: f"17{draw(r, DIGITS, 17)}", "ts=%s"),
    _stays(
        "token count",
        lambda r: str(r.randint(1000, 99999)),
        "max_tokens: %s",
        '{"total_tokens": %s}',
        "prompt_tokens=%s",
    ),
    _stays("call id", lambda r: f"call_{draw(r, ALNUM, 24)}", "tool_call_id: %s", "%s answered"),
    _stays("message id", lambda r: f"msg_01{draw(r, ALNUM, 22)}", '{"message": "%s"}'),
    _stays(
        "base64 of zeros", lambda r: base64.b64encode(bytes(r.randint(24, 60))).decode(), "payload %s", '{"data": "%s"}'
    ),
    _stays("base64 of words", lambda r: base64.b64encode(_words(r, 6, " ").encode()).decode(), "echo %s | base64 -d"),
    _stays(
        "code reading a secret",
        lambda r: f'os.environ["{_words(r, 2, "_").upper()}_TOKEN"]',
        "token = %s",
        "api_key=%s",
    ),
    _stays(
        "variable reference",
        lambda r: "${" + _words(r, 2, "_").upper() + "}",
        "password: %s",
        "API_KEY=%s",
        "--token %s",
    ),
    _stays(
        "type annotation",
        lambda r: r.choice(("str | None", "SecretStr", "Optional[str]", "string")),
        "password: %s = None",
        "token: %s",
    ),
    _stays(
        "placeholder",
        lambda r: r.choice(("<your-api-key>", "your-token-here", "********", "changeme", "xxxxxxxx")),
        "API_KEY=%s",
        "password: %s",
    ),
    _stays("documentation e-mail", lambda r: f"{_words(r, 1, '')}@example.com", "mail %s"),
    _stays("git remote", lambda r: f"git@github.com:acme/{_words(r, 2, '-')}.git", "origin\t%s (fetch)"),
    _stays(
        "package pin",
        lambda r: f"@types/{_words(r, 1, '')}@18.{r.randint(1, 20)}.{r.randint(1, 9)}",
        "npm i %s",
        "resolved %s",
    ),
    _stays("action pin", lambda r: f"actions/checkout@{draw(r, HEX, 40)}", "uses: %s # v4"),
    _stays("decorator", lambda r: f"@pytest.mark.{_words(r, 1, '')}", "%s\ndef test_x(): ..."),
    _stays("cron", lambda r: f"{r.randint(0, 59)} {r.randint(0, 23)} * * 1-5", "schedule: %s"),
    _stays("public key", lambda r: "AAAAC3NzaC1lZDI1NTE5AAAAI" + draw(r, B64, 43), "ssh-ed25519 %s"),
    _stays("error code", lambda r: f"ERR_{_words(r, 2, '_').upper()}_{r.randint(100, 999)}", "failed with %s"),
    _stays("long number", lambda r: f"9{draw(r, DIGITS, 17)}", "order %s shipped", '{"snowflake": "%s"}'),
    _stays(
        "password message",
        lambda r: r.choice(("must be at least 8 characters", "incorrect", "required")),
        '{"password": "%s"}',
        "password: %s",
    ),
    _stays(
        "url with id",
        lambda r: f"https://forge.example/acme/relay/pull/{r.randint(10, 999)}?tab=files&page=2",
        "see %s",
    ),
    _stays("storage key", lambda r: f"reports/2026/{_words(r, 2, '/')}.parquet", "key=%s", '{"Key": "%s"}'),
)
