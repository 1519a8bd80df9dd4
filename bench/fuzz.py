"""Fuzz every parser of foreign data, guided by coverage, and count the inputs.

    pip install atheris
    python bench/fuzz.py [--inputs 20000] [--only NAME] [--out table.md]
    python bench/fuzz.py --commands 2000 [--seed 0]

A parser may return a value or raise the one error that it promises. Anything else is a bug: its input is kept in
`bench/fuzz-crashes`, and belongs into a test. Half of the inputs are bytes as the fuzzer makes them, half are a real
document with some of its values replaced, so that what lies behind the first check is reached as well.

With --commands, whole commands are run in a project of which one file was changed in the same way: what a parser lets
through must not end a command with 70. It needs no atheris, and the same seed gives the same inputs.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import copy
import gzip
import io
import json
import logging
import os
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
CRASHES = ROOT / "bench" / "fuzz-crashes"
LEAVES: tuple[Any, ...] = (
    None, True, 0, -1, 10**400, 1e308, -0.0, 2**63, "", "x", "\x00", "\ud800", "@all", "9" * 500, [], {}, [[]],
    {"": None}, "a" * 5_000, "\u202e", {"kind": "grade"}, ["role"], "<!-- -->", "../../x", "$ref", 1.5, "1e999",
)  # fmt: skip
# What grammars act on, which chance alone seldom writes.
FRAGMENTS = (
    b"!!seq ", b"!!map ", b"!!int ", b"!!float ", b"!!bool ", b"!!str ", b"!!set ", b"!!binary ", b"&a ",
    b"*a", b"<<: *a", b"? ", b"- ", b"---\n", b"%YAML 1.1\n", b'"\\UFFFFFFFF"', b'"\\ud800"', b".nan", b"1e999",
    b"\xff\xfe", b"\x00", b"\r\n\r\n", b"Transfer-Encoding: chunked\r\n", b"Content-Length: 9\r\n", b"ffffffff\r\n",
    b"Expect: 100-continue\r\n", b"# ", b"```", b"|a|b|", b"**", b"\xe2\x80\xae", b'{"', b"[[[[", b"]", b"}", b"NaN",
)  # fmt: skip
SHA = "a" * 40


@dataclass(frozen=True)
class Parser:
    """One parser, what it promises to raise, and a document that it likes."""

    call: Callable[[bytes], object]
    seed: Callable[[], bytes]


def _in_file(name: str, call: Callable[[Path], object]) -> Callable[[bytes], object]:
    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))

    def run(data: bytes) -> object:
        path = folder / name
        path.write_bytes(data)
        return call(path)

    return run


def _text(call: Callable[[str], object]) -> Callable[[bytes], object]:
    return lambda data: call(data.decode("utf-8", "replace"))


def _first(pattern: str) -> Callable[[], bytes]:
    return lambda: sorted(ROOT.glob(pattern))[0].read_bytes()


@cache
def _measurement() -> bytes:
    from eval_core.storage.baselines import load_baseline

    body = load_baseline(ROOT / "baselines/offline.json")[0].model_dump(mode="json")
    body["fixtures"] = {name: runs[:1] for name, runs in list(body["fixtures"].items())[:1]}
    return json.dumps(body).encode()


def _summary(data: bytes) -> object:
    from eval_core.base.files import parse
    from eval_core.base.strict_json import parse_json
    from eval_core.comparing.overfitting import bank_overfitting
    from eval_core.domain.measurement import Measurement, comparable_part
    from eval_core.statistics.arms import make_arm, validate
    from eval_core.strands.evidence import read_evidence

    candidate = parse(Measurement, parse_json(data), "summary.json")
    base, _ = comparable_part(candidate, candidate)
    validate(make_arm(candidate))
    return read_evidence(base, candidate), bank_overfitting(base, candidate)


def _baseline(path: Path) -> object:
    from eval_core.base.files import digest
    from eval_core.storage.baselines import load_baseline

    with contextlib.suppress(ValueError, RecursionError, UnicodeError, OverflowError):
        body = json.loads(path.read_bytes())
        if isinstance(body, dict):  # the digest keeps chance out, not malice
            body.pop("digest", None)
            version = body.pop("schema_version", None)
            path.write_text(json.dumps({"schema_version": version, "digest": digest(body), **body}))
    return load_baseline(path)


def _event(data: bytes) -> object:
    from bot.pull_request.event import read_event
    from eval_core.base.strict_json import parse_json

    env = {"GITHUB_RUN_ID": "1", "GITHUB_RUN_ATTEMPT": "1", "GITHUB_REPOSITORY": "acme/agent", "GITHUB_SERVER_URL": "h"}
    body = parse_json(data)
    for name in ("pull_request_target", "workflow_dispatch", "issue_comment"):
        read_event(name, body, env)
    return None


def _http(data: bytes) -> object:
    from eval_core.sandbox.gateway_http import ClientGone, read_body, read_head

    async def read() -> None:
        reader = asyncio.StreamReader(limit=32 << 10)
        reader.feed_data(data)
        reader.feed_eof()
        with contextlib.suppress(ClientGone):
            head = await read_head(reader, b"")
            await read_body(reader, head, lambda size: None)

    return asyncio.run(read())


def _frame(data: bytes) -> object:
    from eval_core.sandbox.validate import error_text, read_frame, read_step

    frame = read_frame(data, "n")
    return read_step(frame), error_text(frame)


def _state(data: bytes) -> object:
    """Read everything that is read of a compressed state without a model."""
    from eval_core.domain.case import Case
    from eval_core.domain.fixture import load_fixture
    from eval_core.domain.probe import load_bank
    from eval_core.facts.fact_text import Haystack
    from eval_core.facts.verbatim import Kept
    from eval_core.models.refusals import refusal_in
    from eval_core.strands.form import read_form, written_texts
    from eval_core.strands.invented import read_invented, read_stale
    from eval_core.strands.structure import structure_checks
    from eval_core.strands.window import read_window

    if not hasattr(_state, "case"):
        name = min((ROOT / "fixtures").glob("*.json"), key=lambda path: path.stat().st_size).stem
        bank = load_bank(ROOT / "probes" / f"{name}.probes.json")
        case = Case(load_fixture(ROOT / "fixtures" / f"{name}.json"), bank)
        _state.case, _state.text = case, Haystack.of_messages(case.fixture.messages)  # type: ignore[attr-defined]
    case, text = _state.case, data.decode("utf-8", "replace")  # type: ignore[attr-defined]
    state = [{"role": "user", "content": text}]
    kept = Kept(case.fixture.messages, state)
    written = written_texts(kept)
    return (
        read_form(written), read_window(kept), structure_checks(case.fixture.messages, state, kept), refusal_in(text),
        read_invented(written, _state.text), read_stale(case.bank.probes, Haystack.of_messages(state)),  # type: ignore[attr-defined]
    )  # fmt: skip


def _dialect(path: str) -> Callable[[bytes], object]:
    def run(data: bytes) -> object:
        from eval_core.sandbox.protocol.route import route
        from eval_core.sandbox.request import read_object, read_request

        found = route("POST", path)
        assert found is not None
        return read_request(found.dialect.to_chat(read_object(data)).body)

    return run


def _gateway_frame(data: bytes) -> object:
    from eval_core.sandbox.gateway_frames import BadGatewayFrame, read_gateway_frame

    async def read() -> None:
        reader = asyncio.StreamReader()
        reader.feed_data(len(data).to_bytes(4, "big") + data)
        reader.feed_eof()
        with contextlib.suppress(BadGatewayFrame):
            await read_gateway_frame(reader, 1 << 20)

    return asyncio.run(read())


def _command_line(data: bytes) -> object:
    from eval_core.sandbox.exchange import answer_to_compress, answer_to_start

    text = data.decode("utf-8", "replace")
    return answer_to_start(text), answer_to_compress(text, 1)


def _reply(data: bytes) -> object:
    from eval_core.domain.call import ModelCall
    from eval_core.models.openai_compatible import read_reply

    return read_reply(ModelCall("judge", "m", ({"role": "user", "content": "x"},), 10), data, 0.1, {}, ())


def _run_record(path: Path) -> object:
    from eval_core.storage.results import ResultsFolder

    return ResultsFolder(path.parent).read_run("f", 0)


def _run_seed() -> bytes:
    return json.dumps(next(iter(json.loads(_measurement())["fixtures"].values()))[0]).encode()


def _packed(path: Path) -> object:
    import hashlib

    from eval_core.domain.fixture import load_fixture

    # The digest in the name keeps chance out, not malice.
    with contextlib.suppress(OSError, EOFError, zlib.error):
        named = path.with_name(f"f.{hashlib.sha256(gzip.decompress(path.read_bytes())).hexdigest()[:8]}.json.gz")
        path = path.replace(named)
    return load_fixture(path)


def _database_seed() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "state.db"
        with contextlib.closing(sqlite3.connect(path)) as database:
            database.execute("create table messages (session_id text, role text, content text, tool_calls text)")
            database.execute("insert into messages values ('s', 'user', 'hello', null)")
            database.commit()
        return path.read_bytes()


def _session(path: Path) -> object:
    from eval_core.suite.importers import read_session

    return read_session(path)


def _tar(path: Path) -> object:
    from bot.steps.fetch import unpack

    with tempfile.TemporaryDirectory() as into:
        return unpack(path, SHA, Path(into) / "tree")


def _zip(path: Path) -> object:
    from bot.steps.fetch import unpack_artifact

    with tempfile.TemporaryDirectory() as into:
        return unpack_artifact(path, Path(into) / "files")


def _tar_seed() -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for name in ("repo-aaaa/a.py", "repo-aaaa/b/c.txt"):
            info = tarfile.TarInfo(name)
            info.size = 3
            archive.addfile(info, io.BytesIO(b"abc"))
    return stream.getvalue()


def _zip_seed() -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("summary.json", "{}")
        archive.writestr("journal.jsonl", "{}\n")
    return stream.getvalue()


def _comment_seed() -> bytes:
    from bot.pull_request.ledger import Ledger
    from bot.steps.comment import compose

    return compose(Ledger(), "acme/agent#1").encode()


def _sealed_seed() -> bytes:
    from eval_core.domain.private_probes import seal_banks
    from eval_core.domain.probe import load_bank

    bank = load_bank(sorted((ROOT / "probes").glob("*.probes.json"))[0])
    return json.dumps(seal_banks([bank], _key()).model_dump(mode="json")).encode()


@cache
def _key() -> Any:
    from eval_core.base.sealing import SealingKey

    return SealingKey.new()[0]


def _sealed(path: Path) -> object:
    from eval_core.domain.private_probes import open_banks, read_sealed

    return open_banks(read_sealed(path), _key(), "f")


JOURNAL = json.dumps(
    {"at": "done", "key": "ab", "role": "judge", "model": "m", "run": 0, "served": "m", "seconds": 1.0, "text": "x"}
    | {"usage": {"input_tokens": 1, "cached_tokens": 0, "output_tokens": 1, "cost_usd": 0.1, "written_tokens": 0}}
).encode()
GRADE = json.dumps(
    dict.fromkeys(
        ("accuracy", "context_awareness", "artifact_trail", "completeness", "continuity", "instruction_following"), 4
    )
    | {"reason": "because"}
).encode()
CHAT = json.dumps(
    {"model": "m", "messages": [{"role": "user", "content": "x"}], "max_tokens": 5, "stop": ["a"]}
).encode()
FRAME = json.dumps(
    {"nonce": "n", "phase": "step", "ok": True, "messages": [{"role": "user", "content": "x"}], "error": "e"}
).encode()
LABELED = json.dumps(
    {
        "action": "labeled",
        "number": 1,
        "label": {"name": "eval-compression"},
        "pull_request": {"number": 1, "head": {"sha": SHA}, "base": {"sha": SHA}},
        "repository": {"full_name": "acme/agent"},
        "sender": {"login": "m"},
        "inputs": {"pr": "1", "sha": SHA, "mode": "evaluate", "runs": "3"},
        "issue": {"number": 1, "pull_request": {}},
        "comment": {
            "body": "/eval-compression runs=5",
            "created_at": "2026-01-02T03:04:05Z",
            "id": 1,
            "user": {"login": "m"},
        },
    }
).encode()
LOG = b'{"role": "user", "content": "hello"}\n{"role": "assistant", "content": "hi", "tool_calls": []}\n'
CODEX = b'{"timestamp": "t", "type": "response_item", "payload": {"type": "message", "role": "user", "content": []}}\n'
CLAUDE = (
    b'{"type": "user", "uuid": "u", "sessionId": "s", "message": {"role": "user", "content": "hello"}}\n'
    b'{"type": "assistant", "uuid": "v", "message": {"role": "assistant", "content": '
    b'[{"type": "tool_use", "id": "t", "name": "n", "input": {}}]}}\n'
)
HERMES = b'{"role": "session_meta", "model": "m"}\n{"role": "assistant", "content": "hi", "finish_reason": "stop"}\n'
FIXTURE = b'{"name": "f", "messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}'
REPLY = json.dumps(
    {
        "choices": [{"message": {"role": "assistant", "content": "x", "tool_calls": []}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 0}},
        "model": "m",
    }
).encode()
STATE = b'# State\n**Files**: src/a.py:12, v1.2.3, #412, 401\n- I decided on x because y\n{"a": [1]}\n* * * * *\n'
RESPONSES = json.dumps(
    {"model": "m", "input": [{"role": "user", "content": [{"type": "input_text", "text": "x"}]}], "tools": []}
).encode()
GEMINI = json.dumps({"contents": [{"role": "user", "parts": [{"text": "x"}]}], "generationConfig": {}}).encode()
LINE = json.dumps({"type": "result", "id": 1, "messages": [{"role": "user", "content": "x"}]}).encode()
YAML = b"target: {compressor: 'a:b', init: {x: 1}}\nruns: 3\nmodels: {judge: m}\nbudget_usd: 1.5\n"


def parsers() -> dict[str, Parser]:
    """Return every parser of foreign data by name."""
    from bot.pull_request.ticket import read_ticket
    from bot.steps.comment import read_comment
    from eval_core.base.config import load_config
    from eval_core.base.strict_json import parse_json
    from eval_core.base.strict_yaml import parse_yaml
    from eval_core.domain.fixture import load_fixture
    from eval_core.domain.probe import load_bank
    from eval_core.domain.target import read_target
    from eval_core.judging.grading import parse_grade
    from eval_core.models.journal import Journal, parse_line
    from eval_core.sandbox.request import read_object, read_request
    from eval_core.storage.history import read_history
    from eval_core.storage.results import spending

    def journal(path: Path) -> object:
        with Journal(path) as opened:
            return opened.spent, spending(path)

    def history(path: Path) -> object:
        return read_history(path.parent)

    return {
        "JSON": Parser(parse_json, lambda: GRADE),
        "YAML": Parser(_text(lambda text: parse_yaml(text, "f")), lambda: YAML),
        "configuration": Parser(_in_file("c.yml", load_config), lambda: YAML),
        "target file": Parser(_in_file("t.yml", read_target), lambda: b"compressor: 'a:b'\ninit: {x: 1}\n"),
        "fixture": Parser(_in_file("f.json", load_fixture), _first("fixtures/constraints*.json")),
        "probe bank": Parser(_in_file("p.probes.json", load_bank), _first("probes/*.json")),
        "sealed probes": Parser(_in_file("s.json", _sealed), _sealed_seed),
        "session log": Parser(_in_file("log.jsonl", _session), lambda: LOG),
        "Codex session log": Parser(_in_file("codex.jsonl", _session), lambda: CODEX),
        "Claude Code session log": Parser(_in_file("claude.jsonl", _session), lambda: CLAUDE),
        "Hermes session log": Parser(_in_file("hermes.jsonl", _session), lambda: HERMES),
        "Hermes database": Parser(_in_file("state.db", _session), _database_seed),
        "compressed fixture": Parser(_in_file("f.00000000.json.gz", _packed), lambda: gzip.compress(FIXTURE, mtime=0)),
        "stored run": Parser(_in_file("f-run-0.json", _run_record), _run_seed),
        "provider's reply": Parser(_reply, lambda: REPLY),
        "compressed state": Parser(_state, lambda: STATE),
        "Anthropic request": Parser(_dialect("/v1/messages"), lambda: CHAT),
        "Responses request": Parser(_dialect("/v1/responses"), lambda: RESPONSES),
        "Gemini request": Parser(_dialect("/v1beta/models/m:generateContent"), lambda: GEMINI),
        "gateway's frame": Parser(_gateway_frame, lambda: FRAME),
        "command's line": Parser(_command_line, lambda: LINE),
        "journal line": Parser(parse_line, lambda: JOURNAL),
        "journal": Parser(_in_file("journal.jsonl", journal), lambda: JOURNAL + b"\n"),
        "judge's reply": Parser(_text(parse_grade), lambda: GRADE),
        "summary": Parser(_summary, _measurement),
        "baseline": Parser(_in_file("b.json", _baseline), _first("baselines/offline.json")),
        "history": Parser(_in_file("history.jsonl", history), _first("baselines/*.jsonl")),
        "event": Parser(_event, lambda: LABELED),
        "ticket": Parser(_text(read_ticket), lambda: json.dumps({"repo": "a/b", "mode": "evaluate"}).encode()),
        "comment": Parser(_text(lambda text: read_comment(text, "acme/agent#1")), _comment_seed),
        "source archive": Parser(_in_file("a.tar.gz", _tar), _tar_seed),
        "artifact": Parser(_in_file("a.zip", _zip), _zip_seed),
        "gateway's HTTP": Parser(
            _http, lambda: b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"
        ),
        "gateway's request": Parser(lambda data: read_request(read_object(data)), lambda: CHAT),
        "result frame": Parser(_frame, lambda: FRAME),
    }


def promised() -> tuple[type[BaseException], ...]:
    """Return the errors that parsers of foreign data may raise."""
    from eval_core.base.errors import IncompleteError, UserError
    from eval_core.base.strict_json import BadJson
    from eval_core.sandbox.request import Refusal
    from eval_core.sandbox.validate import BadFrame

    return UserError, IncompleteError, BadJson, Refusal, BadFrame


def _places(value: Any, found: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        found.append((value, key))
        _places(item, found)
    return found


def edited(seed: Any, provider: Any) -> bytes:
    """Return a document with up to four of its values replaced, removed, doubled or renamed."""
    body = copy.deepcopy(seed)
    for _ in range(provider.ConsumeIntInRange(1, 4)):
        places = _places(body, [])
        if not places:
            break
        parent, key = places[provider.ConsumeIntInRange(0, len(places) - 1)]
        leaf = copy.deepcopy(LEAVES[provider.ConsumeIntInRange(0, len(LEAVES) - 1)])
        how = provider.ConsumeIntInRange(0, 4)
        if how == 0:
            del parent[key]
        elif how == 1 and isinstance(parent, list):
            parent.append(parent[key])
        elif how == 2 and isinstance(parent, dict):
            parent[provider.ConsumeUnicode(8)] = parent.pop(key)
        elif how == 3:
            parent[key] = provider.ConsumeUnicode(20)
        else:
            parent[key] = leaf
    return json.dumps(body).encode()


def fuzz(name: str, inputs: int) -> None:
    """Fuzz one parser in this process, which ends with it."""
    import atheris

    with atheris.instrument_imports(include=["eval_core", "bot"]):
        parser, errors = parsers()[name], promised()
        with contextlib.suppress(*errors):
            parser.call(parser.seed())  # what is imported on the way is instrumented too
    logging.disable(logging.CRITICAL)
    raw = parser.seed()
    try:
        seed: Any = json.loads(raw)
    except ValueError:
        seed = None

    def once(data: bytes) -> None:
        provider = atheris.FuzzedDataProvider(data)
        if provider.ConsumeBool():
            given = edited(seed, provider) if isinstance(seed, dict | list) else _spliced(raw, provider)
        else:
            given = provider.ConsumeBytes(len(data))
        with contextlib.suppress(*errors):
            parser.call(given)

    CRASHES.mkdir(exist_ok=True)
    slug = re.sub(r"[^a-z]+", "-", name.lower())
    options = [f"-runs={inputs}", "-max_len=4096", "-timeout=30", "-rss_limit_mb=4096"]
    atheris.Setup([sys.argv[0], *options, f"-artifact_prefix={CRASHES}/{slug}-", "-verbosity=0"], once)
    atheris.Fuzz()


def _spliced(raw: bytes, provider: Any) -> bytes:
    at = provider.ConsumeIntInRange(0, len(raw))
    end = provider.ConsumeIntInRange(at, min(len(raw), at + 64))
    word = FRAGMENTS[provider.ConsumeIntInRange(0, len(FRAGMENTS) - 1)] if provider.ConsumeBool() else b""
    return raw[:at] + word + provider.ConsumeBytes(64) + raw[end:]


# Whole commands.


class Dice:
    """What `edited` asks of a fuzzer, thrown by chance."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def ConsumeIntInRange(self, low: int, high: int) -> int:
        return self._random.randint(low, high)

    def ConsumeUnicode(self, most: int) -> str:
        ranges = ((32, 126), (0, 31), (0x300, 0x36F), (0x2000, 0x206F), (0xD800, 0xDFFF), (0x1F600, 0x1F640))
        return "".join(chr(self._random.randint(*self._random.choice(ranges))) for _ in range(most))


RUN = ("run", "--runs", "2", "--set", "compress_runs=2", "--quiet", "--fixtures", "small-debug")
COMMANDS: dict[str, tuple[tuple[str, ...], ...]] = {
    "fixtures/small-debug.json": (
        ("fixture", "audit", "fixtures/small-debug.json"), ("fixture", "show", "small-debug"), ("fixture", "list"),
        ("fixture", "show", "small-debug", "--census"), ("probe", "lint"),
        ("probe", "propose", "small-debug", "--output", "-"), (*RUN, "--label", "b"),
        ("fixture", "scrub", "fixtures/small-debug.json", "--output", "scrubbed/small-debug.json"),
        ("fixture", "import", "fixtures/small-debug.json", "--yes", "--output", "imported"),
        ("report", "results/a"),
    ),
    "probes/small-debug.probes.json": (
        ("probe", "lint"), (*RUN, "--label", "b"), ("report", "results/a"), ("fixture", "show", "small-debug"),
    ),
    "baselines/offline.json": (
        ("baseline", "show", "baselines/offline.json"), ("baseline", "check"), ("noise", "baselines/offline.json"),
        (*RUN, "--label", "b"), ("compare", "baselines/offline.json", "results/a"), ("trend",),
    ),
    "baselines/history.jsonl": (
        ("trend",), ("trend", "--format", "html"), ("baseline", "show", "baselines/offline.json"),
    ),
    "results/a/summary.json": (
        ("report", "results/a"), ("report", "results/a", "--format", "html"),
        ("report", "results/a", "--format", "json"), ("report", "results/a", "--format", "md"),
        ("compare", "baselines/offline.json", "results/a"),
    ),
    "results/a/small-debug-run-0.json": ((*RUN, "--label", "a", "--resume"),),
    "results/a/session.json": ((*RUN, "--label", "a", "--resume"), ("report", "results/a")),
}  # fmt: skip
"""Files of a project, and the commands that read them."""


def make_project(folder: Path) -> None:
    """Write a small project that was measured once."""
    sys.path.insert(0, str(ROOT / "tests"))
    import small

    small.write_suite(folder)
    for words in ((*RUN, "--label", "a"), ("baseline", "update", "--from", "results/a", "--accept-failing", "--quiet")):
        code, said = run_command(words, folder)
        if code:
            raise SystemExit(f"the project to fuzz could not be made: {' '.join(words)}: {code}: {said}")


def run_command(words: Sequence[str], folder: Path) -> tuple[int, str]:
    """Run a command in this process; return its exit code and what it said."""
    from bot.cli import main as command

    before, argv = Path.cwd(), sys.argv
    said = io.StringIO()
    os.chdir(folder)
    sys.argv = ["compression-eval", *words]
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
            command()
    except SystemExit as exc:
        return (exc.code if isinstance(exc.code, int) else 0 if exc.code is None else 1), said.getvalue()
    finally:
        os.chdir(before)
        sys.argv = argv
    return 0, said.getvalue()


_NUMBERS = (0, -1, 1, 10**19, 1e308, -1e308, 5e-324, 0.1, 10**15, 1e12)
_TEXTS = (
    "",
    "\ud800",
    "\udfff/etc/\ud800.conf",
    "\x00\x1b[2J",
    "a" * 70_000,
    "\u202e",
    "[x](y)|`",
    "..",
    "9" * 400,
    "@a #1",
)


def _twisted(seed: Any, dice: Any) -> bytes:
    """Return a document with one to three values as extreme as their types allow: validation lets them through."""
    body = copy.deepcopy(seed)
    for _ in range(dice.ConsumeIntInRange(1, 3)):
        places = [(parent, key) for parent, key in _places(body, []) if type(parent[key]) in (int, float, str, list)]
        if not places:
            break
        parent, key = places[dice.ConsumeIntInRange(0, len(places) - 1)]
        value = parent[key]
        if isinstance(value, list):
            parent[key] = [value * dice.ConsumeIntInRange(0, 3), value[:1], value[::-1]][dice.ConsumeIntInRange(0, 2)]
        else:
            kind = _TEXTS if isinstance(value, str) else _NUMBERS
            parent[key] = kind[dice.ConsumeIntInRange(0, len(kind) - 1)]
    return json.dumps(body).encode()


def changed_file(raw: bytes, dice: Any) -> bytes:
    """Return a JSON document, or lines of them, with some values replaced; or with bytes in the place of others."""
    how = dice.ConsumeIntInRange(0, 5)
    if how == 0:
        at = dice.ConsumeIntInRange(0, len(raw))
        return raw[:at] + FRAGMENTS[dice.ConsumeIntInRange(0, len(FRAGMENTS) - 1)] + raw[at + 5 :]
    lines = raw.splitlines() if len(raw.splitlines()) > 1 and raw.startswith(b'{"') else [raw]
    at = dice.ConsumeIntInRange(0, len(lines) - 1)
    lines[at] = (edited if how == 1 else _twisted)(json.loads(lines[at]), dice)
    return b"\n".join(lines) + b"\n"


def fuzz_commands(inputs: int, seed: int, project: Path) -> list[str]:
    """Run so many commands, each in the project with one file changed; return those that ended as no command may."""
    crashed = []
    every = [(name, words) for name, commands in COMMANDS.items() for words in commands]
    for number in range(seed, seed + inputs):
        name, words = every[number % len(every)]
        with tempfile.TemporaryDirectory() as place:
            folder = shutil.copytree(project, Path(place) / "project")
            (folder / name).write_bytes(changed_file((project / name).read_bytes(), Dice(number)))
            code, said = run_command(words, folder)
            if code in (0, 1, 2, 3) and "Traceback" not in said:
                continue
            CRASHES.mkdir(exist_ok=True)
            shutil.copy(folder / name, CRASHES / f"command-{number}-{Path(name).name}")
            crashed.append(f"{number}: {name}: {' '.join(words)}: {code}: {said[-300:]}")
    return crashed


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--inputs", type=int, default=20_000, help="inputs for each parser")
    options.add_argument("--only", metavar="NAME", help="one parser, e.g. baseline")
    options.add_argument("--out", type=Path)
    options.add_argument("--commands", type=int, default=0, help="run so many whole commands instead")
    options.add_argument("--seed", type=int, default=0, help="with --commands: the first of the inputs")
    options.add_argument("--in-process", action="store_true", help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.commands:
        with tempfile.TemporaryDirectory() as place:
            make_project(Path(place))
            crashed = fuzz_commands(given.commands, given.seed, Path(place))
        print("\n".join(crashed) or f"{given.commands:,} commands, no unexpected error")
        sys.exit(1 if crashed else 0)
    try:
        import atheris  # noqa: F401
    except ImportError:
        sys.exit("bench/fuzz.py needs atheris, which is not a dependency of this project: pip install atheris")
    if given.in_process:
        fuzz(given.only, given.inputs)
        return
    lines, failed = ["| parser | inputs | unexpected errors |", "|---|---:|---:|"], 0
    names = [given.only] if given.only else list(parsers())
    if unknown := set(names) - set(parsers()):
        sys.exit(f"--only {unknown.pop()}: no such parser; known: {', '.join(parsers())}")
    for name in names:
        command = [sys.executable, __file__, "--in-process", "--only", name, "--inputs", str(given.inputs)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        failed += bool(done.returncode)
        lines.append(f"| {name} | {given.inputs:,} | {int(bool(done.returncode))} |")
        print(lines[-1], flush=True)
        if done.returncode:
            print(done.stdout[-3_000:], done.stderr[-1_000:], file=sys.stderr, flush=True)
    lines.append(f"| together | {given.inputs * len(names):,} | {failed} |")
    print(lines[-1])
    if given.out:
        given.out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
